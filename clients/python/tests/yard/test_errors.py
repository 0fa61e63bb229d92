from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import mcp_client as library
from mcp_client import MCPError, Retry

from .conftest import Yard, fresh

NEVER = Retry(retries=0)


def expect(call: Callable[[], Any], kind: type[MCPError], code: str, status: int | None) -> MCPError:
    with pytest.raises(MCPError) as caught:
        call()
    error = caught.value
    assert (type(error), error.code, error.status) == (kind, code, status)
    assert str(error) == error.message != ""
    if status is not None:
        assert error.execution_id
    return error


def test_an_unknown_tool(yard: Yard) -> None:
    client = yard.client()
    expect(lambda: client.execute_tool("no_such_tool"), library.ToolNotFoundError, "TOOL_NOT_FOUND", 404)
    expect(lambda: client.get_tool("../executions"), library.ToolNotFoundError, "TOOL_NOT_FOUND", 404)


def test_an_unknown_version_of_a_tool(yard: Yard) -> None:
    client = yard.client()
    call = lambda: client.execute_tool("add", {"a": 1, "b": 2}, version="9.9.9")
    expect(call, library.ToolNotFoundError, "TOOL_NOT_FOUND", 404)


def test_an_unknown_execution_or_path(yard: Yard) -> None:
    client = yard.client()
    expect(lambda: client.executions.get("exec-0"), library.NotFoundError, "NOT_FOUND", 404)
    expect(lambda: client.executions.cancel("exec-0"), library.NotFoundError, "NOT_FOUND", 404)
    expect(lambda: client.request("GET", "/mcp/nothing"), library.NotFoundError, "NOT_FOUND", 404)


def test_invalid_parameters_each_with_its_pointer(yard: Yard) -> None:
    client = yard.client()
    error = expect(lambda: client.execute_tool("add", {"a": "1"}), library.ValidationError, "VALIDATION_ERROR", 400)
    assert isinstance(error, library.ValidationError)
    found = {wrong["pointer"]: wrong["provided"] for wrong in error.violations}
    assert found == {"/a": "1", "/b": None}


def test_an_unsupported_version_of_the_protocol(yard: Yard) -> None:
    client, headers = yard.client(), {"X-MCP-Version": "9.9"}
    call = lambda: client.request("GET", "/mcp/tools", headers=headers)
    error = expect(call, library.ValidationError, "VALIDATION_ERROR", 400)
    assert error.details["supported"] == ["1.0"]


def test_a_key_that_was_used_for_something_else(yard: Yard) -> None:
    client, key = yard.client(), fresh()
    client.execute_tool("add", {"a": 1, "b": 2}, idempotency_key=key)
    call = lambda: client.execute_tool("add", {"a": 1, "b": 3}, idempotency_key=key)
    expect(call, library.ValidationError, "VALIDATION_ERROR", 409)


def test_a_token_that_is_wrong_expired_or_missing(yard: Yard) -> None:
    reasons = []
    for token in ["wrong", yard.tokens["expired"], None]:
        client = yard.make(yard.url, token)
        error = expect(client.discover_tools, library.AuthenticationError, "AUTHENTICATION_ERROR", 401)
        reasons.append(error.details["reason"])
    assert reasons == ["token_unknown", "token_expired", "token_missing"]


def test_a_missing_permission(yard: Yard) -> None:
    plain = yard.client("plain")
    expect(lambda: plain.execute_tool("admin_report"), library.PermissionDeniedError, "PERMISSION_ERROR", 403)
    yard.client().execute_tool("admin_report")


def test_calls_beyond_the_rate_limit(yard: Yard) -> None:
    slow = yard.client("slow", retry=NEVER)

    def calls() -> None:
        for _ in range(4):
            slow.execute_tool("add", {"a": 1, "b": 1})

    error = expect(calls, library.RateLimitError, "RATE_LIMIT_ERROR", 429)
    assert error.retry_after is not None and error.retry_after >= 1


