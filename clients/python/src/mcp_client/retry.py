"""When a request is made again, and how long to wait before. The rules are the same in the TypeScript library."""

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

#: Whether making a request twice could do harm.
Repeat = Literal["harmless", "only_if_refused"]


@dataclass(frozen=True)
class Retry:
    """How often a request is made again at most, and the pauses before, in seconds.

    The longest first pause is `base_delay`; it doubles each time. A server that asks for more than `max_delay` is not
    asked again.
    """

    retries: int = 3
    base_delay: float = 0.25
    max_delay: float = 30.0

    def __post_init__(self) -> None:
        for name in ("retries", "base_delay", "max_delay"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"{name} must be a number that is not negative")

    def pause(
        self, error: MCPError, tried: int, repeat: Repeat, chance: Callable[[], float] = random.random
    ) -> float | None:
        """The pause before the next try, or None if there is to be none."""
        if tried > self.retries or not _worthwhile(error, repeat):
            return None
        # Spread over the whole span, so that many who failed together do not come back together.
        backoff = min(self.max_delay, self.base_delay * 2.0 ** (tried - 1)) * chance()
        if error.retry_after is None:
            return backoff
        if error.retry_after > self.max_delay:
            return None
        return error.retry_after + min(backoff, self.max_delay - error.retry_after)


def _worthwhile(error: MCPError, repeat: Repeat) -> bool:
    # A refusal for the rate comes before anything is executed.
    if error.status == 429:
        return True
    # What is kept stays as it is, however often it is asked for.
    if repeat != "harmless" or error.replayed:
        return False
    return error.status in (502, 503) or isinstance(error, NetworkError)


def read_retry_after(header: str | None, now: float | None = None) -> float | None:
    """Seconds to wait, from a Retry-After header: a number of seconds, or a date."""
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
