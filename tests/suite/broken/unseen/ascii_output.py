"""Bug: the output is encoded as ASCII, so that an answer with other characters ends the process."""

import json
import sys

sys.stdout.reconfigure(encoding="ascii")
TOOL = {
    "name": "greet",
    "description": "Greets a person by name.",
    "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    "annotations": {"readOnlyHint": True},
}


def handle(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "greeter", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        name = params["arguments"].get("name")
        if not isinstance(name, str):
            return {"content": [{"type": "text", "text": "name must be a string"}], "isError": True}
        return {"content": [{"type": "text", "text": f"Hello, {name}!"}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = handle(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}, ensure_ascii=False), flush=True)