def test_parameters_that_are_too_large(yard: Yard) -> None:
    client = yard.client()
    call = lambda: client.execute_tool("stream_words", {"text": "x" * 300_000})
    expect(call, library.PayloadTooLargeError, "PAYLOAD_TOO_LARGE", 413)


def test_a_body_of_another_media_type(yard: Yard) -> None:
    client, headers = yard.client(), {"Content-Type": "text/plain"}
    call = lambda: client.request("POST", "/mcp/tools/add/execute", body={}, headers=headers)
    expect(call, library.UnsupportedMediaTypeError, "UNSUPPORTED_MEDIA_TYPE", 415)


def test_a_method_that_the_path_does_not_support(yard: Yard) -> None:
    client = yard.client()
    expect(lambda: client.request("PUT", "/mcp/tools"), library.MethodNotAllowedError, "METHOD_NOT_ALLOWED", 405)


def test_a_tool_that_times_out_as_a_response_and_as_an_event(yard: Yard) -> None:
    client = yard.client()

    def call(**options: Any) -> Callable[[], Any]:
        return lambda: client.execute_tool("count_down", {"from": 100}, timeout=0.1, **options)

    expect(call(), library.ExecutionTimeoutError, "TIMEOUT_ERROR", 504)
    streamed = call(on_progress=lambda _: None)
    error = expect(streamed, library.ExecutionTimeoutError, "TIMEOUT_ERROR", None)
    assert error.execution_id is not None and error.execution_id.startswith("exec-")


def test_an_execution_canceled_by_another_client_as_a_response_and_as_an_event(yard: Yard) -> None:
    client, user = yard.client(), fresh()
    with library.MCPClient(yard.url, yard.tokens["owner"]) as other:
        stop = other.executions.cancel
        streamed = lambda: client.execute_tool("count_down", {"from": 100}, on_start=stop)
        expect(streamed, library.ExecutionCancelledError, "CANCELLED", None)

        def watch() -> None:
            while True:
                for one in other.executions.list(state="running"):
                    if one.get("userId") == user:
                        stop(one["executionId"])
                        return

        watching = threading.Thread(target=watch)
        watching.start()
        whole = lambda: client.execute_tool("count_down", {"from": 100}, user_id=user)
        expect(whole, library.ExecutionCancelledError, "CANCELLED", 499)
        watching.join()


def test_a_tool_that_fails_as_a_response_and_as_an_event(yard: Yard) -> None:
    client = yard.client()
    whole = lambda: client.execute_tool("fail", {"message": "no paper"})
    error = expect(whole, library.ExecutionError, "EXECUTION_ERROR", 500)
    details = {"content": [{"type": "text", "text": "no paper"}]}
    assert (error.message, error.details) == ("no paper", details)
    streamed = lambda: client.execute_tool("fail", {"message": "no"}, on_chunk=lambda _: None)
    expect(streamed, library.ExecutionError, "EXECUTION_ERROR", None)


def test_a_tool_that_requests_input(yard: Yard) -> None:
    client = yard.client()
    expect(lambda: client.execute_tool("ask_name"), library.ExecutionError, "EXECUTION_ERROR", 501)


def test_a_server_that_crashes_during_a_call_which_is_not_retried(yard: Yard) -> None:
    client = yard.client()
    expect(lambda: client.execute_tool("mcp__fragile__crash"), library.ExecutionError, "EXECUTION_ERROR", 502)


def test_a_server_that_is_gone(yard: Yard) -> None:
    client = yard.client(retry=NEVER)
    call = lambda: client.execute_tool("mcp__gone__add", {"a": 1, "b": 2})
    expect(call, library.ExecutionError, "EXECUTION_ERROR", 502)


def test_an_internal_error_of_the_server(yard: Yard) -> None:
    client, _ = yard.failing("internal-500-1")
    error = expect(client.discover_tools, library.InternalError, "INTERNAL_ERROR", 500)
    assert error.details == {"id": "exec-bug"}


def test_a_yard_that_cannot_be_reached(yard: Yard) -> None:
    client = yard.client(url="http://127.0.0.1:1", retry=NEVER)
    expect(lambda: client.execute_tool("add"), library.NetworkError, "NETWORK_ERROR", None)
