"""Parses server-sent events from bytes in chunks of any size; a chunk may end within a character."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class ServerEvent:
    id: str
    event: str
    data: str


class EventReader:
    def __init__(self) -> None:
        # A byte order mark at the start is not part of the text.
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._line: list[str] = []
        self._after_return = False
        self._id = ""
        self._event = ""
        self._data: list[str] = []

    def push(self, piece: bytes) -> list[ServerEvent]:
        """Parses the next chunk and returns the events that it completes."""
        text = self._decoder.decode(piece)
        if not text:
            return []
        events: list[ServerEvent] = []
        start = 1 if self._after_return and text.startswith("\n") else 0
        self._after_return = False
        for end in _END.finditer(text, start):
            self._line.append(text[start : end.start()])
            event = self._take("".join(self._line))
            if event is not None:
                events.append(event)
            self._line = []
            start = end.end()
            self._after_return = end.group() == "\r" and start == len(text)
        if start < len(text):
            self._line.append(text[start:])
        return events

    def _take(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id" and "\0" not in value:
            self._id = value
        # Comments have an empty field name; unknown fields are ignored.
        return None

    def _dispatch(self) -> ServerEvent | None:
        event, data = self._event, self._data
        self._event, self._data = "", []
        return ServerEvent(self._id, event or "message", "\n".join(data)) if data else None
