"""Starting Toolyard and what it is tested with, and leaving nothing running."""

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
    """The binary under test, as TOOLYARD_BIN names it."""
    if not os.environ.get("TOOLYARD_BIN"):
        sys.exit("set TOOLYARD_BIN to the path of the toolyard binary")
    path = Path(os.environ["TOOLYARD_BIN"]).resolve()
    if not os.access(path, os.X_OK):
        sys.exit(f"TOOLYARD_BIN: {path} is no executable file")
    return path


def own_all():
    """Lets signals end us in order, and makes orphans of our children ours, so that `sweep` finds them."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("cannot become the reaper of orphaned processes")


def children():
    """Our child processes, those included that were orphaned and came to us as their reaper."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[1]) == os.getpid():
            found.append(int(stat.parent.name))
    return found


def sweep(seconds):
    """Ends every child process; gives back those that were still alive after `seconds`."""
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
    """Our environment without anything of ours that Toolyard or a client could pick up as settings."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TOOLYARD", "XDG_"))}
    return {**kept, "HOME": str(home), **more}


class Server:
    """One `toolyard serve` with the page address that it printed."""

    def __init__(self, binary, label, home, tally, env=None):
        self.label, self.tally = label, tally
        # A token that the server was given is not printed.
        self.token = (env or {}).get("TOOLYARD_TOKEN")
        self.errors = open(home / "stderr", "w+", encoding="utf-8", errors="replace")
        command = [binary, "serve", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            command, cwd=home, env=env or environment(home), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=self.errors,
        )

    def said(self):
        return Path(self.errors.name).read_text(encoding="utf-8", errors="replace")

    def address(self):
        """The address and the token; `None` if it does not come up."""
        deadline = time.monotonic() + START_SECONDS
        found = None
        while not found and time.monotonic() < deadline and self.process.poll() is None:
            time.sleep(0.02)
            found = re.search(r"page  (http://127\.0\.0\.1:[1-9]\d*)/(?:#token=([^\s\"'<>]+))?\s", self.said())
        self.tally.report(found, f"{self.label}: the server prints its address", repr(self.said()[-500:]))
        return found and (found[1], found[2] or self.token)

    def stop(self):
        ended = self.process.poll()
        if ended is None:
            self.process.terminate()
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = f"nothing within {STOP_SECONDS} s of SIGTERM, killed {self.process.wait()}"
        self.errors.close()
        reason = f"exit code {code}, ended before SIGTERM: {ended is not None}, stderr: {self.said()[-500:]!r}"
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
    sys.exit(f"nothing comes up on port {port}")
