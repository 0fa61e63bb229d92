"""Broken: a thread keeps the process running after the input has ended."""

import threading
import time

from mcp_server import error, mistake, serve, text, tool

TOOLS = [tool("half", "Returns half of a number.", {"number": {"type": "number"}}, ["number"])]


def refresh():
    while True:
        time.sleep(1)


def call(name, arguments, request):
    if reason := mistake(TOOLS[0]["inputSchema"], arguments):
        return error(reason)
    return text(str(arguments["number"] / 2))


threading.Thread(target=refresh).start()
serve(TOOLS, call)
