"""The types of the protocol: tools, executions, and the events of a running execution."""

from __future__ import annotations

import sys
from typing import Any, Literal, TypedDict

if sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    from typing_extensions import NotRequired

Priority = Literal["low", "normal", "high"]
State = Literal["running", "succeeded", "failed", "cancelled"]
Content = Literal["result", "full"]


class ToolMetadata(TypedDict, total=False):
    """The metadata from the author of the tool. `custom` is specific to the tool."""

    version: str
    author: str
    category: str
    tags: list[str]
    deprecates: str
    custom: dict[str, Any]


class Tool(TypedDict):
    """One tool of a list. `annotations` are unverified hints of the server: do not rely on them."""

    name: str
    title: NotRequired[str]
    description: str
    inputSchema: dict[str, Any]
    outputSchema: NotRequired[dict[str, Any]]
    annotations: NotRequired[dict[str, Any]]
    server: str
    metadata: NotRequired[ToolMetadata]


class ToolVersion(TypedDict):
    version: str
    deprecatedBy: NotRequired[str]


class ToolDetails(Tool):
    """The details of one tool. `versions` lists the versions, newest first, if there are several."""

    rawName: str
    displayName: str
    permissions: list[str]
    versions: NotRequired[list[ToolVersion]]


class ExecutionMetadata(TypedDict):
    """`duration` is in milliseconds; `timestamp` is the start time in RFC 3339 format."""

    executionId: str
    duration: int
    timestamp: str


class ExecutionResponse(TypedDict):
    """The response of a successful execution. A failed execution raises an MCPError.

    `chunks` contains the output chunks if they were not streamed, `content` all content blocks if requested.
    """

    success: Literal[True]
    result: Any
    chunks: NotRequired[list[Any]]
    chunksLeftOut: NotRequired[int]
    content: NotRequired[list[dict[str, Any]]]
    metadata: ExecutionMetadata


class Progress(TypedDict):
    progress: float
    total: NotRequired[float]
    message: NotRequired[str]


class LogLine(TypedDict):
    level: str
    logger: NotRequired[str]
    data: Any


class ErrorDescription(TypedDict):
    code: str
    message: str
    details: NotRequired[Any]


class ExecutionOutcome(TypedDict):
    """The outcome of an execution, successful or not."""

    success: bool
    result: NotRequired[Any]
    error: NotRequired[ErrorDescription]
    chunks: NotRequired[list[Any]]
    content: NotRequired[list[dict[str, Any]]]
    metadata: ExecutionMetadata


class Execution(TypedDict):
    """A recorded execution. `response` is present if it has ended and was requested by its ID."""

    executionId: str
    tool: str
    server: NotRequired[str]
    state: State
    timestamp: str
    duration: int
    principal: NotRequired[str]
    sessionId: NotRequired[str]
    userId: NotRequired[str]
    progress: NotRequired[Progress]
    response: NotRequired[ExecutionOutcome]
