"""Broken, in the modern era: one value of an enum never gets an answer, while other requests do."""

import json
import sys

SCHEMA = {"type": "object", "properties": {"format": {"enum": ["json", "xml", "csv"]}, "rows": {"type": "integer"}}, "required": ["format"]}
TOOL = {"name": "export", "description": "Exports a table.", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
INFO = {"name": "modern_hang", "version": "1.0.0"}
META = {"io.modelcontextprotocol/serverInfo": INFO}


def answer(method, params):
    if method == "server/discover":
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": INFO, "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/list":
        return {"tools": [TOOL], "ttlMs": 0, "cacheScope": "private"}
    kind = params.get("arguments", {}).get("format")
    if kind not in SCHEMA["properties"]["format"]["enum"] or not isinstance(params["arguments"].get("rows", 0), int):
        return {"content": [{"type": "text", "text": "unknown format"}], "isError": True}
    # The handler of this format was never written.
    return None if kind == "xml" else {"content": [{"type": "text", "text": "1,2"}]}


while line := sys.stdin.readline():
    request = json.loads(line)
    if "id" not in request:
        continue
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] not in ("server/discover", "tools/list", "tools/call"):
        reply["error"] = {"code": -32601, "message": "unknown method"}
    elif (result := answer(request["method"], request.get("params", {}))) is not None:
        reply["result"] = {"resultType": "complete", "_meta": META, **result}
    else:
        continue
    print(json.dumps(reply), flush=True)
