"""Bug: the default of a parameter is changed by every call, so that results contain earlier arguments."""

import json
import sys

TOOL = {
    "name": "tag_line",
    "description": "Formats tags as one line.",
    "inputSchema": {
        "type": "object",
        "properties": {"tag": {"type": "string"}, "more": {"type": "array", "items": {"type": "string"}}},
        "required": ["tag"],
    },
    "annotations": {"readOnlyHint": True},
}


def tag_line(tag, more=[]):
    more.append(tag)
    return " ".join(f"#{each}" for each in more)


def call(arguments):
    more = arguments.get("more", [])
    if not isinstance(arguments.get("tag"), str) or not isinstance(more, list) or not all(isinstance(each, str) for each in more):
        return {"content": [{"type": "text", "text": "tags must be text"}], "isError": True}
    return {"content": [{"type": "text", "text": tag_line(**arguments)}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "tags", "version": "1"}}
    elif message["method"] == "tools/list":
        result = {"tools": [TOOL]}
    elif message["method"] == "tools/call" and message["params"]["name"] != TOOL["name"]:
        result = {"content": [{"type": "text", "text": "unknown tool"}], "isError": True}
    elif message["method"] == "tools/call":
        result = call(message["params"]["arguments"])
    elif message["method"] == "ping":
        result = {}
    else:
        error = {"code": -32601, "message": "unknown method"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
