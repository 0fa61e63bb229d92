"""A Redis server in a temporary folder, on a port of its own, that can be killed and started again."""

import signal
import socket
import subprocess
import time

from .debian import require_program
from .processes import free_port, wait_for


class RedisServer:
    def __init__(self, home):
        self.home, self.port, self.process = home, free_port(), None
        self.program = require_program("redis-server")
        self.start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self):
        """Starts it with an empty data set, because it stores nothing on disk."""
        command = [
            self.program, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.home), "--save", "",
            "--appendonly", "no", "--enable-debug-command", "local",
        ]
        with open(self.home / "redis.log", "a") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(self.port)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def ask(self, *words, timeout=10):
        """Sends a command and returns the first line of the answer, or a list of lines for an array."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as connection:
            encoded = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in (str(word).encode() for word in words))
            connection.sendall(b"*%d\r\n%s" % (len(words), encoded))
            with connection.makefile("rb") as answer:
                return self._read(answer)

    def _read(self, answer):
        line = answer.readline().decode().rstrip("\r\n")
        if line.startswith("$"):
            length = int(line[1:])
            return None if length < 0 else answer.read(length + 2)[:-2].decode()
        if line.startswith("*"):
            return [self._read(answer) for _ in range(int(line[1:]))]
        return line

    def keys(self):
        return self.ask("KEYS", "*")

    def until(self, done, seconds):
        """Waits until `done()` is true. Returns whether it became true in time."""
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True
