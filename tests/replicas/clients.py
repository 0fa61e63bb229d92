"""MCP and REST clients that name the replica of every single request, as a load balancer without affinity picks it."""

import http.client
import json
import threading
from dataclasses import dataclass, field
from urllib.parse import urlparse

import cluster  # sets the path of `harness`
from harness.talk import INFO, LEGACY, MODERN, Refused

SECONDS = 30
ELICITATION = {"elicitation": {"form": {}, "url": {}}}
NAMED = ("tools/call", "prompts/get", "resources/read")


@dataclass
class Reply:
    """A response: `message` is the JSON-RPC response or the JSON body, `events` are the messages before it."""

    status: int
    headers: dict
    message: dict | None = None
    events: list = field(default_factory=list)
    text: str = ""

    @property
    def result(self):
        if not self.message or "result" not in self.message:
            raise Refused(f"status {self.status}: {self.text[:500] or self.message}", (self.message or {}).get("error"))
        return self.message["result"]

    @property
    def failure(self):
        """The message of a JSON-RPC error or of a result with `isError`, or an empty string."""
        message = self.message if isinstance(self.message, dict) else {}
        if isinstance(message.get("error"), dict):
            return message["error"].get("message", "error")
        if message.get("result", {}).get("isError"):
            return " ".join(part.get("text", "") for part in message["result"]["content"])
        return "" if "result" in message else self.text or f"status {self.status} without a body"


class Stream:
    """A response that is read message by message."""

    def __init__(self, connection, response):
        self.connection, self.response, self.status = connection, response, response.status
        self.headers = {key.lower(): value for key, value in response.getheaders()}
        self.is_events = "text/event-stream" in self.headers.get("content-type", "")
        # What the server says about resuming this stream.
        self.last_event_id = self.retry = None

    def messages(self):
        """Yields the JSON messages of an event stream until it ends."""
        data = []
        for line in self.response:
            line = line.decode().rstrip("\r\n")
            if line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif line.startswith("id:"):
                self.last_event_id = line[3:].strip()
            elif line.startswith("retry:"):
                self.retry = int(line[6:])
            elif not line and data:
                text, data = "\n".join(data), []
                if text:
                    yield json.loads(text)

    def reply(self, id=None, on_request=None):
        """Reads until the response to the request `id`. `on_request` handles requests of the server."""
        try:
            if not self.is_events:
                text = self.response.read().decode(errors="replace")
                try:
                    message = json.loads(text) if text else None
                except ValueError:
                    message = None
                return Reply(self.status, self.headers, message, text=text)
            events = []
            for message in self.messages():
                if message.get("id") == id and "method" not in message:
                    return Reply(self.status, self.headers, message, events)
                events.append(message)
                if "method" in message and "id" in message and on_request:
                    on_request(message)
            return Reply(self.status, self.headers, None, events, "the stream ended without a response")
        finally:
            self.close()

    def close(self):
        # `close` of the connection waits for nothing; the response holds the socket.
        self.response.close()
        self.connection.close()


def send(url, method, path, headers, body=None, seconds=SECONDS):
    """Sends a request and returns the response as a `Stream` as soon as its head has arrived."""
    where = urlparse(url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=seconds)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return Stream(connection, connection.getresponse())
    except BaseException:
        connection.close()
        raise


def bearer(token):
    return {"Authorization": f"Bearer {token}"} if token else {}


def mcp_headers(token):
    return {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **bearer(token)}


class Modern:
    """A modern client, which has no session."""

    def __init__(self, path="/mcp", token=None, capabilities=None):
        self.path, self.token, self.capabilities, self.last = path, token, capabilities or {}, 0

    def ask(self, url, method, params=None, seconds=SECONDS):
        self.last += 1
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": INFO,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        }
        params = {**(params or {}), "_meta": meta}
        headers = {**mcp_headers(self.token), "MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method in NAMED:
            headers["Mcp-Name"] = params.get("name") or params.get("uri")
        body = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        return send(url, "POST", self.path, headers, body, seconds).reply(self.last)

    def call(self, url, name, arguments=None, seconds=SECONDS, **more):
        return self.ask(url, "tools/call", {"name": name, "arguments": arguments or {}, **more}, seconds)


class Legacy:
    """A session of a legacy client. Every request names the replica that it is sent to."""

    def __init__(self, url, path="/mcp", token=None, capabilities=None, version=LEGACY, seconds=SECONDS):
        self.path, self.token, self.last, self.lock = path, token, 0, threading.Lock()
        self.id, self.version = None, version
        params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": INFO}
        about = self.ask(url, "initialize", params, seconds=seconds)
        self.id = about.headers.get("mcp-session-id")
        if not about.result or not self.id:
            raise Refused("no session ID")
        self.notify(url, "notifications/initialized")

    def headers(self):
        more = {"MCP-Protocol-Version": self.version, "Mcp-Session-Id": self.id} if self.id else {}
        return {**mcp_headers(self.token), **more}

    def notify(self, url, method, params=None):
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        return send(url, "POST", self.path, self.headers(), message).reply()

    def respond(self, url, id, result):
        return send(url, "POST", self.path, self.headers(), {"jsonrpc": "2.0", "id": id, "result": result}).reply()

    def start(self, url, method, params=None, seconds=SECONDS):
        """Sends a request. Returns its ID and the response as a `Stream`."""
        with self.lock:
            self.last += 1
            id = self.last
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
        return id, send(url, "POST", self.path, self.headers(), message, seconds)

    def ask(self, url, method, params=None, on_request=None, seconds=SECONDS):
        id, stream = self.start(url, method, params, seconds)
        return stream.reply(id, on_request)

    def call(self, url, name, arguments=None, on_request=None, seconds=SECONDS, **more):
        return self.ask(url, "tools/call", {"name": name, "arguments": arguments or {}, **more}, on_request, seconds)

    def batch(self, url, *methods):
        """Sends requests without parameters as one batch."""
        messages = [{"jsonrpc": "2.0", "id": id, "method": method} for id, method in enumerate(methods, 1000)]
        return send(url, "POST", self.path, {**self.headers(), "Accept": "application/json"}, messages).reply()

    def listen(self, url, last_event_id=None, seconds=SECONDS):
        """Opens the standalone stream, or resumes a stream."""
        more = {"Last-Event-ID": last_event_id} if last_event_id else {}
        return send(url, "GET", self.path, {**self.headers(), "Accept": "text/event-stream", **more}, None, seconds)

    def delete(self, url):
        return send(url, "DELETE", self.path, self.headers()).reply()


def execute(url, name, params=None, token=None, seconds=SECONDS, headers=None, **context):
    """Calls a tool over REST."""
    headers = {"Content-Type": "application/json", **bearer(token), **(headers or {})}
    body = {"params": params or {}, **({"context": context} if context else {})}
    return send(url, "POST", f"/mcp/tools/{name}/execute", headers, body, seconds).reply()


def content(reply):
    """Returns the structured content of a successful call."""
    if reply.failure:
        raise Refused(f"status {reply.status}: {reply.failure}", (reply.message or {}).get("error"))
    return reply.result["structuredContent"]
