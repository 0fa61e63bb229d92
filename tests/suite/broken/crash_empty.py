"""Broken: an empty text ends the process."""

from mcp_server import error, mistake, serve, text, tool

PROPERTIES = {"text": {"type": "string"}, "upper": {"type": "boolean"}, "times": {"type": "integer"}}
TOOLS = [tool("first_letter", "Returns the first letter of a text.", PROPERTIES, ["text"])]


def call(name, arguments, request):
    if reason := mistake(TOOLS[0]["inputSchema"], arguments):
        return error(reason)
    letter = arguments["text"][0]
    return text(letter.upper() if arguments.get("upper") else letter)


serve(TOOLS, call)
