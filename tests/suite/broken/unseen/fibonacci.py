"""Bug: the time to answer doubles with every number, and nothing limits it."""

import json
import sys

TOOL = {
    "name": "fibonacci",
    "description": "Returns a Fibonacci number.",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}, "required": ["n"]},
    "annotations": {"readOnlyHint": True},
}


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def call(arguments):
    n = arguments.get("n")
    if not isinstance(n, int) or n < 0:
        return {"content": [{"type": "text", "text": "n must be a positive integer"}], "isError": True}
    return {"content": [{"type": "text", "text": str(fibonacci(n))}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "numbers", "version": "1"}}
    elif message["method"] == "tools/list":
        result = {"tools": [TOOL]}
    elif message["method"] == "tools/call":
        result = call(message["params"]["arguments"])
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
