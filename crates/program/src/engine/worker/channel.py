"""Frames on the only descriptor of a program: four bytes of length, one byte of kind, and the body."""

import select

# Imported by name, because a program may replace them in `os`.
from os import _exit, read, write

FD = 3
# The number of requests without a reply. Further requests wait here.
IN_FLIGHT = 128

OUTPUT, QUESTION, CANCEL, ENDING = b"o", b"q", b"c", b"e"
# What the engine needs if it kills the program: how much output was omitted, and which tasks still run.
LEFT_OUT, UNFINISHED = b"l", b"u"

_inbox = bytearray()
_poll = None
# Called before the process waits, so that pending output is sent first.
before_waiting = None


def open_here():
    global _poll
    _poll = select.poll()
    _poll.register(FD, select.POLLIN)


def send(kind, body):
    frame = (len(body) + 1).to_bytes(4, "little") + kind + body
    sent = write(FD, frame)
    if sent < len(frame):
        rest = memoryview(frame)[sent:]
        while rest:
            rest = rest[write(FD, rest) :]


def _take():
    """Takes one complete frame from the input. Returns its kind and body."""
    if len(_inbox) < 5:
        return None
    length = int.from_bytes(_inbox[:4], "little")
    if len(_inbox) < 4 + length:
        return None
    frame = bytes(_inbox[4 : 4 + length])
    del _inbox[: 4 + length]
    return frame[:1], frame[1:]


def receive(timeout=None):
    """Waits for a frame, at most `timeout` seconds."""
    while True:
        frame = _take()
        if frame is not None:
            return frame
        if timeout is None or timeout > 0:
            if before_waiting is not None:
                before_waiting()
        if timeout is not None and not _poll.poll(timeout * 1000):
            return None
        chunk = read(FD, 1 << 18)
        if not chunk:
            # The engine closed the pipe.
            _exit(1)
        _inbox.extend(chunk)
