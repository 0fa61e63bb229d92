from __future__ import annotations

import pytest

from mcp_client import MCPError, NetworkError, RateLimitError, Retry

from .conftest import Yard, fresh

COUNT = "mcp__talker__count"


def test_calls_beyond_the_rate_limit_are_retried_until_all_are_done(yard: Yard) -> None:
    slow = yard.client("slow", retry=Retry(retries=10, base_delay=0.1))
    assert [slow.execute_tool("add", {"a": a, "b": 0})["result"]["sum"] for a in (1, 2, 3)] == [1, 2, 3]


def test_a_retry_after_beyond_the_maximum_delay_is_not_retried(yard: Yard) -> None:
    impatient = yard.client("slow", retry=Retry(retries=5, max_delay=0.5))
    with pytest.raises(RateLimitError):
        for _ in range(4):
            impatient.execute_tool("add", {"a": 1, "b": 0})


@pytest.mark.parametrize("cue", ["before-502-2", "before-503-3", "after-502-1", "cut-0-1"])
def test_reading_is_retried(yard: Yard, cue: str) -> None:
    client, seen = yard.failing(cue)
    assert client.get_tool("add")["name"] == "add"
    when, _, times = cue.split("-")
    assert seen() == {"requests": int(times) + 1, "forwarded": 1 if when == "before" else 2}


def test_retries_stop_at_the_limit(yard: Yard) -> None:
    client, seen = yard.failing("before-503-4")
    with pytest.raises(MCPError) as caught:
        client.get_tool("add")
    assert (caught.value.status, seen()) == (503, {"requests": 4, "forwarded": 0})


@pytest.mark.parametrize("status", [500, 504, 404])
def test_other_failures_are_not_retried(yard: Yard, status: int) -> None:
    client, seen = yard.failing(f"before-{status}-1")
    with pytest.raises(MCPError) as caught:
        client.get_tool("add")
    assert (caught.value.status, seen()) == (status, {"requests": 1, "forwarded": 0})


@pytest.mark.parametrize("cue", ["before-502-1", "before-503-1", "after-502-1", "cut-0-1"])
def test_an_execution_that_may_have_happened_is_not_retried(yard: Yard, cue: str) -> None:
    client, seen = yard.failing(cue)
    when, status, _ = cue.split("-")
    key = fresh()
    with pytest.raises(NetworkError if when == "cut" else MCPError) as caught:
        client.execute_tool(COUNT, {"key": key})
    assert caught.value.status == (None if when == "cut" else int(status))
    forwarded = 0 if when == "before" else 1
    assert seen() == {"requests": 1, "forwarded": forwarded}
    assert yard.client().execute_tool(COUNT, {"key": key})["result"] == forwarded + 1


def test_an_execution_rejected_by_the_rate_limit_is_retried(yard: Yard) -> None:
    client, seen = yard.failing("before-429-1")
    assert client.execute_tool(COUNT, {"key": fresh()})["result"] == 1
    assert seen() == {"requests": 2, "forwarded": 1}


@pytest.mark.parametrize("cue", ["before-502-2", "after-502-1", "after-503-2", "cut-0-1"])
def test_with_a_key_an_execution_is_retried_and_runs_once(yard: Yard, cue: str) -> None:
    client, seen = yard.failing(cue)
    key, user = fresh(), fresh()
    response = client.execute_tool(COUNT, {"key": key}, idempotency_key=key, user_id=user)
    assert (response["result"], len(yard.settled(user))) == (1, 1)
    when, _, times = cue.split("-")
    assert seen() == {"requests": int(times) + 1, "forwarded": 1 if when == "before" else int(times) + 1}


def test_an_idempotent_execution_is_retried(yard: Yard) -> None:
    client, seen = yard.failing("after-502-1")
    assert client.execute_tool(COUNT, {"key": fresh()}, idempotent=True)["result"] == 2
    assert seen() == {"requests": 2, "forwarded": 2}


def test_an_upstream_that_recovers_is_reached_again(yard: Yard) -> None:
    with pytest.raises(MCPError):
        yard.client().execute_tool("mcp__fragile__crash")
    patient = yard.client(retry=Retry(retries=30, base_delay=0.4, max_delay=1))
    assert patient.execute_tool("mcp__fragile__count", {"key": fresh()}, idempotent=True)["result"] == 1


def test_the_same_key_gives_the_same_execution(yard: Yard) -> None:
    client, key = yard.client(), fresh()
    first = client.execute_tool(COUNT, {"key": key}, idempotency_key=key)
    assert client.execute_tool(COUNT, {"key": key}, idempotency_key=key) == first
