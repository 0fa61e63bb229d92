"""An MCP server that counts its calls, and connections to the REST front of a replica."""

import http.client
import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Upstream:
    """An MCP server. Its tool `work` takes `seconds` and returns the number of the call. `by_id` counts the calls by their
    argument `id`, which is returned, too."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = self.most = self.calls = 0
        self.by_id = Counter()
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if "id" not in request:
                    return self.reply(202, b"")
                result = upstream.answer(request["method"], request.get("params", {}))
                answer = {"error": {"code": -32601, "message": "unknown method"}} if result is None else {"result": result}
                self.reply(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}).encode())

            def do_GET(self):
                self.reply(405, b"")

            def do_DELETE(self):
                self.reply(200, b"")

            def reply(self, status, body):
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True  # the caller was killed

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # a replica that is killed closes its connections

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/mcp"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, method, params):
        if method == "initialize":
            info = {"name": "counter", "version": "1.0.0"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        if method == "tools/list":
            return {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}
        if method == "ping":
            return {}
        if method != "tools/call":
            return None
        arguments = params.get("arguments", {})
        with self.lock:
            self.running, self.calls = self.running + 1, self.calls + 1
            self.most, number = max(self.most, self.running), self.calls
            if "id" in arguments:
                self.by_id[arguments["id"]] += 1
        time.sleep(arguments.get("seconds", 0))
        with self.lock:
            self.running -= 1
        result = {"number": number, **({"id": arguments["id"]} if "id" in arguments else {})}
        return {"content": [{"type": "text", "text": json.dumps(result)}], "structuredContent": result}

    def forget(self):
        """Counts the most concurrent calls from now on."""
        with self.lock:
            self.most = self.running


class Connection:
    """An HTTP connection to the REST front of a replica."""

    def __init__(self, replica):
        self.connection = http.client.HTTPConnection("127.0.0.1", replica.port, timeout=60)

    def execute(self, tool, params=None, context=None):
        """Calls a tool. Returns the status, the headers and the body, or status 0 if the connection breaks."""
        body = json.dumps({"params": params or {}, **({"context": context} if context else {})})
        try:
            self.connection.request("POST", f"/mcp/tools/{tool}/execute", body, {"Content-Type": "application/json"})
            response = self.connection.getresponse()
            return response.status, response.headers, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.connection.close()
            return 0, {}, {"error": {"message": repr(error)}}

    def close(self):
        self.connection.close()
