"""How the tests of several replicas report, and the yard that most of them use."""

import contextlib
import hashlib
import json
import threading
import time
from pathlib import Path

import cluster
from harness.tally import Tally

HERE = Path(__file__).resolve().parent


class SharedTally(Tally):
    """A tally for groups of tests that run side by side."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def report(self, good, what, reason=""):
        with self.lock:
            super().report(good, what, reason)


class Group:
    """A group of tests with its own folder. The name of the group precedes the names of its checks."""

    def __init__(self, tally, name, home):
        self.tally, self.name, self.home = tally, name, home / name
        self.home.mkdir()

    @contextlib.contextmanager
    def case(self, what):
        """Reports one check. An exception fails it, and the next one runs."""
        began = time.monotonic()
        try:
            yield
        except Exception as error:  # whatever went wrong, the other checks still say something
            seconds = time.monotonic() - began
            self.tally.report(False, f"{self.name}: {what}", f"after {seconds:.1f} s: {type(error).__name__}: {error}"[:2000])
        else:
            self.tally.report(True, f"{self.name}: {what}")


def equal(got, expected, about=""):
    assert got == expected, f"{about}: got {got!r}, expected {expected!r}"


def asker(home, **server):
    """Returns the tables of the server in `asker.py`. Its calls append to `home/notes`."""
    env = {"REPLICA_NAME": "${REPLICA_NAME}", "NOTES": str(home / "notes")}
    # JSON strings, numbers and lists are TOML, too.
    settings = {"command": "python3", "args": [str(HERE / "asker.py")], **server}
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    env = ", ".join(f"{key} = {json.dumps(value)}" for key, value in env.items())
    return "\n".join(["[servers.asker]", *lines, f"env = {{ {env} }}"]) + "\n"


def people(tokens):
    """Returns the tables of tokens, which are named, with all permissions."""
    digest = lambda token: hashlib.sha256(token.encode()).hexdigest()
    one = lambda name, token: f'[[tokens]]\nname = "{name}"\nsha256 = "{digest(token)}"\npermissions = ["*"]\n'
    return "".join(one(*each) for each in tokens.items())


WHO, ASK, WAIT, NOTE, LOG = (f"mcp__asker__{tool}" for tool in ("who", "ask", "wait", "note", "log"))


@contextlib.contextmanager
def at_most(seconds, what):
    """Fails if the block takes longer. It does not interrupt the block."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    assert took <= seconds, f"{what} took {took:.1f} s, at most {seconds} s expected"


def together(*functions):
    """Runs functions side by side. Returns their results, or raises the first exception."""
    results, errors = [None] * len(functions), []

    def run(at, function):
        try:
            results[at] = function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=each) for each in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
