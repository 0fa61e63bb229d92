from __future__ import annotations

import pytest

from mcp_client.events import EventReader, ServerEvent

TEXT = (
    ':\n\nid: 1\nevent: progress\ndata: {"a":1}\n\nid: 2\ndata: first\ndata:second\ndata\n\n'
    ": note\nretry: 5\nevent: x\n\ndata: ä€😀\n\n"
)
EVENTS = [
    ServerEvent("1", "progress", '{"a":1}'),
    ServerEvent("2", "message", "first\nsecond\n"),
    ServerEvent("2", "message", "ä€😀"),
]


def read(pieces: list[bytes]) -> list[ServerEvent]:
    reader = EventReader()
    return [event for piece in pieces for event in reader.push(piece)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_do_not_depend_on_chunk_boundaries_or_line_endings(end: str) -> None:
    data = TEXT.replace("\n", end).encode()
    assert read([data]) == EVENTS
    assert read([data[at : at + 1] for at in range(len(data))]) == EVENTS
    for at in range(len(data) + 1):
        assert read([data[:at], b"", data[at:]]) == EVENTS


def test_a_byte_order_mark_is_not_part_of_the_first_line() -> None:
    assert read([b"\xef", b"\xbb\xbfdata: x\n\n"]) == [ServerEvent("", "message", "x")]


def test_an_event_without_its_empty_line_is_not_complete() -> None:
    assert read([b"data: x\n"]) == []


def test_other_line_separators_are_text() -> None:
    assert read(["data: a\u2028b\x0bc\n\n".encode()]) == [ServerEvent("", "message", "a\u2028b\x0bc")]
