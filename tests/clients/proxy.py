"""A proxy in front of a yard that fails on cue, like a gateway whose upstream restarts or disappears.

The first path segment is the cue, such as `/before-503-2-abc/mcp/tools`: the first 2 requests with this cue get a 503
and are not forwarded. `after-502-1` forwards the first request and replaces the response with a 502, `cut-0-1` forwards
it and closes the connection, and `internal-500-1` responds like a yard with a bug. `/seen/CUE` returns the number of
requests and how many of them were forwarded. The rest of the cue makes it unique.
"""

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PAGE = b"<html><h1>Bad gateway</h1></html>"
BUG = {
    "success": False,
    "error": {"code": "INTERNAL_ERROR", "message": "internal error", "details": {"id": "exec-bug"}},
    "metadata": {"executionId": "exec-bug", "duration": 0, "timestamp": "2026-01-01T00:00:00.000Z"},
}
HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


class Proxy:
    def __init__(self, url):
        self.target = urlsplit(url)
        self.seen = {}
        self.lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                proxy.handle(self)

            do_GET = do_POST = do_DELETE = handle_any

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def count(self, cue, what):
        with self.lock:
            counts = self.seen.setdefault(cue, {"requests": 0, "forwarded": 0})
            counts[what] += 1
            return counts[what]

    def handle(self, request):
        body = request.rfile.read(int(request.headers.get("content-length", 0)))
        _, cue, rest = request.path.split("/", 2)
        if cue == "seen":
            with self.lock:
                return answer(request, 200, json.dumps(self.seen.get(rest, {})).encode(), "application/json")
        when, status, times = cue.split("-")[:3]
        if self.count(cue, "requests") > int(times):
            return self.forward(request, cue, rest, body)
        if when == "internal":
            return answer(request, 500, json.dumps(BUG).encode(), "application/json")
        if when in ("after", "cut"):
            self.forward(None, cue, rest, body, request)
        if when == "cut":
            request.close_connection = True
            request.connection.close()
            return None
        return answer(request, int(status), PAGE, "text/html", {"retry-after": "1"} if status == "429" else {})

    def forward(self, reader, cue, rest, body, request=None):
        """Forwards the request and streams the response to the reader. Without a reader, it discards the response."""
        self.count(cue, "forwarded")
        request = request or reader
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        connection = http.client.HTTPConnection(self.target.hostname, self.target.port, timeout=60)
        try:
            connection.request(request.command, f"/{rest}", body or None, headers)
            got = connection.getresponse()
            if reader is None:
                got.read()
                return
            reader.send_response(got.status)
            for name, value in got.getheaders():
                if name.lower() not in HOP:
                    reader.send_header(name, value)
            reader.send_header("connection", "close")
            reader.end_headers()
            while piece := got.read1(65536):
                reader.wfile.write(piece)
                reader.wfile.flush()
            reader.close_connection = True
        finally:
            connection.close()


def answer(request, status, body, kind, headers=None):
    request.send_response(status)
    for name, value in {"content-type": kind, "content-length": str(len(body)), **(headers or {})}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)
