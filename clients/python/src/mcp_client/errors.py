"""Every way in which a call can fail, as one class per code of the REST protocol.

What went wrong is told by the server; the two classes at the end are for when it told nothing that could be understood.
"""

from __future__ import annotations

from typing import Any


class MCPError(Exception):
    """Everything that this library raises on account of the server or the way to it."""

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
        #: The HTTP status; None where the failure came as an event of a stream, or no answer came at all.
        self.status = status
        self.details = details
        self.execution_id = execution_id
        #: Seconds after which trying again makes sense.
        self.retry_after = retry_after
        #: Whether this is the kept outcome of an earlier execution with the same idempotency key.
        self.replayed = replayed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code!r}, {self.message!r}, status={self.status!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders (pools, task queues); what the base class does loses the code.
        return (_rebuild, (type(self), self.code, self.message, dict(self.__dict__)))


def _rebuild(kind: type[MCPError], code: str, message: str, facts: dict[str, Any]) -> MCPError:
    error = kind.__new__(kind)
    MCPError.__init__(error, code, message)
    error.__dict__.update(facts)
    return error


class ToolNotFoundError(MCPError):
    """There is no such tool, or not for this caller."""


class NotFoundError(MCPError):
    """There is no such execution, or nothing at that address."""


class ValidationError(MCPError):
    """The request is wrong, the parameters of the tool included; status 409: a key was used for another request."""

    @property
    def violations(self) -> list[dict[str, Any]]:
        """Everything that is wrong with it: `pointer`, `field`, `reason` and `provided` of each."""
        listed = self.details.get("violations") if isinstance(self.details, dict) else None
        return listed if isinstance(listed, list) else []


class AuthenticationError(MCPError):
    """The token is missing, unknown or expired."""


class PermissionDeniedError(MCPError):
    """The caller lacks a permission."""


class RateLimitError(MCPError):
    """Too many calls; nothing was executed."""


class PayloadTooLargeError(MCPError):
    """The request is larger than the server takes."""


class UnsupportedMediaTypeError(MCPError):
    """The body was not sent as JSON in UTF-8."""


class MethodNotAllowedError(MCPError):
    """The address is for other methods."""


class ExecutionTimeoutError(MCPError):
    """The tool took longer than it may."""


class ExecutionCancelledError(MCPError):
    """Somebody cancelled the execution."""


class ExecutionError(MCPError):
    """The tool failed, or the server behind it cannot be reached (status 502)."""


class InternalError(MCPError):
    """A bug of the server; the details have the id under which its log has it."""


class NetworkError(MCPError):
    """The server could not be reached, or the connection broke before there was an answer."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__("NETWORK_ERROR", message, **facts)


class UnexpectedAnswerError(MCPError):
    """An answer that is not in the words of the protocol, such as the error page of a proxy."""

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
    """The error for what a server said; a code that is not known yet is still an MCPError."""
    return _CLASSES.get(code, MCPError)(code, message, **facts)
