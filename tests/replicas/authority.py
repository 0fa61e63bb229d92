"""An MCP server that requires a login, combined with its authorization server. Both run in threads of this process."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlparse


class Authority:
    """Issues tokens. A refresh token can be used once; using it again revokes all tokens of the login, as RFC 9700 says."""

    def __init__(self, lifetime=3600):
        self.lifetime, self.lock = lifetime, threading.Lock()
        self.valid, self.refresh_tokens, self.issued = set(), {}, 0
        self.requests, self.reused, self.issued_at = [], 0, []
        # While `hold` is set, refreshes wait for `release`, and are dropped instead if `drop` is set.
        self.hold, self.drop, self.release = False, False, threading.Event()
        authority = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                authority.handle(self, "")

            def do_POST(self):
                authority.handle(self, self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def count(self, request):
        return self.requests.count(request)

    def revoke(self):
        self.valid.clear()

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()

    def handle(self, request, body):
        where = urlparse(request.path)
        if where.path.endswith("/mcp") and not where.path.startswith("/.well-known"):
            return self.mcp(request, json.loads(body) if body else {})
        if where.path.startswith("/.well-known/oauth-protected-resource"):
            resource = where.path.removeprefix("/.well-known/oauth-protected-resource")
            return answer(request, 200, {"resource": f"{self.url}{resource}", "authorization_servers": [self.url]})
        if where.path == "/.well-known/oauth-authorization-server":
            return answer(request, 200, {
                "issuer": self.url, "authorization_endpoint": f"{self.url}/authorize", "token_endpoint": f"{self.url}/token",
                "registration_endpoint": f"{self.url}/register", "code_challenge_methods_supported": ["S256"],
                "response_types_supported": ["code"],
            })
        if where.path == "/register":
            return answer(request, 201, {"client_id": "client-1", "redirect_uris": []})
        if where.path == "/authorize":
            query = {key: value[0] for key, value in parse_qs(where.query).items()}
            more = urlencode({"code": "c0de", "state": query["state"], "iss": self.url})
            return answer(request, 302, None, {"Location": f"{query['redirect_uri']}?{more}"})
        if where.path == "/token":
            return self.token(request, {key: value[0] for key, value in parse_qs(body).items()})
        return answer(request, 404, {})

    def token(self, request, form):
        self.requests.append(form["grant_type"])
        family = 0
        if form["grant_type"] == "refresh_token":
            if self.hold:
                self.release.wait(60)
                if self.drop:
                    request.close_connection = True
                    return None
            with self.lock:
                family = self.refresh_tokens.pop(form["refresh_token"], None)
                if family is None:
                    self.reused += 1
                    self.valid.clear()
                    self.refresh_tokens.clear()
            if family is None:
                return answer(request, 400, {"error": "invalid_grant"})
        with self.lock:
            self.issued += 1
            number = self.issued
            self.valid.add(f"access-{number}-s3cret")
            self.refresh_tokens[f"refresh-{number}-s3cret"] = family
            self.issued_at.append(time.monotonic())
        return answer(request, 200, {
            "access_token": f"access-{number}-s3cret", "token_type": "Bearer", "expires_in": self.lifetime,
            "refresh_token": f"refresh-{number}-s3cret",
        })

    def mcp(self, request, message):
        path = urlparse(request.path).path
        token = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token not in self.valid:
            metadata = f"{self.url}/.well-known/oauth-protected-resource{path}"
            return answer(request, 401, None, {"WWW-Authenticate": f'Bearer resource_metadata="{metadata}"'})
        results = {
            "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
            "tools/list": {"tools": [{"name": "read", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": token}]},
        }
        result = results.get(message.get("method"))
        if result is None:
            error = {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32601, "message": "no"}}
            return answer(request, 404, error)
        self.requests.append(message["method"])
        return answer(request, 200, {"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete", **result}})


def answer(request, status, body, headers=None):
    data = b"" if body is None else json.dumps(body).encode()
    request.send_response(status)
    for name, value in {"Content-Type": "application/json", "Content-Length": len(data), **(headers or {})}.items():
        request.send_header(name, str(value))
    request.end_headers()
    request.wfile.write(data)
