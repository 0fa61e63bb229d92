from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest

from mcp_client import AsyncMCPClient, Progress

from .conftest import Yard, fresh


def test_tools_of_the_yard_and_of_its_upstreams_are_found(yard: Yard) -> None:
    names = [tool["name"] for tool in yard.client().discover_tools()]
    assert {"add", "admin_report", "mcp__inner__add", "mcp__talker__log"} <= set(names)
    assert [tool["name"] for tool in yard.client().discover_tools(page_size=3)] == names
    plain = [tool["name"] for tool in yard.client("plain").discover_tools()]
    assert "admin_report" not in plain and "add" in plain


def test_tools_are_found_by_server_category_tags_and_words(yard: Yard) -> None:
    client = yard.client()

    def find(**filters: Any) -> list[str]:
        return [tool["name"] for tool in client.discover_tools(**filters)]

    assert find(server="talker") == ["mcp__talker__log", "mcp__talker__count", "mcp__talker__crash"]
    assert find(server="demo", category="numbers") == ["add", "convert_temperature"]
    assert find(server="inner", tags=["celsius", "kelvin"]) == ["mcp__inner__convert_temperature"]
    assert find(server="demo", q="TWO numbers") == ["add"]
    assert find(q="nothing like this & that") == []


def test_the_details_of_a_tool_are_complete(yard: Yard) -> None:
    tool = yard.client().get_tool("mcp__inner__add")
    actual = (tool["name"], tool["title"], tool["server"], tool["rawName"], tool["displayName"], tool["permissions"])
    assert actual == ("mcp__inner__add", "Add", "inner", "add", "Add", [])
    assert tool["inputSchema"]["required"] == ["a", "b"]
    assert yard.client().get_tool("admin_report")["permissions"] == ["admin"]


@pytest.mark.parametrize("name", ["add", "mcp__inner__add"])
def test_tools_of_the_yard_and_of_its_upstreams_are_executed(yard: Yard, name: str) -> None:
    response = yard.client().execute_tool(name, {"a": 1, "b": 2})
    metadata = response["metadata"]
    assert response == {"success": True, "result": {"sum": 3}, "metadata": metadata}
    assert metadata["executionId"].startswith("exec-") and metadata["duration"] >= 0
    datetime.fromisoformat(metadata["timestamp"].replace("Z", "+00:00"))


def test_all_content_blocks_are_returned_on_request(yard: Yard) -> None:
    response = yard.client().execute_tool("draw_swatch", {"color": "#ff0000"}, content="full")
    assert [block["type"] for block in response["content"]] == ["image"]


@pytest.mark.parametrize("name", ["count_down", "mcp__inner__count_down"])
def test_progress_is_received_while_the_tool_runs(yard: Yard, name: str) -> None:
    heard: list[Progress] = []
    started: list[str] = []
    params = {"from": 4, "delay_ms": 30}
    response = yard.client().execute_tool(name, params, on_progress=heard.append, on_start=started.append)
    assert response["result"] == "Lift-off!"
    assert [progress["message"] for progress in heard] == ["4…", "3…", "2…", "1…"]
    assert started == [response["metadata"]["executionId"]]


@pytest.mark.parametrize("count", [3, 500])
def test_chunks_are_received_one_by_one_or_with_the_response(yard: Yard, count: int) -> None:
    words = [f"w{at}" for at in range(count)]
    heard: list[str] = []
    response = yard.client().execute_tool("stream_words", {"text": " ".join(words)}, on_chunk=heard.append)
    assert (response["result"], heard) == (f"{count} words", words)


def test_log_lines_of_a_tool_are_received(yard: Yard) -> None:
    heard: list[object] = []
    response = yard.client().execute_tool("mcp__talker__log", {"key": "ä"}, on_log=heard.append)
    assert response["result"] == "logged"
    assert heard == [{"level": "warning", "logger": "talker", "data": {"key": "ä"}}]


def test_the_caller_is_recorded_and_the_outcome_can_be_read(yard: Yard) -> None:
    client, user = yard.client(), fresh()
    params = {"a": 1, "b": 2}
    response = client.execute_tool("add", params, user_id=user, session_id="s", priority="high")
    found = client.executions.get(response["metadata"]["executionId"])
    actual = (found["state"], found["userId"], found["sessionId"], found["response"])
    assert actual == ("succeeded", user, "s", response)
    assert len(yard.settled(user)) == 1
    assert client.executions.cancel(response["metadata"]["executionId"])["state"] == "succeeded"


@pytest.mark.parametrize("options", [{}, {"on_progress": lambda _: None}, {"idempotency_key": "fresh"}])
def test_canceling_the_task_cancels_the_execution_on_the_server(yard: Yard, options: dict[str, Any]) -> None:
    user = fresh()
    if "idempotency_key" in options:
        options = {"idempotency_key": fresh()}

    async def main() -> None:
        async with AsyncMCPClient(yard.url, yard.tokens["owner"]) as client:
            call = client.execute_tool("count_down", {"from": 100}, user_id=user, **options)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(call, 0.3)

    asyncio.run(main())
    assert [one["state"] for one in yard.settled(user)] == ["cancelled"]


@pytest.mark.parametrize("key", [None, "fresh"])
def test_an_error_in_a_callback_cancels_the_execution_on_the_server(yard: Yard, key: str | None) -> None:
    user = fresh()

    def hear(_: Progress) -> None:
        raise KeyError(user)

    options: dict[str, Any] = {"user_id": user, "idempotency_key": key and fresh()}
    with pytest.raises(KeyError, match=user):
        yard.client().execute_tool("count_down", {"from": 100}, on_progress=hear, **options)
    assert [one["state"] for one in yard.settled(user)] == ["cancelled"]


def test_asynchronous_callbacks_run_in_order() -> None:
    heard: list[str] = []

    async def hear(progress: Progress) -> None:
        await asyncio.sleep(0.02)
        heard.append(progress["message"])

    async def main(yard: Yard) -> None:
        async with AsyncMCPClient(yard.url, yard.tokens["owner"]) as client:
            await client.execute_tool("count_down", {"from": 5, "delay_ms": 1}, on_progress=hear)

    asyncio.run(main(Yard(AsyncMCPClient)))  # type: ignore[arg-type]
    assert heard == ["5…", "4…", "3…", "2…", "1…"]
