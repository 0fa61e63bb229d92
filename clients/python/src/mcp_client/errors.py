"""The errors of a call: one class per error code of the REST API.

The last two classes are for failures without a valid response from the server.
"""

from __future__ import annotations

from typing import Any


class MCPError(Exception):
    """The base class of all errors caused by the server or the network."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        details: Any = None,
        execution_id: str | None = None,
        retry_after: float | None = None,
        replayed: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        #: The HTTP status; None if the failure arrived as an event of a stream, or there was no response.
        self.status = status
        self.details = details
        self.execution_id = execution_id
        #: The number of seconds to wait before a retry.
        self.retry_after = retry_after
        #: Whether this is the stored outcome of an earlier execution with the same idempotency key.
        self.replayed = replayed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code!r}, {self.message!r}, status={self.status!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors are pickled across processes (pools, task queues); the base class would lose the code.
        return (_rebuild, (type(self), self.code, self.message, dict(self.__dict__)))


def _rebuild(kind: type[MCPError], code: str, message: str, facts: dict[str, Any]) -> MCPError:
    error = kind.__new__(kind)
    MCPError.__init__(error, code, message)
    error.__dict__.update(facts)
    return error


class ToolNotFoundError(MCPError):
    """The tool does not exist, or the caller may not use it."""


class NotFoundError(MCPError):
    """The execution or the path does not exist."""


class ValidationError(MCPError):
    """The request or the parameters are invalid. Status 409: the idempotency key belongs to another request."""

    @property
    def violations(self) -> list[dict[str, Any]]:
        """All violations, each with `pointer`, `field`, `reason` and `provided`."""
        listed = self.details.get("violations") if isinstance(self.details, dict) else None
        return listed if isinstance(listed, list) else []


class AuthenticationError(MCPError):
    """The token is missing, unknown or expired."""


class PermissionDeniedError(MCPError):
    """The caller lacks a permission."""


class RateLimitError(MCPError):
    """The rate limit is exceeded; nothing was executed."""


class PayloadTooLargeError(MCPError):
    """The request exceeds the size limit of the server."""


class UnsupportedMediaTypeError(MCPError):
    """The body was not sent as JSON in UTF-8."""


class MethodNotAllowedError(MCPError):
    """The path does not support this method."""


class ExecutionTimeoutError(MCPError):
    """The tool exceeded its time limit."""


class ExecutionCancelledError(MCPError):
    """The execution was canceled."""


class ExecutionError(MCPError):
    """The tool failed, or the server behind it cannot be reached (status 502)."""


class InternalError(MCPError):
    """An internal error of the server; the details contain the ID of the log entry."""


class NetworkError(MCPError):
    """The server could not be reached, or the connection broke before the response was complete."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__("NETWORK_ERROR", message, **facts)


class UnexpectedAnswerError(MCPError):
    """A response that does not follow the protocol, such as the error page of a proxy."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__("UNEXPECTED_ANSWER", message, **facts)


_CLASSES: dict[str, type[MCPError]] = {
    "TOOL_NOT_FOUND": ToolNotFoundError,
    "NOT_FOUND": NotFoundError,
    "VALIDATION_ERROR": ValidationError,
    "AUTHENTICATION_ERROR": AuthenticationError,
    "PERMISSION_ERROR": PermissionDeniedError,
    "RATE_LIMIT_ERROR": RateLimitError,
    "PAYLOAD_TOO_LARGE": PayloadTooLargeError,
    "UNSUPPORTED_MEDIA_TYPE": UnsupportedMediaTypeError,
    "METHOD_NOT_ALLOWED": MethodNotAllowedError,
    "TIMEOUT_ERROR": ExecutionTimeoutError,
    "CANCELLED": ExecutionCancelledError,
    "EXECUTION_ERROR": ExecutionError,
    "INTERNAL_ERROR": InternalError,
}


def error_for(code: str, message: str, **facts: Any) -> MCPError:
    """Returns the error for a code; an unknown code gives a plain MCPError."""
    return _CLASSES.get(code, MCPError)(code, message, **facts)
