"""A command on a pseudo-terminal: its output, typed input, and exit code."""

import os
import pty
import select
import signal
import struct
import subprocess
import termios
import fcntl
import time

LONGEST = 60


class Screen:
    def __init__(self, workspace, words, env=None):
        self.parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            [workspace.binary, *map(str, words)], cwd=workspace.home, env={**workspace.env, "TERM": "xterm-256color", **(env or {})},
            stdin=child, stdout=child, stderr=child, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(child)
        self.text, self.code = "", None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self.parent)

    def alive(self):
        return self.process.poll() is None

    def read(self, seconds):
        """Adds the output that arrives within this time to the text. Returns False at the end of the output."""
        ready, _, _ = select.select([self.parent], [], [], seconds)
        if not ready:
            return True
        try:
            piece = os.read(self.parent, 65536)
        except OSError:  # the other side is closed
            return False
        self.text += piece.decode(errors="replace")
        return bool(piece)

    def until(self, words):
        deadline = time.monotonic() + LONGEST
        while words not in self.text:
            if time.monotonic() > deadline or not self.read(0.2):
                raise TimeoutError(f"{words!r} does not appear in {self.text[-1500:]!r}")

    def type(self, text):
        os.write(self.parent, text.encode())

    def end(self):
        """Waits for the process to exit and returns its output."""
        deadline = time.monotonic() + LONGEST
        while self.read(0.2) and time.monotonic() < deadline:
            pass
        self.code = self.process.wait(LONGEST)
        return self.text
