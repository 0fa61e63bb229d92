"""A proxy that forwards every request unchanged and records it."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "te", "trailer", "upgrade"}


class Recorder:
    """Listens on a free port and forwards to `port`."""

    def __init__(self, port):
        self.target, self.seen, self.lock = port, [], threading.Lock()
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                text_of = lambda value: value.encode("latin-1").decode("utf-8", "replace")
                headers = [(name.lower(), text_of(value)) for name, value in self.headers.items()]
                with recorder.lock:
                    recorder.seen.append({"method": self.command, "target": self.path, "headers": headers, "body": body})
                connection = http.client.HTTPConnection("127.0.0.1", recorder.target, timeout=30)
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    connection.putheader(name, value)
                connection.endheaders(body or None)
                answer = connection.getresponse()
                text = answer.read()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in HOP:
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)
                connection.close()

            def log_message(self, *_):
                pass

        for method in ("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "POST", "PATCH", "DELETE", "QUERY"):
            setattr(Handler, f"do_{method}", Handler.handle_any)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def during(self, work):
        """Runs `work` and returns its result and the requests that were recorded meanwhile."""
        with self.lock:
            self.seen.clear()
        result = work()
        with self.lock:
            return result, list(self.seen)
