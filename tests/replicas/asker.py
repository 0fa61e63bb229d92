"""A legacy MCP server over stdio that says who it is, counts, waits, and asks its client.

Every replica starts its own. REPLICA_NAME is in the environment of its process, so that every result tells which replica
performed the call. NOTES is a file to which `note` appends a line, so that a test can count how often a call was performed.
"""

import itertools
import json
import os
import queue
import sys
import threading
import time

WHO = {"replica": os.environ.get("REPLICA_NAME"), "pid": os.getpid()}
TEXT, NUMBER = {"type": "string"}, {"type": "number"}
TOOLS = {
    "who": ("Says which replica performs the call, and how many calls of this process came before.", {}),
    "ask": ("Asks `rounds` questions about `id` in order.", {"id": TEXT, "rounds": NUMBER}),
    "wait": ("Waits and reports progress.", {"seconds": NUMBER}),
    "note": ("Appends a line to a file.", {"line": TEXT}),
    "add_tool": ("Adds a tool that does what `who` does.", {"name": TEXT}),
}
writing = threading.Lock()
pending = {}
numbers = itertools.count(1)
counting = threading.Lock()
calls = 0


def write(message):
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def ask(message):
    """Asks the client for a text. Returns the answer."""
    id = f"question-{next(numbers)}"
    pending[id] = answers = queue.Queue()
    schema = {"type": "object", "properties": {"answer": TEXT}, "required": ["answer"]}
    write({"id": id, "method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}})
    answer = answers.get(timeout=120)
    if "error" in answer:
        return f"error {answer['error']['message']}"
    return answer["result"].get("content", {}).get("answer", answer["result"]["action"])


def call(name, arguments, token):
    global calls
    with counting:
        before, calls = calls, calls + 1
    if name == "ask":
        rounds = range(1, int(arguments.get("rounds", 1)) + 1)
        return {**WHO, "id": arguments["id"], "answers": [ask(f"{arguments['id']} {each}") for each in rounds]}
    if name == "wait":
        until = time.monotonic() + arguments["seconds"]
        while (left := until - time.monotonic()) > 0:
            if token is not None:
                params = {"progressToken": token, "progress": arguments["seconds"] - left, "total": arguments["seconds"]}
                write({"method": "notifications/progress", "params": params})
            time.sleep(min(left, 0.5))
    if name == "note":
        with open(os.environ["NOTES"], "a") as file:
            file.write(f"{arguments['line']}\n")
    if name == "add_tool":
        TOOLS[arguments["name"]] = TOOLS["who"]
        write({"method": "notifications/tools/list_changed"})
    return {**WHO, "before": before}


def perform(message):
    params = message["params"]
    try:
        token = params.get("_meta", {}).get("progressToken")
        seen = call(params["name"], params.get("arguments", {}), token)
        result = {"content": [{"type": "text", "text": json.dumps(seen)}], "structuredContent": seen}
    except Exception as error:
        result = {"content": [{"type": "text", "text": repr(error)}], "isError": True}
    write({"id": message["id"], "result": result})


def handle(message):
    method, id = message.get("method"), message.get("id")
    if method is None:
        if id in pending:
            pending[id].put(message)
    elif id is None:
        pass
    elif method == "initialize":
        about = {"name": "asker", "version": "1.0.0"}
        version = message["params"]["protocolVersion"]
        write({"id": id, "result": {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": about}})
    elif method == "tools/list":
        schema = lambda properties: {"type": "object", "properties": properties, "required": [*properties][:1]}
        tools = [
            {"name": name, "description": about, "inputSchema": schema(properties)} for name, (about, properties) in list(TOOLS.items())
        ]
        write({"id": id, "result": {"tools": tools}})
    elif method == "tools/call":
        threading.Thread(target=perform, args=[message], daemon=True).start()
    elif method == "ping":
        write({"id": id, "result": {}})
    else:
        write({"id": id, "error": {"code": -32601, "message": "Method not found"}})


for line in sys.stdin:
    handle(json.loads(line))
