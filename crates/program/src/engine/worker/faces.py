"""The tools as a program sees them: async functions, `tools`, `call_tool`, `inspect_tool`, `search_tools`, `progress`."""

import difflib

from . import asking
from .asking import ToolError

_known = {}


def _arguments(face, given, named):
    name, parameters = face["full_name"], face["parameters"]
    valid = "valid arguments: %s" % ", ".join(parameters) if parameters else "it takes no arguments"

    def wrong(what):
        return ToolError("%s: %s; %s" % (name, what, valid), "invalid_arguments", name, {"valid": list(parameters)})

    if len(given) > len(parameters):
        raise wrong("%d arguments were given without a name, but there are %d" % (len(given), len(parameters)))
    arguments = dict(zip(parameters, given))
    for key, value in named.items():
        if key in arguments:
            raise wrong("the argument %r was given twice" % key)
        if key not in parameters and parameters:
            near = difflib.get_close_matches(key, parameters, 1)
            hint = ", did you mean %r?" % near[0] if near else ""
            raise wrong("there is no argument %r%s" % (key, hint))
        arguments[key] = value
    # What is not required and None is left out, as the signature says.
    optional = parameters[face["required"] :]
    return {key: value for key, value in arguments.items() if value is not None or key not in optional}


def function_of(face):
    async def tool(*args, **kwargs):
        arguments = _arguments(face, args, kwargs)
        return await asking.ask({"ask": "call", "tool": face["full_name"], "arguments": arguments})

    tool.__name__ = tool.__qualname__ = face["words"][0] if face["words"] else face["full_name"]
    tool.__module__ = "tools"
    tool.__doc__ = face["about"]
    return tool


def learn(face):
    function = function_of(face)
    _known[face["full_name"]] = function
    for word in face["words"]:
        _known[word] = function
    return function


class Tools:
    """Every tool by any of its names: `tools["name"]` or `tools.name`."""

    def __getitem__(self, name):
        if name in _known:
            return _known[name]
        if not isinstance(name, str):
            raise TypeError("tools are looked up by name, not by %s" % type(name).__name__)
        function = learn(asking.ask_and_wait({"ask": "face", "tool": name}))
        _known[name] = function
        return function

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except ToolError as error:
            raise AttributeError(error.message) from None

    def __contains__(self, name):
        try:
            self[name]
        except ToolError:
            return False
        return True

    def __iter__(self):
        raise TypeError('tools cannot be counted off here; use `await search_tools("")`')

    def __repr__(self):
        return '<tools: tools["name"](...), search_tools(...) and inspect_tool(...) find them>'


async def call_tool(name, args=None, /, **kwargs):
    """Calls a tool by name, with its arguments as a dict or by name."""
    if args is not None and not hasattr(args, "keys"):
        raise ToolError(
            "call_tool takes the arguments as a dict, not as %s" % type(args).__name__, "invalid_arguments", str(name)
        )
    arguments = dict(args or {}, **kwargs)
    return await asking.ask({"ask": "call", "tool": _word(name, "call_tool"), "arguments": arguments})


async def inspect_tool(tool_name):
    """What a tool takes and gives: name, description, inputSchema, outputSchema."""
    return await asking.ask({"ask": "inspect", "tool": _word(tool_name, "inspect_tool")})


async def search_tools(query="", server=None, limit=None):
    """Tools that fit the words, best first."""
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise ToolError("search_tools: limit must be a number of tools", "invalid_arguments", "search_tools")
    server = None if server is None else _word(server, "search_tools")
    return await asking.ask(
        {"ask": "search", "query": _word(query, "search_tools"), "server": server, "limit": limit}
    )


class _Told:
    """Can be awaited, and need not be."""

    def __await__(self):
        return iter(())


def progress(done, total=None, message=None):
    """Says how far the program is."""
    total = None if total is None else float(total)
    message = None if message is None else str(message)
    asking.tell({"ask": "progress", "progress": float(done), "total": total, "message": message})
    return _Told()


def _word(name, where):
    if callable(name) and getattr(name, "__module__", None) == "tools":
        return name.__name__
    if not isinstance(name, str):
        raise ToolError("%s wants a string, not %s" % (where, type(name).__name__), "invalid_arguments", where)
    return name


def names(faces):
    """What a program finds without importing anything."""
    found = {
        "ToolError": ToolError,
        "tools": Tools(),
        "call_tool": call_tool,
        "inspect_tool": inspect_tool,
        "search_tools": search_tools,
        "progress": progress,
    }
    for face in faces:
        function = learn(face)
        for word in face["words"]:
            found.setdefault(word, function)
    return found
