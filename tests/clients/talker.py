"""A small MCP server over stdio with tools that log, count their calls, or crash the server."""

import json
import os
import sys

counts = {}
KEY = {"type": "object", "properties": {"key": {"type": "string"}}}
TOOLS = [
    {"name": "log", "description": "Logs a line, then returns.", "inputSchema": KEY},
    {"name": "count", "description": "Counts the calls with this key.", "inputSchema": KEY},
    {"name": "crash", "description": "Crashes the server during the call.", "inputSchema": KEY},
]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(name, key):
    if name == "crash":
        os._exit(3)
    if name == "log":
        params = {"level": "warning", "logger": "talker", "data": {"key": key}}
        send({"method": "notifications/message", "params": params})
        return "logged"
    counts[key] = counts.get(key, 0) + 1
    return str(counts[key])


for line in sys.stdin:
    message = json.loads(line)
    method, params, id = message.get("method"), message.get("params") or {}, message.get("id")
    if id is None:
        continue
    if method == "initialize":
        capabilities = {"tools": {}, "logging": {}}
        info = {"name": "talker", "version": "1"}
        send({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        text = call(params["name"], (params.get("arguments") or {}).get("key", ""))
        send({"id": id, "result": {"content": [{"type": "text", "text": text}]}})
    elif method in ("ping", "logging/setLevel"):
        send({"id": id, "result": {}})
    else:
        send({"id": id, "error": {"code": -32601, "message": f"unknown method {method}"}})
