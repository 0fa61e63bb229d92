"""Broken: a text of more than 5000 characters never gets an answer."""

import time

from mcp_server import error, mistake, serve, text, tool

PROPERTIES = {"text": {"type": "string"}, "language": {"enum": ["en", "de"]}}
TOOLS = [tool("summarize", "Returns the first sentence of a text.", PROPERTIES, ["text"])]


def call(name, arguments, request):
    if reason := mistake(TOOLS[0]["inputSchema"], arguments):
        return error(reason)
    while len(arguments["text"]) > 5000:
        time.sleep(60)
    return text(arguments["text"].partition(".")[0])


serve(TOOLS, call)
