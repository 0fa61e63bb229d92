"""Broken: a tool that does not exist gets a result."""

import sys

from mcp_server import error, mistake, serve, text, tool

TOOLS = [tool("count_words", "Counts the words of a text.", {"text": {"type": "string"}}, ["text"])]


def call(name, arguments, request):
    if name != TOOLS[0]["name"]:
        print(f"unknown tool {name}", file=sys.stderr)
        return text("")
    if reason := mistake(TOOLS[0]["inputSchema"], arguments):
        return error(reason)
    return text(str(len(arguments["text"].split())))


serve(TOOLS, call, check_names=False)
