"""The yard that the tests of this folder run against, as tests/clients/run describes it."""

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
    """A word that nobody else uses."""
    return f"py{uuid.uuid4().hex}"


class Yard:
    def __init__(self, make: Make) -> None:
        told = json.loads(Path(os.environ["TOOLYARD_YARD"]).read_text())
        self.url: str = told["url"]
        #: A proxy that fails on cue, see tests/clients/proxy.py.
        self.proxy: str = told["proxy"]
        self.tokens: dict[str, str] = told["tokens"]
        self.make = make

    def client(self, token: str = "owner", url: str | None = None, retry: Retry = FAST) -> MCPClient:
        return self.make(url or self.url, self.tokens[token], retry=retry)

    def failing(self, cue: str) -> tuple[MCPClient, Callable[[], Any]]:
        """A client behind the proxy, and how many requests the proxy got and handed on."""
        name = f"{cue}-{fresh()}"
        return self.client(url=f"{self.proxy}/{name}"), lambda: httpx.get(f"{self.proxy}/seen/{name}").json()

    def settled(self, user: str) -> list[Execution]:
        """The executions of one user, once none of them is running any more."""
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
