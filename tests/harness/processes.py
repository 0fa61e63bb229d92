"""Starts Toolyard and its peers, and makes sure that no process is left running."""

import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

START_SECONDS = 30
STOP_SECONDS = 10
PR_SET_CHILD_SUBREAPER = 36


def binary():
    """Returns the path of the binary under test from TOOLYARD_BIN."""
    if not os.environ.get("TOOLYARD_BIN"):
        sys.exit("set TOOLYARD_BIN to the path of the toolyard binary")
    path = Path(os.environ["TOOLYARD_BIN"]).resolve()
    if not os.access(path, os.X_OK):
        sys.exit(f"TOOLYARD_BIN: {path} is not an executable file")
    return path


def own_all():
    """Exits cleanly on signals, and adopts orphaned descendants so that `sweep` finds them."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("cannot become the reaper of orphaned processes")


def children():
    """Returns the child processes, including adopted orphans."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has exited
        if int(fields[1]) == os.getpid():
            found.append(int(stat.parent.name))
    return found


def sweep(seconds):
    """Waits `seconds` for all child processes to exit, then kills the rest. Returns the killed ones."""
    deadline = time.monotonic() + seconds
    late = set()
    while alive := [pid for pid in children() if os.waitpid(pid, os.WNOHANG)[0] == 0]:
        if time.monotonic() > deadline:
            late.update(alive)
            for pid in alive:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return late


def environment(home, **more):
    """Returns the environment without the variables that configure Toolyard or a client."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TOOLYARD", "XDG_"))}
    return {**kept, "HOME": str(home), **more}


class Server:
    """A `toolyard serve` process and the URL that it printed."""

    def __init__(self, binary, label, home, tally, env=None):
        self.label, self.tally = label, tally
        # The server does not print a token that is passed to it.
        self.token = (env or {}).get("TOOLYARD_TOKEN")
        self.errors = open(home / "stderr", "w+", encoding="utf-8", errors="replace")
        command = [binary, "serve", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            command, cwd=home, env=env or environment(home), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=self.errors,
        )

    def stderr(self):
        return Path(self.errors.name).read_text(encoding="utf-8", errors="replace")

    def address(self):
        """Returns the URL and the token, or `None` if the server does not start."""
        deadline = time.monotonic() + START_SECONDS
        match = None
        while not match and time.monotonic() < deadline and self.process.poll() is None:
            time.sleep(0.02)
            match = re.search(r"page  (http://127\.0\.0\.1:[1-9]\d*)/(?:#token=([^\s\"'<>]+))?\s", self.stderr())
        self.tally.report(match, f"{self.label}: the server prints its URL", repr(self.stderr()[-500:]))
        return match and (match[1], match[2] or self.token)

    def stop(self):
        ended = self.process.poll()
        if ended is None:
            self.process.terminate()
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = f"none within {STOP_SECONDS} s of SIGTERM, killed with {self.process.wait()}"
        self.errors.close()
        reason = f"exit code {code}, ended before SIGTERM: {ended is not None}, stderr: {self.stderr()[-500:]!r}"
        self.tally.report(ended is None and code == 0, f"{self.label}: SIGTERM ends the server with exit code 0", reason)


def free_port():
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return each.getsockname()[1]


def wait_for(port):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"no server listens on port {port}")
