"""Broken: for negative numbers, the structured result does not match the output schema."""

import json

from mcp_server import error, mistake, serve, text, tool

OUTPUT = {"type": "object", "properties": {"root": {"type": "number"}}, "required": ["root"]}
PROPERTIES = {"number": {"type": "number"}, "digits": {"type": "integer", "minimum": 0}}
TOOLS = [tool("square_root", "Returns the square root.", PROPERTIES, ["number"], outputSchema=OUTPUT)]


def call(name, arguments, request):
    if reason := mistake(TOOLS[0]["inputSchema"], arguments):
        return error(reason)
    if arguments.get("digits", 0) < 0:
        return error("digits must not be negative")
    number = arguments["number"]
    result = {"root": number**0.5} if number >= 0 else {"root": None}
    return text(json.dumps(result), structuredContent=result)


serve(TOOLS, call)
