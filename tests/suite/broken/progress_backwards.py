"""Broken: the progress goes backwards."""

from mcp_server import error, mistake, progress, serve, text, tool

TOOLS = [tool("import_rows", "Counts the rows of a table.", {"table": {"type": "string"}}, ["table"])]


def call(name, arguments, request):
    if reason := mistake(TOOLS[0]["inputSchema"], arguments):
        return error(reason)
    for value in (10, 60, 40, 100):
        progress(request, value)
    return text("3 rows")


serve(TOOLS, call)
