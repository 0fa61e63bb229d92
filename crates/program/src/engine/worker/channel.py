"""Frames on the one descriptor that a program has: four bytes of length, one of kind, and what there is to say."""

import select

# By name, for a program may put anything in their places.
from os import _exit, read, write

FD = 3
# More questions than this wait here until others have been answered.
IN_FLIGHT = 128

OUTPUT, QUESTION, CANCEL, ENDING = b"o", b"q", b"c", b"e"
# What the engine must know if it has to kill the program: how much output was left out, and which tasks still run.
LEFT_OUT, UNFINISHED = b"l", b"u"

_inbox = bytearray()
_poll = None
# What to do before the process waits, so that nothing that was printed is held back meanwhile.
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
    """One whole frame out of what has arrived, as kind and body."""
    if len(_inbox) < 5:
        return None
    length = int.from_bytes(_inbox[:4], "little")
    if len(_inbox) < 4 + length:
        return None
    frame = bytes(_inbox[4 : 4 + length])
    del _inbox[: 4 + length]
    return frame[:1], frame[1:]


def receive(timeout=None):
    """Waits for a frame for so many seconds, or for as long as it takes."""
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
            # Nobody is there to hear anything any more.
            _exit(1)
        _inbox.extend(chunk)
