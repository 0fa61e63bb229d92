from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from mcp_client import ExecutionError, MCPError, NetworkError, RateLimitError, Retry
from mcp_client.errors import error_for
from mcp_client.retry import Repeat, read_retry_after


def status(code: int, **facts: Any) -> MCPError:
    return MCPError("X", "x", status=code, **facts)


def again(error: MCPError, repeat: Repeat) -> bool:
    return Retry().pause(error, 1, repeat) is not None


def test_retries_depend_on_whether_repeating_is_safe() -> None:
    codes = [400, 401, 403, 404, 409, 413, 429, 499, 500, 501, 502, 503, 504]
    assert [code for code in codes if again(status(code), "harmless")] == [429, 502, 503]
    assert [code for code in codes if again(status(code), "only_if_refused")] == [429]
    assert again(NetworkError("x"), "harmless")
    assert not again(NetworkError("x"), "only_if_refused")
    assert not again(ExecutionError("EXECUTION_ERROR", "x"), "harmless")
    assert not again(status(502, replayed=True), "harmless")


def test_delays_double_up_to_the_maximum_with_jitter() -> None:
    retry = Retry(retries=5, base_delay=1, max_delay=5)
    pauses = [retry.pause(status(503), tried, "harmless", lambda: 1.0) for tried in range(1, 7)]
    assert pauses == [1, 2, 4, 5, 5, None]
    assert retry.pause(status(503), 2, "harmless", lambda: 0.25) == 0.5


def test_retry_after_is_honored_up_to_the_maximum_delay() -> None:
    retry = Retry(base_delay=0.5, max_delay=2)
    waits = [0, 1, 2, 3]
    pauses = [retry.pause(status(429, retry_after=wait), 1, "only_if_refused", lambda: 1.0) for wait in waits]
    assert pauses == [0.5, 1.5, 2, None]


def test_retry_after_is_a_number_of_seconds_or_a_date() -> None:
    now = 1_767_225_600.0
    dates = ["Thu, 01 Jan 2026 00:00:09 GMT", "Wed, 31 Dec 2025 00:00:00 GMT"]
    texts = [None, "7", " 7 ", "-1", "1e9", "٣", "soon", *dates]
    read = [read_retry_after(text, now) for text in texts]
    assert read == [None, 7, 7, None, None, None, None, 9, 0]


@pytest.mark.parametrize("options", [{"retries": -1}, {"base_delay": math.nan}, {"max_delay": math.inf}])
def test_invalid_settings_are_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Retry(**options)


def test_an_unknown_code_is_a_plain_error_of_this_library() -> None:
    error = error_for("NEW", "new", status=418)
    assert (type(error), error.code, error.status, str(error)) == (MCPError, "NEW", 418, "new")


@pytest.mark.parametrize("error", [error_for("RATE_LIMIT_ERROR", "slow", retry_after=2), NetworkError("gone")])
def test_errors_can_be_pickled(error: MCPError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.__dict__) == (type(error), str(error), error.__dict__)
    assert isinstance(copy, (RateLimitError, NetworkError))
