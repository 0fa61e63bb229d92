"""Bug: the last page of the list of tools has a cursor that leads to itself."""

import json
import sys

TOOLS = [
    {"name": name, "description": f"Lists the {name} of the shop.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    for name in ("products", "customers", "orders")
]

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "shop", "version": "1"}}
    elif method == "tools/list":
        start = min(int(params.get("cursor", 0)), 2)
        result = {"tools": TOOLS[start : start + 2], "nextCursor": str(min(start + 2, 2))}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "none"}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
