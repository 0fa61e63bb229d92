"""The API of programs: tools as async functions, `tools`, `call_tool`, `inspect_tool`, `search_tools`, `progress`."""

import difflib

from . import asking
from .asking import ToolError

_known = {}


def _arguments(binding, positional, named):
    name, parameters = binding["full_name"], binding["parameters"]
    valid = "valid arguments: %s" % ", ".join(parameters) if parameters else "the tool has no named arguments"

    def invalid(what):
        return ToolError("%s: %s; %s" % (name, what, valid), "invalid_arguments", name, {"valid": list(parameters)})

    if len(positional) > len(parameters):
        raise invalid("expected at most %d positional arguments, got %d" % (len(parameters), len(positional)))
    arguments = dict(zip(parameters, positional))
    for key, value in named.items():
        if key in arguments:
            raise invalid("the argument %r was given twice" % key)
        if key not in parameters and parameters:
            near = difflib.get_close_matches(key, parameters, 1)
            hint = ", did you mean %r?" % near[0] if near else ""
            raise invalid("unknown argument %r%s" % (key, hint))
        arguments[key] = value
    # None for an optional parameter means that it is not given.
    optional = parameters[binding["required"] :]
    return {key: value for key, value in arguments.items() if value is not None or key not in optional}


def make_function(binding):
    async def tool(*args, **kwargs):
        arguments = _arguments(binding, args, kwargs)
        return await asking.ask({"ask": "call", "tool": binding["full_name"], "arguments": arguments})

    tool.__name__ = tool.__qualname__ = binding["words"][0] if binding["words"] else binding["full_name"]
    tool.__module__ = "tools"
    tool.__doc__ = binding["about"]
    return tool


def bind(binding):
    function = make_function(binding)
    _known[binding["full_name"]] = function
    for word in binding["words"]:
        _known[word] = function
    return function


class Tools:
    """Every tool by any of its names: `tools["name"]` or `tools.name`."""

    def __getitem__(self, name):
        if name in _known:
            return _known[name]
        if not isinstance(name, str):
            raise TypeError("tools are looked up by name, not by %s" % type(name).__name__)
        function = bind(asking.ask_and_wait({"ask": "face", "tool": name}))
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
        raise TypeError('tools is not iterable; use `await search_tools("")` to list all tools')

    def __repr__(self):
        return '<tools: call tools["name"](...); find names with search_tools(...) and inspect_tool(...)>'


async def call_tool(name, args=None, /, **kwargs):
    """Calls a tool by name. The arguments are a dict or keyword arguments."""
    if args is not None and not hasattr(args, "keys"):
        raise ToolError(
            "call_tool expects the arguments as a dict, not %s" % type(args).__name__, "invalid_arguments", str(name)
        )
    arguments = dict(args or {}, **kwargs)
    return await asking.ask({"ask": "call", "tool": _name_of(name, "call_tool"), "arguments": arguments})


async def inspect_tool(tool_name):
    """Returns the definition of a tool: name, description, inputSchema, outputSchema."""
    return await asking.ask({"ask": "inspect", "tool": _name_of(tool_name, "inspect_tool")})


async def search_tools(query="", server=None, limit=None):
    """Returns the tools that match the query, best match first."""
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise ToolError("search_tools: limit must be a non-negative integer", "invalid_arguments", "search_tools")
    server = None if server is None else _name_of(server, "search_tools")
    return await asking.ask(
        {"ask": "search", "query": _name_of(query, "search_tools"), "server": server, "limit": limit}
    )


class _Sent:
    """The result of `progress`. It may be awaited, but need not be."""

    def __await__(self):
        return iter(())


def progress(done, total=None, message=None):
    """Reports the progress of the program."""
    total = None if total is None else float(total)
    message = None if message is None else str(message)
    asking.tell({"ask": "progress", "progress": float(done), "total": total, "message": message})
    return _Sent()


def _name_of(name, function):
    if callable(name) and getattr(name, "__module__", None) == "tools":
        return name.__name__
    if not isinstance(name, str):
        raise ToolError("%s expects a string, not %s" % (function, type(name).__name__), "invalid_arguments", function)
    return name


def names(bindings):
    """Returns the names that a program has without an import."""
    namespace = {
        "ToolError": ToolError,
        "tools": Tools(),
        "call_tool": call_tool,
        "inspect_tool": inspect_tool,
        "search_tools": search_tools,
        "progress": progress,
    }
    for binding in bindings:
        function = bind(binding)
        for word in binding["words"]:
            namespace.setdefault(word, function)
    return namespace
