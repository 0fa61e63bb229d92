"""Decides when a request is retried, and after which delay. The TypeScript library follows the same rules."""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal

from .errors import MCPError, NetworkError

#: Whether a request can safely be repeated.
Repeat = Literal["harmless", "only_if_refused"]


@dataclass(frozen=True)
class Retry:
    """The maximum number of retries, and the delays in seconds.

    The first delay is at most `base_delay`, and this maximum doubles with each retry. If the server asks for a delay
    longer than `max_delay`, the request is not retried.
    """

    retries: int = 3
    base_delay: float = 0.25
    max_delay: float = 30.0

    def __post_init__(self) -> None:
        for name in ("retries", "base_delay", "max_delay"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"{name} must be a non-negative number")

    def pause(
        self, error: MCPError, tried: int, repeat: Repeat, chance: Callable[[], float] = random.random
    ) -> float | None:
        """Returns the delay before the next attempt, or None if the request is not retried."""
        if tried > self.retries or not _worthwhile(error, repeat):
            return None
        # Full jitter, so that clients that failed together do not retry together.
        backoff = min(self.max_delay, self.base_delay * 2.0 ** (tried - 1)) * chance()
        if error.retry_after is None:
            return backoff
        if error.retry_after > self.max_delay:
            return None
        return error.retry_after + min(backoff, self.max_delay - error.retry_after)


def _worthwhile(error: MCPError, repeat: Repeat) -> bool:
    # The rate limit rejects a request before anything is executed.
    if error.status == 429:
        return True
    # A stored outcome does not change with a retry.
    if repeat != "harmless" or error.replayed:
        return False
    return error.status in (502, 503) or isinstance(error, NetworkError)


def read_retry_after(header: str | None, now: float | None = None) -> float | None:
    """Parses a Retry-After header, a number of seconds or a date, into seconds to wait."""
    if header is None:
        return None
    text = header.strip()
    if re.fullmatch(r"[0-9]{1,9}", text):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return max(0.0, date.timestamp() - (time.time() if now is None else now))
