"""An MCP server over stdio that misbehaves on cue: `hostile.py KIND`.

patterns   a tool whose results make a backtracking pattern engine work for minutes
pages      a list of tools that never ends, in pages of 8 MB
requests   2,000 requests, broken lines and lines on standard error a second, none of them asked for
resources  any number of resources to subscribe to
large      a list of tools of 4 MB, honest but heavy
"""
import json
import sys
import threading
import time

KIND = sys.argv[1]
ROWS = ["a" * 40 + "c"] * 2_500
PATTERN = "^((?=a)a|a)*b$|^a*$"
LOCK = threading.Lock()


def send(text):
    with LOCK:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def tools(cursor):
    if KIND == "patterns":
        rows = {"type": "array", "items": {"type": "string", "pattern": PATTERN}}
        return {"tools": [tool("match", outputSchema={"type": "object", "properties": {"rows": rows}})]}
    if KIND == "pages":
        page = int(cursor or 0)
        many = [tool(f"t{page}_{n}", description="x" * 40_000) for n in range(200)]
        return {"tools": many, "nextCursor": str(page + 1)}
    if KIND == "large":
        return {"tools": [tool(f"t{n}", description="x" * 20_000) for n in range(200)]}
    return {"tools": [tool("echo")]}


def answer(method, params):
    if method == "initialize":
        capabilities = {"tools": {}}
        if KIND == "resources":
            capabilities["resources"] = {"subscribe": True}
        info = {"name": f"hostile-{KIND}", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
    if method == "tools/list":
        return tools(params.get("cursor"))
    if method == "tools/call":
        return {"content": [], "structuredContent": {"rows": ROWS}}
    if method == "resources/list":
        return {"resources": []}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "hostile://{+path}", "name": "any"}]}
    if method in ("ping", "resources/subscribe", "resources/unsubscribe"):
        return {}
    return None


def flood():
    number = 0
    while True:
        for _ in range(20):
            number += 1
            send(json.dumps({"jsonrpc": "2.0", "id": f"q{number}", "method": f"hostile/{number}"}))
            send("no message at all " + "x" * 200)
            print("standard error, line", number, "x" * 200, file=sys.stderr, flush=True)
        time.sleep(0.01)


for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        continue
    if "id" not in message:
        if message["method"] == "notifications/initialized" and KIND == "requests":
            threading.Thread(target=flood, daemon=True).start()
        continue
    result = answer(message["method"], message.get("params") or {})
    if result is None:
        error = {"code": -32601, "message": "no such method"}
        send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))
    else:
        send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))
