"""How requests and answers look on the wire. Nothing here sends anything: both clients use it, each with its I/O."""

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

#: How long the server has, beyond the time that the tool has, to say that the time is over.
GRACE = 5.0
#: How long a stream may say nothing, not even that it is alive, which the server does every 15 seconds.
SILENCE = 60.0
#: How long giving up may take, to tell the server.
CANCEL = 2.0
#: The longest part of an unexpected answer that is told.
_TOLD = 200

QueryPairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Sending:
    """One request, ready to be sent."""

    method: str
    path: str
    query: QueryPairs = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    repeat: Repeat = "only_if_refused"
    timeout: httpx.Timeout | None = None
    #: Whether losing the connection leaves the execution running, so that it must be told to stop.
    keyed: bool = False
    #: Whether it asks for a stream of events.
    events: bool = False
    #: The seconds that the tool has.
    seconds: float | None = None

    @property
    def place(self) -> str:
        return f"{self.method} {self.path}"

    def arguments(self) -> dict[str, Any]:
        """What httpx wants to know."""
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
    """A request that is no execution."""
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
    """The request for an execution."""
    if timeout is not None and not timeout > 0:
        raise ValueError("timeout must be a number of seconds above 0")
    context = {
        "timeout": None if timeout is None else timeout * 1000,
        "version": version,
        "priority": priority,
        "sessionId": session_id,
        "userId": user_id,
        "idempotencyKey": idempotency_key,
    }
    keyed = idempotency_key is not None
    # With a key the id must be known early, because only that can then cancel.
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
    """The JSON of an answer that has been read."""
    try:
        return json.loads(answer.content)
    except ValueError as error:
        message = f"{sending.place} was answered with something that is no JSON: {_short(answer.text)}"
        raise UnexpectedAnswerError(message, status=answer.status_code) from error


def read_envelope(sending: Sending, answer: httpx.Response) -> ExecutionResponse:
    envelope = read_json(sending, answer)
    if not isinstance(envelope, dict) or envelope.get("success") is not True:
        raise UnexpectedAnswerError(f"{sending.place} was answered without success", status=answer.status_code)
    return cast(ExecutionResponse, envelope)


def failure(sending: Sending, answer: httpx.Response) -> MCPError:
    """What an answer with another status than 2xx, which has been read, tells."""
    try:
        envelope = json.loads(answer.content)
    except ValueError:
        envelope = None
    facts: dict[str, Any] = {
        "status": answer.status_code,
        "retry_after": read_retry_after(answer.headers.get("retry-after")),
        "replayed": answer.headers.get("idempotency-replayed") == "true",
    }
    message = f"{sending.place} was answered with status {answer.status_code}: {_short(answer.text)}"
    return error_in(envelope, **facts) or UnexpectedAnswerError(message, **facts)


def error_in(envelope: Any, **facts: Any) -> MCPError | None:
    """The error that an envelope tells of, if that is what it does."""
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
    """What an event says; `error` is raised."""
    try:
        said = json.loads(event.data)
    except ValueError as error:
        raise UnexpectedAnswerError(f"the event {event.event} is no JSON") from error
    if event.event == "error":
        raise error_in(said) or UnexpectedAnswerError("the execution failed in words that cannot be understood")
    return said


def broken(sending: Sending, error: httpx.HTTPError) -> MCPError:
    """What it means that the connection failed."""
    if isinstance(error, httpx.ReadTimeout) and sending.seconds is not None and not sending.events:
        return late(sending)
    return NetworkError(f"{sending.place} got no answer: {str(error) or type(error).__name__}")


def late(sending: Sending) -> MCPError:
    message = f"no answer came within {sending.seconds} s and some grace"
    return ExecutionTimeoutError("TIMEOUT_ERROR", message)


class Watch:
    """A stream that is alive may still take longer than its execution may."""

    def __init__(self, sending: Sending) -> None:
        self._sending = sending
        self._began = time.monotonic()

    def check(self) -> None:
        seconds = self._sending.seconds
        if seconds is not None and time.monotonic() - self._began > seconds + GRACE:
            raise late(self._sending)


def segment(name: str) -> str:
    """A name as one part of a path. Dots alone would lead somewhere else."""
    if name in ("", ".", ".."):
        raise ValueError(f"{name!r} cannot be a name")
    return quote(name, safe="")


def read_base(text: str) -> str:
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, TypeError) as error:
        raise ValueError(f"base_url is no address: {text!r}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("base_url must be http or https, with a host")
    if url.userinfo or url.query or url.fragment:
        raise ValueError("base_url must have no user, query or fragment")
    return str(url).rstrip("/")


def read_token(token: str | None) -> dict[str, str]:
    """The header for a token. The token itself is not told in errors: they end up in logs."""
    if token is None:
        return {}
    if not re.fullmatch(r"[\x21-\x7e]+", token):
        raise ValueError("token must be printable ASCII without spaces or line ends")
    return {"authorization": f"Bearer {token}"}


def _short(text: str) -> str:
    clean = " ".join(text.split())
    return f"{clean[:_TOLD]}…" if len(clean) > _TOLD else clean
