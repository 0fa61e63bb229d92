"""Tests `toolyard ui --yard`: opens a running yard, uses it, loses the connection and reconnects."""

import base64
import hashlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request

from harness import processes
from terminal import compare

OWNER = "the token of the owner"
GUEST = "the token of a guest"


class Yard:
    """`toolyard serve` on a port that stays the same after a restart."""

    def __init__(self, binary, home, server):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.binary, self.home = binary, home
        digest = hashlib.sha256(GUEST.encode()).hexdigest()
        (home / "yard.toml").write_text(
            f'demo = true\n[servers.everything]\ncommand = "node"\nargs = [{json.dumps(str(server))}, "stdio"]\n'
            f'[[tokens]]\nname = "guest"\nsha256 = "{digest}"\n'
        )

    def start(self):
        command = [self.binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--token", OWNER, "--config", "yard.toml"]
        env = processes.environment(self.home)
        with open(self.home / "yard.log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, cwd=self.home, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                return urllib.request.urlopen(f"{self.url}/health", timeout=5).close()
            except OSError:
                time.sleep(0.05)

    def call(self, tool, params):
        """Calls a tool over REST, like another client."""
        headers = {"Authorization": f"Bearer {OWNER}", "Content-Type": "application/json"}
        body = json.dumps({"params": params}).encode()
        request = urllib.request.Request(f"{self.url}/mcp/tools/{tool}/execute", body, headers)
        urllib.request.urlopen(request, timeout=30).close()

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Stranger(threading.Thread):
    """A control socket that speaks another version of the protocol."""

    def __init__(self, protocol):
        super().__init__(daemon=True)
        self.welcome = json.dumps({"type": "welcome", "protocol": protocol, "principal": {"name": "x"}}).encode()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.start()

    def run(self):
        peer, _ = self.listener.accept()
        with peer:
            request = peer.recv(65536).decode()
            key = next(line.split(": ")[1] for line in request.split("\r\n") if line.lower().startswith("sec-websocket-key:"))
            magic = (key.strip() + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()
            accept = base64.b64encode(hashlib.sha1(magic).digest()).decode()
            peer.sendall(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: toolyard.control.v1\r\n\r\n".encode()
            )
            peer.sendall(bytes([0x81, len(self.welcome)]) + self.welcome)
            peer.recv(65536)


def attached(terminal, binary, home, server):
    terminal.resize(80, 24)
    yard = Yard(binary, home, server)
    refusals(terminal, binary, yard)
    yard.start()
    use(terminal, binary, yard)
    lose(terminal, yard)
    guest(terminal, binary, yard)
    yard.process.terminate()
    yard.process.wait()


def refusals(terminal, binary, yard):
    """Checks that every connection error is reported on the normal screen, with its exit code."""

    def says(what, url, token, code, sentence):
        terminal.types(f"clear; TOOLYARD_TOKEN='{token}' {binary} ui --yard {url}; echo exit $?\n")
        terminal.shows(f"exit {code}", f"{what}: exit code {code}")
        terminal.shows(sentence, f"{what}: error message")

    says("no yard there", yard.url, OWNER, 4, f"cannot open {yard.url}")
    yard.start()
    says("a wrong token", yard.url, "wrong", 3, "the yard rejected the connection")
    says("no token", yard.url, "", 3, "pass a valid token with --token")
    yard.kill()
    for version in (0, 2):
        says(f"version {version} of the protocol", Stranger(version).url, OWNER, 4, f"the yard speaks version {version} of")


def use(terminal, binary, yard):
    terminal.types(f"clear; TOOLYARD_TOKEN='{OWNER}' {binary} ui --yard {yard.url}; echo exit $?\n")
    compare(terminal, "21-attached", "3/3 ready")
    terminal.types("/every")
    terminal.keys("Enter", "Enter")
    terminal.types("/long")
    terminal.keys("Enter", "c")
    terminal.shows("duration", "the form of a remote tool")
    terminal.keys("C-s")
    terminal.keys("Enter")
    terminal.shows(" of 5", "progress is shown")
    terminal.keys("x")
    terminal.shows("cancelled", "the call is canceled")
    yard.call("add", {"a": 1, "b": 2})
    terminal.keys("H", "Tab")
    screen, good = terminal.until(lambda screen: "cancelled" in screen and " add " in screen and "succeeded" in screen)
    terminal.tally.report(good, "the history contains the calls of all clients", screen)
    terminal.keys("L")
    terminal.shows("tool add by owner over rest", "the log contains the calls of other clients")
    terminal.keys("Escape", "Escape", "Escape", "Escape", "Escape", "Escape", "Escape")
    terminal.shows("Server ", "Esc returns to the servers")
    terminal.types("/every")
    terminal.keys("Enter", "e")
    terminal.shows("disabled", "a remote server is disabled")
    terminal.keys("e")
    terminal.shows("3/3 ready", "the remote server is enabled again")


def lose(terminal, yard):
    yard.kill()
    terminal.shows("not connected", "the UI reports the lost connection")
    terminal.shows("retrying", "the servers of a lost yard are retrying")
    terminal.shows("cannot be reached", "the reason is shown")
    yard.start()
    terminal.shows("3/3 ready", "the UI reconnects")
    terminal.keys("Enter")
    terminal.types("/echo")
    terminal.keys("Enter", "c")
    terminal.shows("message", "forms work after the reconnect")
    terminal.types("still there")
    terminal.keys("C-s")
    terminal.shows("Echo: still there", "calls work after the reconnect")
    terminal.keys("q")
    terminal.shows("exit 0", "q quits with exit code 0")
    terminal.check_restored("after a remote yard")


def guest(terminal, binary, yard):
    terminal.types(f"clear; TOOLYARD_TOKEN='{GUEST}' {binary} ui --yard {yard.url}; echo exit $?\n")
    terminal.shows("ready", "a guest sees servers")
    terminal.types("/every")
    terminal.keys("Enter", "e")
    terminal.shows("this needs the permission `manage`", "a guest cannot manage servers")
    terminal.keys("L")
    terminal.shows("as guest; n", "the log names the principal")
    terminal.keys("Enter")
    terminal.shows("no permission to observe", "the log names the missing permissions")
    terminal.keys("q")
    terminal.shows("exit 0", "q quits as guest")
