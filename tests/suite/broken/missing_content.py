"""Broken: a search without matches returns a result without content."""

from mcp_server import error, mistake, serve, text, tool

TOOLS = [tool("find_city", "Finds a city by a part of its name.", {"query": {"type": "string"}}, ["query"])]
CITIES = ["Bern", "Oslo", "Lima", "Cairo"]


def call(name, arguments, request):
    if reason := mistake(TOOLS[0]["inputSchema"], arguments):
        return error(reason)
    found = [city for city in CITIES if arguments["query"].lower() in city.lower()]
    return text(", ".join(found)) if found else {}


serve(TOOLS, call)
