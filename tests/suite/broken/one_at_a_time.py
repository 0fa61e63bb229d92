"""Broken: a request that arrives while another one is answered is lost."""

import json
import sys
import threading
import time

from mcp_server import error, mistake, send, text, tool

TOOLS = [tool("reverse", "Reverses a text.", {"text": {"type": "string"}}, ["text"])]
busy = threading.Lock()


def answer(request):
    time.sleep(0.02)
    arguments = request["params"].get("arguments", {})
    if request["params"]["name"] != "reverse":
        result = error("unknown tool")
    elif reason := mistake(TOOLS[0]["inputSchema"], arguments):
        result = error(reason)
    else:
        result = text(arguments["text"][::-1])
    busy.release()
    send({"id": request["id"], "result": result})


while line := sys.stdin.readline():
    request = json.loads(line)
    method = request.get("method")
    if "id" not in request:
        continue
    if method == "tools/call":
        if busy.acquire(blocking=False):
            threading.Thread(target=answer, args=(request,), daemon=True).start()
    elif method == "initialize":
        info = {"name": "one-at-a-time", "version": "1.0.0"}
        send({"id": request["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        send({"id": request["id"], "result": {"tools": TOOLS}})
    elif method == "ping":
        send({"id": request["id"], "result": {}})
    else:
        send({"id": request["id"], "error": {"code": -32601, "message": f"unknown method {method}"}})
