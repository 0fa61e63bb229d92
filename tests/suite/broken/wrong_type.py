"""Broken: the text of a result is a number if the text has no letters."""

from mcp_server import error, mistake, serve, text, tool

TOOLS = [tool("count_letters", "Counts the letters of a text.", {"text": {"type": "string"}}, ["text"])]


def call(name, arguments, request):
    if reason := mistake(TOOLS[0]["inputSchema"], arguments):
        return error(reason)
    count = sum(letter.isalpha() for letter in arguments["text"])
    return text(str(count) if count else 0)


serve(TOOLS, call)
