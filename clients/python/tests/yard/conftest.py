"""The yard for the tests in this folder; see tests/clients/run."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcp_client import Execution, MCPClient, Retry

Make = Callable[..., MCPClient]
FAST = Retry(base_delay=0.01)


def fresh() -> str:
    """Returns a unique word."""
    return f"py{uuid.uuid4().hex}"


class Yard:
    def __init__(self, make: Make) -> None:
        settings = json.loads(Path(os.environ["TOOLYARD_YARD"]).read_text())
        self.url: str = settings["url"]
        #: A proxy that fails on cue, see tests/clients/proxy.py.
        self.proxy: str = settings["proxy"]
        self.tokens: dict[str, str] = settings["tokens"]
        self.make = make

    def client(self, token: str = "owner", url: str | None = None, retry: Retry = FAST) -> MCPClient:
        return self.make(url or self.url, self.tokens[token], retry=retry)

    def failing(self, cue: str) -> tuple[MCPClient, Callable[[], Any]]:
        """Returns a client behind the proxy, and a function for how many requests the proxy received and forwarded."""
        name = f"{cue}-{fresh()}"
        return self.client(url=f"{self.proxy}/{name}"), lambda: httpx.get(f"{self.proxy}/seen/{name}").json()

    def settled(self, user: str) -> list[Execution]:
        """Returns the executions of one user once none of them is running."""
        client = self.client()
        for _ in range(200):
            found = [one for one in client.executions.list(limit=1000) if one.get("userId") == user]
            if all(one["state"] != "running" for one in found):
                break
            time.sleep(0.025)
        return found


@pytest.fixture
def yard(make: Make) -> Yard:
    return Yard(make)
