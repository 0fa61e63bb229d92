"""A minimal MCP server over stdio. Its own cost is negligible, so measurements show the cost of the client."""

import json
import sys

TOOL = {"name": "echo", "description": "Echoes.", "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}}
INFO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "light", "version": "1"}}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        answer = {"result": INFO}
    elif method == "tools/list":
        answer = {"result": {"tools": [TOOL]}}
    elif method == "tools/call":
        text = "Echo: " + message["params"]["arguments"]["message"]
        answer = {"result": {"content": [{"type": "text", "text": text}]}}
    elif method == "ping":
        answer = {"result": {}}
    else:
        answer = {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
