"""Bug: error responses repeat the ID of the request as text."""

import json
import sys

TOOL = {
    "name": "weekday",
    "description": "Returns the name of a weekday, from 1 for Monday to 7 for Sunday.",
    "inputSchema": {"type": "object", "properties": {"day": {"type": "integer"}}, "required": ["day"]},
    "annotations": {"readOnlyHint": True},
}
NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, number = message["method"], message["id"]
    if method == "initialize":
        info = {"name": "weekdays", "version": "1"}
        send(id=number, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        send(id=number, result={"tools": [TOOL]})
    elif method == "tools/call":
        day = message["params"]["arguments"].get("day")
        if isinstance(day, int) and 1 <= day <= 7:
            send(id=number, result={"content": [{"type": "text", "text": NAMES[day - 1]}]})
        else:
            send(id=f"{number}", error={"code": -32602, "message": "day must be from 1 to 7"})
    else:
        send(id=number, result={})
