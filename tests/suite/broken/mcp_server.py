"""A small MCP server over stdio, legacy era, for the broken servers. It checks nothing on its own."""

import json
import sys

READ_ONLY = {"readOnlyHint": True, "destructiveHint": False}


def tool(name, description, properties, required=(), **more):
    """Returns a definition. Every tool is read-only, so that a generic run calls it."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": READ_ONLY, **more}


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def error(words):
    return text(words, isError=True)


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def progress(request, value):
    token = request["params"].get("_meta", {}).get("progressToken")
    if token is not None:
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": value}})


def mistake(schema, arguments):
    """Returns what is wrong with arguments, for required properties and simple types."""
    types = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
    for name in schema["required"]:
        if name not in arguments:
            return f"{name} is required"
    for name, value in arguments.items():
        wanted = schema["properties"].get(name, {})
        if "type" in wanted and (not isinstance(value, types[wanted["type"]]) or (value is True and wanted["type"] != "boolean")):
            return f"{name} must be of type {wanted['type']}"
        if "enum" in wanted and value not in wanted["enum"]:
            return f"{name} must be one of {wanted['enum']}"
    return None


def serve(tools, call, lists=None, check_names=True):
    """Answers requests until the input ends. `call(name, arguments, request)` returns the result of a tool, and
    `lists()` the tools if they change."""
    while line := sys.stdin.readline():
        request = json.loads(line)
        method, params = request.get("method"), request.get("params") or {}
        if "id" not in request:
            continue
        if method == "initialize":
            result = {
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": sys.argv[0].rpartition("/")[2], "version": "1.0.0"},
            }
        elif method == "ping":
            result = {}
        elif method == "tools/list":
            result = {"tools": lists() if lists else tools}
        elif method == "tools/call" and check_names and params["name"] not in [each["name"] for each in tools]:
            result = error(f"unknown tool {params['name']}")
        elif method == "tools/call":
            result = call(params["name"], params.get("arguments", {}), request)
        else:
            send({"id": request["id"], "error": {"code": -32601, "message": f"unknown method {method}"}})
            continue
        send({"id": request["id"], "result": result})
