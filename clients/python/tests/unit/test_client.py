from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mcp_client import (
    ExecutionTimeoutError,
    MCPClient,
    NetworkError,
    Retry,
    ToolNotFoundError,
    UnexpectedAnswerError,
    exchange,
)

METADATA = {"executionId": "exec-1", "duration": 1, "timestamp": "2026-01-01T00:00:00Z"}
DONE = {"success": True, "result": "done", "metadata": METADATA}
FAST = Retry(base_delay=0.001)
NEVER = Retry(retries=0)
Make = Callable[..., MCPClient]
Handler = Any
Answer = Callable[[Handler, int], None]


@contextmanager
def server(answer: Answer) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Runs a server with the given responses, and records the requests."""
    seen: list[dict[str, Any]] = []

    class Handling(BaseHTTPRequestHandler):
        def handle_request(self) -> None:
            length = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            seen.append({"method": self.command, "path": self.path, "headers": self.headers, "body": body})
            answer(self, len(seen))

        do_GET = do_POST = do_DELETE = handle_request

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handling)
    listening.daemon_threads = True
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_address[1]}", seen
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


def send(handler: Handler, status: int, body: object, kind: str = "application/json", **headers: str) -> None:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    handler.send_response(status)
    for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)


def stream(handler: Handler, text: str) -> None:
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream; charset=utf-8")
    handler.send_header("x-execution-id", "exec-1")
    handler.end_headers()
    handler.wfile.write(text.encode())


def test_the_custom_metadata_of_a_tool_has_a_type(make: Make) -> None:
    metadata = {"version": "2.1.0", "custom": {"pricing": "premium", "sla": "99.9%", "region": "us-east-1"}}
    tool = {"name": "t", "description": "", "inputSchema": {}, "server": "s", "metadata": metadata}

    with server(lambda handler, _: send(handler, 200, {"version": "1.0", "tools": [tool]})) as (url, _):
        found = make(url, "secret").discover_tools()[0]
    # Without its own type, mypy would reject the key.
    assert found["metadata"]["custom"]["region"] == "us-east-1"


def test_an_execution_is_sent_as_the_protocol_says(make: Make) -> None:
    with server(lambda handler, _: send(handler, 200, DONE)) as (url, seen):
        client = make(f"{url}/yard/", "secret")
        options: dict[str, Any] = {"version": "2", "priority": "high", "session_id": "s", "user_id": "u"}
        assert client.execute_tool("a/b ü", {"x": 1}, timeout=0.5, content="full", **options) == DONE
        assert (seen[0]["method"], seen[0]["path"]) == ("POST", "/yard/mcp/tools/a%2Fb%20%C3%BC/execute?content=full")
        context = {"timeout": 500, "version": "2", "priority": "high", "sessionId": "s", "userId": "u"}
        assert seen[0]["body"] == {"params": {"x": 1}, "context": context}
        names = ["authorization", "accept", "content-type", "x-mcp-version"]
        headers = [seen[0]["headers"][name] for name in names]
        assert headers == ["Bearer secret", "application/json", "application/json", "1.0"]


def test_a_paginated_list_is_combined(make: Make) -> None:
    def answer(handler: Handler, number: int) -> None:
        first = {"tools": [{"name": "a"}], "nextCursor": "after.a"}
        send(handler, 200, first if number == 1 else {"tools": [{"name": "b"}]})

    with server(answer) as (url, seen):
        tools = make(url).discover_tools(tags=["x", "y"], q="z", page_size=1)
        assert [tool["name"] for tool in tools] == ["a", "b"]
        path = "/mcp/tools?q=z&tag=x&tag=y&limit=1"
        assert [one["path"] for one in seen] == [path, f"{path}&cursor=after.a"]
        assert seen[0]["headers"]["authorization"] is None


def test_a_response_outside_the_protocol_is_quoted_in_the_error(make: Make) -> None:
    with server(lambda handler, _: send(handler, 500, "<h1>Oh\n no</h1>", "text/html")) as (url, _):
        with pytest.raises(UnexpectedAnswerError) as caught:
            make(url).get_tool("add")
        message = "GET /mcp/tools/add returned status 500: <h1>Oh no</h1>"
        assert (str(caught.value), caught.value.status) == (message, 500)


def test_a_response_of_200_without_an_envelope_is_an_error(make: Make) -> None:
    bodies: list[object] = ["hello", None, {"success": False}, []]
    with server(lambda handler, number: send(handler, 200, bodies[number - 1])) as (url, _):
        client = make(url)
        for _ in bodies:
            with pytest.raises(UnexpectedAnswerError):
                client.execute_tool("add")


def test_a_stream_that_breaks_off_is_a_network_error_and_retried_only_with_a_key(make: Make) -> None:
    def answer(handler: Handler, number: int) -> None:
        start = 'event: progress\ndata: {"progress":1}\n\nevent: novelty\ndata: ?\n\nevent: result\nda'
        stream(handler, f"{start}ta: {json.dumps(DONE)}\n\n" if number == 3 else start)

    with server(answer) as (url, seen):
        client, heard = make(url, retry=FAST), list[object]()
        with pytest.raises(NetworkError):
            client.execute_tool("a", on_progress=heard.append)
        assert len(seen) == 1
        assert client.execute_tool("a", on_progress=heard.append, idempotency_key="k") == DONE
        assert ([one["method"] for one in seen], heard) == (["POST"] * 3, [{"progress": 1}] * 3)


def test_a_callback_that_raises_cancels_the_execution_and_its_error_is_raised(make: Make) -> None:
    def answer(handler: Handler, _: int) -> None:
        if handler.command == "DELETE":
            send(handler, 200, {})
        else:
            stream(handler, 'event: progress\ndata: {"progress":1}\n\n')

    def hear(_: object) -> None:
        raise ZeroDivisionError

    with server(answer) as (url, seen):
        with pytest.raises(ZeroDivisionError):
            make(url).execute_tool("a", on_progress=hear, idempotency_key="k")
        assert [(one["method"], one["path"]) for one in seen][1:] == [("DELETE", "/mcp/executions/exec-1")]


def test_waiting_for_a_silent_server_times_out(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "GRACE", 0.1)
    with server(lambda *_: time.sleep(0.5)) as (url, _):
        client = make(url, request_timeout=0.05, retry=NEVER)
        with pytest.raises(NetworkError):
            client.get_tool("a")
        with pytest.raises(ExecutionTimeoutError) as caught:
            client.execute_tool("a", timeout=0.1)
        assert caught.value.status is None


def test_a_stream_that_is_alive_but_late_times_out(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "GRACE", 0.1)

    def answer(handler: Handler, _: int) -> None:
        stream(handler, ":\n\n")
        for _ in range(100):
            time.sleep(0.02)
            try:
                handler.wfile.write(b":\n\n")
            except OSError:
                return

    with server(answer) as (url, _), pytest.raises(ExecutionTimeoutError):
        make(url).execute_tool("a", timeout=0.1, on_progress=print)


def test_a_refused_connection_is_a_network_error_with_a_reason(make: Make) -> None:
    with pytest.raises(NetworkError, match=r"^GET /mcp/tools got no response: .+"):
        make("http://127.0.0.1:1", retry=NEVER).discover_tools()


def test_a_redirection_is_not_followed(make: Make) -> None:
    elsewhere = {"location": "http://127.0.0.1:1/"}
    with server(lambda handler, _: send(handler, 307, "", **elsewhere)) as (url, seen):
        with pytest.raises(UnexpectedAnswerError):
            make(url, "t").get_tool("a")
        assert len(seen) == 1


@pytest.mark.parametrize("address", ["", "tools", "ftp://x", "http://u:p@x", "http://x?y", "http://x#y", "http://"])
def test_an_invalid_url_is_rejected(address: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        MCPClient(address)


@pytest.mark.parametrize("token", ["", "a b", "a\n", "ä"])
def test_an_invalid_token_is_rejected_and_not_quoted(token: str) -> None:
    with pytest.raises(ValueError, match="^token must be printable ASCII without spaces or line breaks$"):
        MCPClient("http://x", token)


def test_invalid_names_timeouts_and_params_are_rejected_before_anything_is_sent(make: Make) -> None:
    client = make("http://127.0.0.1:1")
    for name in ["", ".", ".."]:
        with pytest.raises(ValueError, match="is not a valid name"):
            client.get_tool(name)
    for timeout in [0, -1, float("nan")]:
        with pytest.raises(ValueError, match="timeout"):
            client.execute_tool("a", timeout=timeout)
    with pytest.raises(ValueError, match="JSON"):
        client.execute_tool("a", {"x": float("nan")})


def test_errors_contain_the_details_from_the_server(make: Make) -> None:
    body = {"error": {"code": "TOOL_NOT_FOUND", "message": "no", "details": [1]}, "metadata": METADATA}
    with server(lambda handler, _: send(handler, 404, body)) as (url, _):
        with pytest.raises(ToolNotFoundError) as caught:
            make(url).get_tool("a")
        assert caught.value.__dict__ == {
            "code": "TOOL_NOT_FOUND",
            "message": "no",
            "status": 404,
            "details": [1],
            "execution_id": "exec-1",
            "retry_after": None,
            "replayed": False,
        }
