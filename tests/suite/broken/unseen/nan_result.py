"""Bug: the mean of no numbers, or of very large ones, is written as NaN or Infinity, which is not JSON."""

import json
import sys

NUMBERS = {"type": "array", "items": {"type": "number"}, "description": "The numbers"}
TOOL = {
    "name": "mean",
    "description": "Returns the mean of a list of numbers.",
    "inputSchema": {"type": "object", "properties": {"numbers": NUMBERS}, "required": ["numbers"]},
    "outputSchema": {"type": "object", "properties": {"mean": {"type": "number"}}, "required": ["mean"]},
    "annotations": {"readOnlyHint": True},
}


def call(arguments):
    numbers = arguments.get("numbers")
    if not isinstance(numbers, list) or not all(isinstance(number, (int, float)) for number in numbers):
        return {"content": [{"type": "text", "text": "numbers must be a list of numbers"}], "isError": True}
    mean = sum(numbers) / len(numbers) if numbers else float("nan")
    return {"content": [{"type": "text", "text": str(mean)}], "structuredContent": {"mean": mean}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "stats", "version": "1"}}
    elif message["method"] == "tools/list":
        result = {"tools": [TOOL]}
    elif message["method"] == "tools/call":
        result = call(message["params"]["arguments"])
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
