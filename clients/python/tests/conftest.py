"""Runs every client test twice, with the blocking and with the asynchronous client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from mcp_client import AsyncMCPClient, MCPClient

Make = Callable[..., MCPClient]


class Waiting:
    """Wraps the coroutines of an object as blocking methods."""

    def __init__(self, portal: BlockingPortal, inner: Any) -> None:
        self._portal = portal
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name == "executions":
            return Waiting(self._portal, found)
        return lambda *args, **options: self._portal.call(partial(found, *args, **options))


@pytest.fixture(params=["sync", "asyncio"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Creates clients and closes them afterwards."""
    with ExitStack() as stack:
        if request.param == "sync":
            yield lambda *args, **options: stack.enter_context(MCPClient(*args, **options))
            return
        portal = stack.enter_context(start_blocking_portal(request.param))

        def make_async(*args: Any, **options: Any) -> Any:
            async def build() -> AsyncMCPClient:
                return AsyncMCPClient(*args, **options)

            client = portal.call(build)
            stack.callback(portal.call, client.aclose)
            return Waiting(portal, client)

        yield make_async
