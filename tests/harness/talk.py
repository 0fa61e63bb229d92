"""A raw MCP client for both eras. It does not use an SDK, so that responses can be compared byte by byte."""

import http.client
import json
import queue
import subprocess
import threading
from urllib.parse import urlparse

SECONDS = 60
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
INFO = {"name": "toolyard-tests", "version": "1.0.0"}
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
METHOD_NOT_FOUND = {"code": -32601, "message": "Method not found"}


class Refused(Exception):
    """The server returned the JSON-RPC error `error`, or did not respond."""

    def __init__(self, message, error=None):
        super().__init__(message)
        self.error = error


def exact(text):
    """Parses JSON and preserves the key order and number texts, so that `==` means identical JSON. An object becomes a
    tuple of pairs, an array a list."""
    return json.loads(text, object_pairs_hook=tuple, parse_int=lambda n: ("n", n), parse_float=lambda n: ("n", n))


class Client:
    """The client side of server requests: the declared `capabilities`, and `answer(method, params)` for the results."""

    def __init__(self, capabilities=None, answer=None):
        self.capabilities = capabilities or {}
        self.answer = answer or (lambda method, params: None)

    def respond(self, request):
        """Returns the response to a request of the server."""
        result = self.answer(request["method"], request.get("params", {}))
        answer = {"error": METHOD_NOT_FOUND} if result is None else {"result": result}
        return {"jsonrpc": "2.0", "id": request["id"], **answer}


def is_request(message):
    return "id" in message and "method" in message


class Lines:
    """A connection to a server over stdio."""

    def __init__(self, command, stderr=subprocess.DEVNULL, **options):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, **options
        )
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def write(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def line(self):
        """Returns the next line of standard output."""
        try:
            line = self.lines.get(timeout=SECONDS)
        except queue.Empty:
            raise Refused(f"no response within {SECONDS} s") from None
        if line is None:
            raise Refused("the server exited")
        return line

    def exchange(self, message, _headers, client):
        self.write(message)
        while "id" in message:
            line = self.line()
            try:
                read = json.loads(line)
            except ValueError:
                continue
            if is_request(read):
                self.write(client.respond(read))
            elif read.get("id") == message["id"]:
                return line
        return None

    def listen(self, _headers, _client):
        """Does nothing: stdio has a single stream."""

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Http:
    """A connection to a server over Streamable HTTP."""

    def __init__(self, url, token=None):
        self.url = urlparse(url)
        self.token = token
        self.session = None

    def request(self, method, headers, body=None):
        connection = http.client.HTTPConnection(self.url.netloc, timeout=SECONDS)
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        connection.request(method, self.url.path, body, headers)
        return connection.getresponse()

    def post(self, message, headers):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        response = self.request("POST", headers, json.dumps(message))
        self.session = response.getheader("Mcp-Session-Id") or self.session
        return response

    def exchange(self, message, headers, client):
        with self.post(message, headers) as response:
            if "text/event-stream" in (response.getheader("Content-Type") or ""):
                return self.answer_in(response, message.get("id"), headers, client)
            text = response.read().decode()
        if "id" not in message:
            return None
        if not text:
            raise Refused(f"HTTP status {response.status}")
        return text

    def answer_in(self, stream, id, headers, client):
        """Returns the response from a stream, and answers the requests of the server before it."""
        for line in stream:
            data = line.decode().removeprefix("data:").strip() if line.startswith(b"data:") else ""
            if not data:
                continue
            read = json.loads(data)
            if is_request(read):
                self.post(client.respond(read), headers).read()
            elif read.get("id") == id and id is not None:
                return data
        raise Refused("the stream ended without a response")

    def listen(self, headers, client):
        """Answers server requests on the standalone stream."""

        def run():
            try:
                with self.request("GET", {"Accept": "text/event-stream", **headers}) as stream:
                    self.answer_in(stream, None, headers, client)
            except (OSError, http.client.HTTPException, Refused):
                pass  # the server ended the stream

        threading.Thread(target=run, daemon=True).start()

    def close(self):
        if self.session:
            self.request("DELETE", {}).read()


class Talk:
    """An MCP session in one era."""

    def __init__(self, wire, era, client=None):
        self.wire, self.era, self.last = wire, era, 0
        self.client = client or Client()
        if era == "legacy":
            params = {"protocolVersion": LEGACY, "capabilities": self.client.capabilities, "clientInfo": INFO}
            self.about = self.ask("initialize", params)
            headers = self.headers("", {})
            self.wire.exchange({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers, self.client)
            if self.client.capabilities:
                self.wire.listen(headers, self.client)
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
        """Returns the result as parsed by `exact`."""
        self.last += 1
        if self.era == "modern":
            params = {
                **params,
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": MODERN,
                    "io.modelcontextprotocol/clientInfo": INFO,
                    "io.modelcontextprotocol/clientCapabilities": self.client.capabilities,
                },
            }
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        answer = dict(exact(self.wire.exchange(message, self.headers(method, params), self.client)))
        if "result" not in answer:
            raise Refused(f"{method}: {answer.get('error')}", answer.get("error"))
        return answer["result"]

    def all(self, method, key):
        """Returns all items of a paginated list."""
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
    """Removes the fields that only the modern era has."""
    fields = []
    for key, value in result:
        if key in ("resultType", "ttlMs", "cacheScope"):
            continue
        if key == "_meta":
            value = tuple(pair for pair in value if pair[0] != SERVER_INFO)
            if not value:
                continue
        fields.append((key, value))
    return tuple(fields)
