"""Broken: the list of tools grows with every read, without a notification."""

from mcp_server import serve, text, tool

reads = []


def lists():
    reads.append(1)
    return [tool(f"tool_{number}", "Returns its number.", {}) for number in range(1, len(reads) + 1)]


serve([], lambda name, arguments, request: text(name), lists)
