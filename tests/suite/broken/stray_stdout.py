"""Broken: log lines go to standard output."""

from mcp_server import error, mistake, serve, text, tool

TOOLS = [tool("lookup", "Looks a word up.", {"word": {"type": "string"}, "exact": {"type": "boolean"}}, ["word"])]


def call(name, arguments, request):
    if reason := mistake(TOOLS[0]["inputSchema"], arguments):
        return error(reason)
    if not arguments.get("exact", True):
        print("falling back to a fuzzy search", flush=True)
    return text("a word")


serve(TOOLS, call)
