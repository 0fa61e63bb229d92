"""The asynchronous client: which requests exist, and which of them are retried.

client.py is generated from this file. After a change, run `python tools/generate_blocking.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar, cast

import anyio
import httpx

from .errors import MCPError, NetworkError, UnexpectedAnswerError
from .events import EventReader, ServerEvent
from .exchange import (
    CANCEL,
    QueryPairs,
    Sending,
    Watch,
    broken,
    failure,
    is_stream,
    order,
    plain,
    read_base,
    read_envelope,
    read_event,
    read_json,
    read_token,
    segment,
    tool_query,
)
from .protocol import Content, Execution, ExecutionResponse, LogLine, Priority, Progress, State, Tool, ToolDetails
from .retry import Retry

T = TypeVar("T")


class AsyncMCPClient:
    """A client for the REST API of a yard. Use it as a context manager, or close it."""

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        retry: Retry | None = None,
        request_timeout: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._base = read_base(base_url)
        self._retry = retry or Retry()
        self._request_timeout = request_timeout
        self._http = httpx.AsyncClient(headers=read_token(token), transport=transport)
        self.executions = AsyncExecutions(self)

    async def __aenter__(self) -> AsyncMCPClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._http.aclose()

    async def discover_tools(
        self,
        *,
        server: str | None = None,
        category: str | None = None,
        tags: list[str] | None = None,
        q: str | None = None,
        page_size: int | None = None,
    ) -> list[Tool]:
        """Returns all matching tools that the caller may use. `page_size` is the number of tools per request."""
        query = tool_query(server, category, tags, q, page_size)
        tools: list[Tool] = []
        cursor: QueryPairs = []
        while True:
            page = await self.request("GET", "/mcp/tools", query=query + cursor)
            if not isinstance(page, dict) or not isinstance(page.get("tools"), list):
                raise UnexpectedAnswerError("the response to the tool list request has no `tools`")
            tools.extend(page["tools"])
            if "nextCursor" not in page:
                return tools
            cursor = [("cursor", page["nextCursor"])]

    async def get_tool(self, name: str) -> ToolDetails:
        """Returns the details of one tool."""
        return cast(ToolDetails, await self.request("GET", f"/mcp/tools/{segment(name)}"))

    async def execute_tool(
        self,
        name: str,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
        on_progress: Callable[[Progress], object] | None = None,
        on_chunk: Callable[[Any], object] | None = None,
        on_log: Callable[[LogLine], object] | None = None,
        on_start: Callable[[str], object] | None = None,
        version: str | None = None,
        priority: Priority | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        idempotent: bool = False,
        content: Content | None = None,
    ) -> ExecutionResponse:
        """Executes a tool and returns the response. Raises an MCPError if the execution fails.

        `timeout` is in seconds. `on_start` receives the execution ID as soon as it is known. `idempotent` states that
        the tool can safely run twice, which makes retries safe, as an `idempotency_key` does.
        """
        callbacks: dict[str, Callable[[Any], object] | None] = {
            "progress": on_progress,
            "chunk": on_chunk,
            "log": on_log,
            "start": on_start,
        }
        sending = order(
            name,
            params,
            heard=any(callbacks.values()),
            timeout=timeout,
            version=version,
            priority=priority,
            session_id=session_id,
            user_id=user_id,
            idempotency_key=idempotency_key,
            idempotent=idempotent,
            content=content,
        )
        return await self._again(sending, lambda: self._execute_once(sending, callbacks))

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: QueryPairs | None = None,
        headers: dict[str, str] | None = None,
        body: Any = None,
    ) -> Any:
        """Sends any other request to the API, with a JSON body and a JSON response. GET and HEAD are retried."""
        sending = plain(method, path, query or [], headers, body, self._request_timeout)
        return await self._again(sending, lambda: self._request_once(sending))

    async def _request_once(self, sending: Sending) -> Any:
        try:
            answer = await self._http.send(self._build(sending))
        except httpx.HTTPError as error:
            raise broken(sending, error) from error
        if not answer.is_success:
            raise failure(sending, answer)
        return read_json(sending, answer)

    async def _execute_once(
        self,
        sending: Sending,
        callbacks: dict[str, Callable[[Any], object] | None],
    ) -> ExecutionResponse:
        execution: str | None = None
        over = False
        answer: httpx.Response | None = None
        try:
            answer = await self._http.send(self._build(sending), stream=True)
            if not answer.is_success:
                await answer.aread()
                over = True
                raise failure(sending, answer)
            execution = answer.headers.get("x-execution-id")
            if execution is not None:
                await _notify(callbacks, "start", execution)
            if is_stream(answer):
                reader, watch = EventReader(), Watch(sending)
                async for piece in answer.aiter_bytes():
                    for event in reader.push(piece):
                        over = event.event in ("result", "error")
                        response = await _handle_event(callbacks, event)
                        if response is not None:
                            return response
                    watch.check()
                raise NetworkError("the stream ended before the execution did")
            await answer.aread()
            over = True
            response = read_envelope(sending, answer)
            for chunk in response.get("chunks", []):
                await _notify(callbacks, "chunk", chunk)
            return response
        except httpx.HTTPError as error:
            over = True
            raise broken(sending, error) from error
        except NetworkError:
            over = True
            raise
        finally:
            # Without the shield, a canceled task could not await anything here.
            with anyio.CancelScope(shield=True):
                await self._release(sending, answer, None if over else execution)

    async def _release(self, sending: Sending, answer: httpx.Response | None, unfinished: str | None) -> None:
        # Closing the response cancels the execution, unless it has an idempotency key: then the
        # server keeps it running for a retry, and only a request can stop it.
        if answer is not None:
            await answer.aclose()
        if sending.keyed and unfinished is not None:
            await self._tell_to_stop(unfinished)

    async def _tell_to_stop(self, execution: str) -> None:
        sending = plain("DELETE", f"/mcp/executions/{segment(execution)}", [], None, None, CANCEL)
        try:
            await self._http.send(self._build(sending))
        except httpx.HTTPError:
            # Canceling is best effort: the caller has already stopped waiting.
            pass

    def _build(self, sending: Sending) -> httpx.Request:
        timeout = sending.timeout
        return self._http.build_request(
            sending.method, self._base + sending.path, timeout=timeout, **sending.arguments()
        )

    async def _again(self, sending: Sending, attempt: Callable[[], Awaitable[T]]) -> T:
        tried = 0
        while True:
            tried += 1
            try:
                return await attempt()
            except MCPError as error:
                pause = self._retry.pause(error, tried, sending.repeat)
                if pause is None:
                    raise
            await anyio.sleep(pause)


class AsyncExecutions:
    """Running and recently finished executions."""

    def __init__(self, client: AsyncMCPClient) -> None:
        self._client = client

    async def list(
        self,
        *,
        state: State | None = None,
        tool: str | None = None,
        limit: int | None = None,
    ) -> list[Execution]:
        """Returns recent executions, newest first, at most `limit`. Default: 100; maximum: 1000."""
        pairs = [("state", state), ("tool", tool), ("limit", None if limit is None else str(limit))]
        query = [(name, value) for name, value in pairs if value is not None]
        answer = await self._client.request("GET", "/mcp/executions", query=query)
        return cast("list[Execution]", answer["executions"])

    async def get(self, execution_id: str) -> Execution:
        """Returns one execution, with its outcome once it has ended."""
        return cast(Execution, await self._client.request("GET", f"/mcp/executions/{segment(execution_id)}"))

    async def cancel(self, execution_id: str) -> Execution:
        """Cancels an execution. An execution that has ended is not changed."""
        return cast(Execution, await self._client.request("DELETE", f"/mcp/executions/{segment(execution_id)}"))


async def _notify(callbacks: dict[str, Callable[[Any], object] | None], what: str, data: Any) -> None:
    callback = callbacks.get(what)
    if callback is not None:
        answer = callback(data)
        if inspect.isawaitable(answer):
            await answer


async def _handle_event(
    callbacks: dict[str, Callable[[Any], object] | None],
    event: ServerEvent,
) -> ExecutionResponse | None:
    if event.event not in ("progress", "chunk", "log", "result", "error"):
        return None
    data = read_event(event)
    if event.event != "result":
        await _notify(callbacks, event.event, data)
        return None
    # An execution that ended before it could be streamed has its chunks in the envelope.
    for chunk in data.get("chunks", []):
        await _notify(callbacks, "chunk", chunk)
    return cast(ExecutionResponse, data)
