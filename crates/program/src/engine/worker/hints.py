"""Hints for common mistakes of models in programs. `TABLE` has one function for each mistake."""

import difflib
import linecache
import re

from . import asking

NAME = "<program>"
AWAIT = (
    "hint: a tool call returns a coroutine; write `await` before it, as in `data = await tool(...)`.\n"
)
# Packages that are useless without a network.
_FOR_NETWORK = {"aiohttp", "boto3", "botocore", "grpc", "httplib2", "httpx", "paramiko", "pycurl", "requests", "urllib3"}
_FOR_NETWORK |= {"websocket", "websockets"}
_NETWORK_FILES = ("/socket.py", "/ssl.py", "/urllib/request.py", "/http/client.py", "/smtplib.py", "/ftplib.py")
_PROCESS_FILES = ("/subprocess.py", "/multiprocessing/", "/pty.py")
_PROCESS_CALL = re.compile(r"\bos\.(fork|forkpty|system|popen|spawn\w*|exec\w*|posix_spawn\w*)\s*\(")
_CHAIN = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?=\s*\()")


class Mistake:
    """An uncaught exception of a program, and its origin."""

    def __init__(self, error):
        self.error = error
        self.text = str(error)
        self.files, self.line = [], ""
        trace = error.__traceback__
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            self.files.append(file)
            if file == NAME:
                self.line = linecache.getline(NAME, trace.tb_lineno)
            trace = trace.tb_next

    def passed(self, parts):
        return any(part in file for file in self.files for part in parts)

    def missing(self):
        """Returns the package that could not be imported."""
        return (self.error.name or "").split(".")[0] if isinstance(self.error, ModuleNotFoundError) else ""

    def unknown(self):
        """Returns the name that is not defined."""
        match = re.match(r"name '(\w+)' is not defined", self.text) if isinstance(self.error, NameError) else None
        return match.group(1) if match else None


def _tool(name):
    """Returns the function name of a tool, or None and the similar names if the tool is unknown."""
    try:
        binding = asking.ask_and_wait({"ask": "face", "tool": name})
        return (binding["words"] or [binding["full_name"]])[0], []
    except asking.ToolError as error:
        return None, (error.details or {}).get("close", [])


def _await(mistake):
    if isinstance(mistake.error, (TypeError, AttributeError)) and "'coroutine' object" in mistake.text:
        return AWAIT


def _no_loop(mistake):
    if isinstance(mistake.error, RuntimeError) and mistake.text == "no running event loop":
        return AWAIT.replace("a tool call returns a coroutine", "no event loop is running yet, so tasks cannot start")


def _imported_tool(mistake):
    package = mistake.missing()
    if not package:
        return None
    match = re.search(r"from\s+([\w.]+)\s+import\s+(\w+)", mistake.line)
    member = match.group(2) if match else None
    candidates = [package] if member is None else ["mcp__%s__%s" % (package, member)]
    tool = next((name for name in candidates if _tool(name)[0] is not None), None)
    if tool is None and package not in ("tools", "mcp", "toolyard"):
        return None
    return "hint: tools need no import; call them by name, as in `data = await %s(...)`.\n" % (member or tool or "tool")


def _network(mistake):
    stopped = isinstance(mistake.error, OSError) and mistake.passed(_NETWORK_FILES)
    loop = isinstance(mistake.error, NotImplementedError) and mistake.passed(("/asyncio/",))
    if stopped or loop or mistake.missing() in _FOR_NETWORK:
        return (
            "hint: programs have no network access. Call a tool that fetches what you need; "
            '`await search_tools("fetch")` finds one.\n'
        )


def _package(mistake):
    if mistake.missing():
        return (
            "hint: the package `%s` is not available. Programs have only the standard library, and packages cannot be "
            "installed.\n" % mistake.missing()
        )


def _processes(mistake):
    thread = isinstance(mistake.error, RuntimeError) and "start new thread" in mistake.text
    process = isinstance(mistake.error, OSError) and (
        mistake.passed(_PROCESS_FILES) or _PROCESS_CALL.search(mistake.line) or "start processes" in mistake.text
    )
    if thread or process:
        return (
            "hint: programs cannot start threads or processes. `await asyncio.gather(first(...), second(...))` runs "
            "tool calls in parallel.\n"
        )


def _files(mistake):
    if isinstance(mistake.error, OSError) and mistake.error.errno is not None:
        return (
            "hint: programs have no files. Keep data in variables, and use a tool to read or write files; "
            '`await search_tools("file")` finds one.\n'
        )


def _server_member(mistake):
    is_lookup = isinstance(mistake.error, AttributeError) and mistake.text.startswith("unknown tool")
    for chain in _CHAIN.findall(mistake.line):
        parts = chain.split(".")
        if not is_lookup and parts[0] != mistake.unknown() or len(parts) < 2:
            continue
        word, _ = _tool("mcp__" + "__".join(parts[-2:]))
        if word is not None:
            return "hint: tools are functions, not attributes of a server; write `await %s(...)`.\n" % word


def _close_tool(mistake):
    name = mistake.unknown()
    if name is None or not re.search(r"\b%s\s*\(" % name, mistake.line):
        return None

    def plain(text):
        return text.replace("_", "").lower()

    for close in _tool(name)[1]:
        for known in (close, close.rsplit("__", 1)[-1]):
            if difflib.SequenceMatcher(None, plain(name), plain(known)).ratio() >= 0.75:
                return "hint: `%s` is not defined; did you mean the tool `%s`?\n" % (name, close)


def _json(mistake):
    if isinstance(mistake.error, TypeError) and mistake.text.startswith("the JSON object must be str"):
        return "hint: the result of a tool is already parsed data; remove `json.loads`.\n"


def _slice(mistake):
    error = mistake.error
    key = isinstance(error, KeyError) and error.args and isinstance(error.args[0], slice)
    if key or isinstance(error, TypeError) and mistake.text == "unhashable type: 'slice'":
        return (
            "hint: this is a dict, not a list, so it cannot be sliced; `print(list(result))` shows its keys, and one of "
            "them may hold the list.\n"
        )


# The first function that returns a hint wins.
TABLE = (
    _await,
    _no_loop,
    _json,
    _slice,
    _imported_tool,
    _network,
    _package,
    _processes,
    _server_member,
    _close_tool,
    _files,
)


def hint_for(error):
    """Returns the hint for an exception, or an empty string. An error in here must not hide that of the program."""
    try:
        mistake = Mistake(error)
        for row in TABLE:
            hint = row(mistake)
            if hint:
                return hint
    except Exception:
        pass
    return ""
