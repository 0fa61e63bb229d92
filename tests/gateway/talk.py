"""A raw MCP client in both eras, for comparing what servers say: no SDK may change a byte in between."""

import http.client
import json
import queue
import subprocess
import threading
from urllib.parse import urlparse

SECONDS = 60
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
INFO = {"name": "toolyard-gateway-test", "version": "1.0.0"}
SERVER_INFO = "io.modelcontextprotocol/serverInfo"


class Refused(Exception):
    """The server answered with a JSON-RPC error, or not at all."""


def exact(text):
    """JSON with the order of keys and the text of numbers kept, so that `==` means the same JSON."""
    return json.loads(text, object_pairs_hook=list, parse_int=lambda n: ("n", n), parse_float=lambda n: ("n", n))


class Lines:
    """A server over stdio."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **options
        )
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def exchange(self, message, _headers):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        while "id" in message:
            line = self.lines.get(timeout=SECONDS)
            if line is None:
                raise Refused("the server ended")
            try:
                read = json.loads(line)
            except ValueError:
                continue
            if read.get("id") == message["id"] and "method" not in read:
                return line
        return None

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Http:
    """A server over streamable HTTP."""

    def __init__(self, url, token=None):
        self.url = urlparse(url)
        self.token = token
        self.session = None

    def exchange(self, message, headers):
        connection = http.client.HTTPConnection(self.url.netloc, timeout=SECONDS)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        connection.request("POST", self.url.path, json.dumps(message), headers)
        response = connection.getresponse()
        self.session = response.getheader("Mcp-Session-Id") or self.session
        text = response.read().decode()
        connection.close()
        if "id" not in message:
            return None
        if "text/event-stream" in (response.getheader("Content-Type") or ""):
            for line in text.splitlines():
                if line.startswith("data:") and line[5:].strip():
                    data = line[5:].strip()
                    read = json.loads(data)
                    if read.get("id") == message["id"] and "method" not in read:
                        return data
            raise Refused(f"a stream without an answer: {text[:300]}")
        if not text:
            raise Refused(f"HTTP status {response.status}")
        return text

    def close(self):
        if self.session:
            connection = http.client.HTTPConnection(self.url.netloc, timeout=5)
            headers = {"Mcp-Session-Id": self.session}
            if self.token:
                headers["Authorization"] = f"Bearer {self.token}"
            connection.request("DELETE", self.url.path, headers=headers)
            connection.getresponse().read()
            connection.close()


class Talk:
    """A conversation in one era."""

    def __init__(self, wire, era):
        self.wire, self.era, self.last = wire, era, 0
        if era == "legacy":
            params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": INFO}
            self.about = self.ask("initialize", params)
            self.wire.exchange({"jsonrpc": "2.0", "method": "notifications/initialized"}, self.headers("", {}))
        else:
            self.about = self.ask("server/discover", {})

    def headers(self, method, params):
        if self.era == "legacy":
            return {} if method == "initialize" else {"MCP-Protocol-Version": LEGACY}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method in ("tools/call", "prompts/get", "resources/read"):
            headers["Mcp-Name"] = params.get("name") or params.get("uri")
        return headers

    def ask(self, method, params):
        """The result, as exact JSON."""
        self.last += 1
        if self.era == "modern":
            params = {
                **params,
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": MODERN,
                    "io.modelcontextprotocol/clientInfo": INFO,
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            }
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        answer = dict(exact(self.wire.exchange(message, self.headers(method, params))))
        if "result" not in answer:
            raise Refused(f"{method}: {answer.get('error')}")
        return answer["result"]

    def all(self, method, key):
        """Every item of a list, through all its pages."""
        items, cursor = [], {}
        while True:
            page = dict(self.ask(method, cursor))
            items += page[key]
            if not page.get("nextCursor"):
                return items
            cursor = {"cursor": page["nextCursor"]}

    def close(self):
        self.wire.close()


def plain(result):
    """A result without what only the modern era adds."""
    kept = []
    for key, value in result:
        if key in ("resultType", "ttlMs", "cacheScope"):
            continue
        if key == "_meta":
            value = [pair for pair in value if pair[0] != SERVER_INFO]
            if not value:
                continue
        kept.append([key, value] if isinstance(key, list) else (key, value))
    return kept
