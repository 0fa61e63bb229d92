"""What the protocol is made of: tools, responses of executions, and what is heard of them while they run."""

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
    """What the author wrote down. `custom` is what only those who know the tool can read."""

    version: str
    author: str
    category: str
    tags: list[str]
    deprecates: str
    custom: dict[str, Any]


class Tool(TypedDict):
    """One tool of a list. `annotations` are the word of a stranger: show them, do not rely on them."""

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
    """Everything that is known of one tool; `versions`, newest first, where there are several."""

    rawName: str
    displayName: str
    permissions: list[str]
    versions: NotRequired[list[ToolVersion]]


class ExecutionMetadata(TypedDict):
    """`duration` is in milliseconds, `timestamp` (after RFC 3339) is when it began."""

    executionId: str
    duration: int
    timestamp: str


class ExecutionResponse(TypedDict):
    """What an execution that went well comes back with. One that did not is raised as an MCPError.

    `chunks` is what the tool sent ahead where it was not streamed, `content` every content block on request.
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
    """What came of an execution, whichever way it went."""

    success: bool
    result: NotRequired[Any]
    error: NotRequired[ErrorDescription]
    chunks: NotRequired[list[Any]]
    content: NotRequired[list[dict[str, Any]]]
    metadata: ExecutionMetadata


class Execution(TypedDict):
    """An execution as the server remembers it; `response` is there once it is over and it was asked for by its id."""

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
