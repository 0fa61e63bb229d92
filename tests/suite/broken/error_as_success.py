"""Broken: errors are results without isError."""

from mcp_server import mistake, serve, text, tool

PROPERTIES = {"city": {"type": "string"}, "unit": {"enum": ["celsius", "kelvin"]}}
TOOLS = [tool("temperature", "Returns the temperature of a city.", PROPERTIES, ["city"])]


def call(name, arguments, request):
    if reason := mistake(TOOLS[0]["inputSchema"], arguments):
        return text(f"Something went wrong: {reason}")
    return text("21")


serve(TOOLS, call)
