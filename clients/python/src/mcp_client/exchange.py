"""Builds requests and parses responses, without any I/O. Both clients use this module."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

import httpx

from .errors import ExecutionTimeoutError, MCPError, NetworkError, UnexpectedAnswerError, error_for
from .events import ServerEvent
from .protocol import Content, ExecutionResponse, Priority
from .retry import Repeat, read_retry_after

#: How long the server may take, beyond the time limit of the tool, to report the timeout.
GRACE = 5.0
#: How long a stream may be silent; the server sends a keep-alive every 15 seconds.
SILENCE = 60.0
#: The time limit of the request that cancels an execution.
CANCEL = 2.0
#: How much of an unexpected response is quoted in an error.
_TOLD = 200

QueryPairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Sending:
    """One request, ready to send."""

    method: str
    path: str
    query: QueryPairs = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    repeat: Repeat = "only_if_refused"
    timeout: httpx.Timeout | None = None
    #: Whether the execution continues after the connection is lost, so that it must be canceled by a request.
    keyed: bool = False
    #: Whether the request asks for a stream of events.
    events: bool = False
    #: The time limit of the tool in seconds.
    seconds: float | None = None

    @property
    def place(self) -> str:
        return f"{self.method} {self.path}"

    def arguments(self) -> dict[str, Any]:
        """Returns the keyword arguments for httpx."""
        headers = {"accept": "application/json", "x-mcp-version": "1.0"}
        content = None
        if self.body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(self.body, allow_nan=False).encode()
        headers.update({name.lower(): value for name, value in self.headers.items()})
        return {"params": self.query, "headers": headers, "content": content}


def plain(
    method: str, path: str, query: QueryPairs, headers: dict[str, str] | None, body: Any, seconds: float
) -> Sending:
    """Builds a request other than an execution."""
    repeat: Repeat = "harmless" if method in ("GET", "HEAD") else "only_if_refused"
    return Sending(method, path, query, headers or {}, body, repeat, httpx.Timeout(seconds))


def tool_query(
    server: str | None, category: str | None, tags: list[str] | None, q: str | None, page_size: int | None
) -> QueryPairs:
    pairs = [("server", server), ("category", category), ("q", q)]
    query = [(name, value) for name, value in pairs if value is not None]
    query.extend(("tag", tag) for tag in tags or [])
    if page_size is not None:
        query.append(("limit", str(page_size)))
    return query


def order(
    name: str,
    params: Mapping[str, object] | None,
    *,
    heard: bool,
    timeout: float | None,
    version: str | None,
    priority: Priority | None,
    session_id: str | None,
    user_id: str | None,
    idempotency_key: str | None,
    idempotent: bool,
    content: Content | None,
) -> Sending:
    """Builds the request for an execution."""
    if timeout is not None and not timeout > 0:
        raise ValueError("timeout must be a number of seconds greater than 0")
    context = {
        "timeout": None if timeout is None else timeout * 1000,
        "version": version,
        "priority": priority,
        "sessionId": session_id,
        "userId": user_id,
        "idempotencyKey": idempotency_key,
    }
    keyed = idempotency_key is not None
    # With an idempotency key, only a request with the execution ID can cancel, so the ID must be known early.
    events = heard or keyed
    read = SILENCE if events else None if timeout is None else timeout + GRACE
    return Sending(
        "POST",
        f"/mcp/tools/{segment(name)}/execute",
        [("content", "full")] if content == "full" else [],
        {"accept": "text/event-stream" if events else "application/json"},
        {"params": dict(params or {}), "context": {key: value for key, value in context.items() if value is not None}},
        "harmless" if keyed or idempotent else "only_if_refused",
        httpx.Timeout(30.0, read=read),
        keyed,
        events,
        timeout,
    )


def is_stream(answer: httpx.Response) -> bool:
    kind = answer.headers.get("content-type", "")
    return bool(re.match(r"text/event-stream\s*(;|$)", kind, re.IGNORECASE))


def read_json(sending: Sending, answer: httpx.Response) -> Any:
    """Parses the body of a response as JSON."""
    try:
        return json.loads(answer.content)
    except ValueError as error:
        message = f"{sending.place} returned invalid JSON: {_short(answer.text)}"
        raise UnexpectedAnswerError(message, status=answer.status_code) from error


def read_envelope(sending: Sending, answer: httpx.Response) -> ExecutionResponse:
    envelope = read_json(sending, answer)
    if not isinstance(envelope, dict) or envelope.get("success") is not True:
        raise UnexpectedAnswerError(f"{sending.place} returned a response without `success: true`", status=answer.status_code)
    return cast(ExecutionResponse, envelope)


def failure(sending: Sending, answer: httpx.Response) -> MCPError:
    """Returns the error for a response with a status other than 2xx."""
    try:
        envelope = json.loads(answer.content)
    except ValueError:
        envelope = None
    facts: dict[str, Any] = {
        "status": answer.status_code,
        "retry_after": read_retry_after(answer.headers.get("retry-after")),
        "replayed": answer.headers.get("idempotency-replayed") == "true",
    }
    message = f"{sending.place} returned status {answer.status_code}: {_short(answer.text)}"
    return error_in(envelope, **facts) or UnexpectedAnswerError(message, **facts)


def error_in(envelope: Any, **facts: Any) -> MCPError | None:
    """Returns the error in an envelope, if it contains one."""
    error = envelope.get("error") if isinstance(envelope, dict) else None
    if not isinstance(error, dict):
        return None
    code, message = error.get("code"), error.get("message")
    if not isinstance(code, str) or not isinstance(message, str):
        return None
    metadata = envelope.get("metadata")
    execution_id = metadata.get("executionId") if isinstance(metadata, dict) else None
    return error_for(code, message, details=error.get("details"), execution_id=execution_id, **facts)


def read_event(event: ServerEvent) -> Any:
    """Parses the data of an event; raises the error of an `error` event."""
    try:
        data = json.loads(event.data)
    except ValueError as error:
        raise UnexpectedAnswerError(f"the data of the event `{event.event}` is not valid JSON") from error
    if event.event == "error":
        raise error_in(data) or UnexpectedAnswerError("the execution failed with an error that cannot be parsed")
    return data


def broken(sending: Sending, error: httpx.HTTPError) -> MCPError:
    """Returns the error for a failed connection."""
    if isinstance(error, httpx.ReadTimeout) and sending.seconds is not None and not sending.events:
        return late(sending)
    return NetworkError(f"{sending.place} got no response: {str(error) or type(error).__name__}")


def late(sending: Sending) -> MCPError:
    message = f"no response within the timeout of {sending.seconds} s and a grace period of {GRACE:g} s"
    return ExecutionTimeoutError("TIMEOUT_ERROR", message)


class Watch:
    """Enforces the time limit of an execution whose stream is still alive."""

    def __init__(self, sending: Sending) -> None:
        self._sending = sending
        self._began = time.monotonic()

    def check(self) -> None:
        seconds = self._sending.seconds
        if seconds is not None and time.monotonic() - self._began > seconds + GRACE:
            raise late(self._sending)


def segment(name: str) -> str:
    """Encodes a name as one path segment. `.` and `..` would change the path."""
    if name in ("", ".", ".."):
        raise ValueError(f"{name!r} is not a valid name")
    return quote(name, safe="")


def read_base(text: str) -> str:
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, TypeError) as error:
        raise ValueError(f"base_url is not a valid URL: {text!r}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("base_url must be an http or https URL with a host")
    if url.userinfo or url.query or url.fragment:
        raise ValueError("base_url must not contain a user, query or fragment")
    return str(url).rstrip("/")


def read_token(token: str | None) -> dict[str, str]:
    """Returns the header for a token. Errors do not contain the token, because they end up in logs."""
    if token is None:
        return {}
    if not re.fullmatch(r"[\x21-\x7e]+", token):
        raise ValueError("token must be printable ASCII without spaces or line breaks")
    return {"authorization": f"Bearer {token}"}


def _short(text: str) -> str:
    clean = " ".join(text.split())
    return f"{clean[:_TOLD]}…" if len(clean) > _TOLD else clean
