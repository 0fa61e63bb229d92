"""Generates the blocking client, src/mcp_client/client.py, from the asynchronous one, src/mcp_client/aio.py.

Run it in clients/python after every change to aio.py:

    python tools/generate_blocking.py

It needs nothing but the standard library. A rule below that no longer applies is an error, and so
is an asynchronous name that no rule covers; client.py is then left as it is.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from pathlib import Path

COMMAND = "python tools/generate_blocking.py"
PACKAGE = Path(__file__).resolve().parent.parent / "src" / "mcp_client"
HEADER = f"# Generated from aio.py by `{COMMAND}`. Do not edit:\n# change aio.py and run that command.\n"

#: Passages that differ by more than a name. Each must occur exactly once.
PASSAGES = [
    (
        f'''\
"""The asynchronous client: which requests exist, and which of them are retried.

client.py is generated from this file. After a change, run `{COMMAND}`.
"""
''',
        '''\
"""The blocking client: which requests exist, and which of them are retried."""
''',
    ),
    ("import inspect\n", "import time\n"),
    ("import Awaitable, Callable, Mapping\n", "import Callable, Mapping\n"),
    ("import anyio\n", ""),
    ("Callable[[], Awaitable[T]]", "Callable[[], T]"),
    ("await anyio.sleep(pause)", "time.sleep(pause)"),
    # Only tasks can be canceled, so a blocking call needs no shield.
    (
        """\
            # Without the shield, a canceled task could not await anything here.
            with anyio.CancelScope(shield=True):
                await self._release(""",
        """\
            self._release(""",
    ),
    # Callbacks of the blocking client are plain functions.
    (
        """\
        answer = callback(data)
        if inspect.isawaitable(answer):
            await answer
""",
        """\
        callback(data)
""",
    ),
]

#: Names of the asynchronous client and what the blocking one calls them. Each must occur.
NAMES = {
    "AsyncMCPClient": "MCPClient",
    "AsyncExecutions": "Executions",
    "AsyncClient": "Client",
    "AsyncBaseTransport": "BaseTransport",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aread": "read",
    "aiter_bytes": "iter_bytes",
}

#: Keywords that are dropped with the space after them. Each must occur.
KEYWORDS = {"async", "await"}

#: What the result must not contain, not even in a comment or docstring.
ASYNCHRONOUS = re.compile(r"\w*(?:async|await|anyio|coroutine)\w*|\b__a(?:iter|next)__\b", re.IGNORECASE)


class GeneratorError(Exception):
    """The rules of this script and aio.py do not match."""


def generate(source: str) -> str:
    """Returns the text of client.py for the text of aio.py."""
    for old, new in PASSAGES:
        if (count := source.count(old)) != 1:
            raise GeneratorError(f"expected this passage once in aio.py, found it {count} times:\n{old}")
        source = source.replace(old, new)
    source = _replace_tokens(source)
    if left := ASYNCHRONOUS.search(source):
        line = source.count("\n", 0, left.start()) + 1
        text = source.splitlines()[line - 1].strip()
        raise GeneratorError(f"no rule covers `{left.group()}`, which the blocking client would contain in: {text}")
    return HEADER + source


def _replace_tokens(source: str) -> str:
    """Applies NAMES and KEYWORDS to the code, and leaves strings and comments alone."""
    lines = source.splitlines(keepends=True)
    unused = KEYWORDS | NAMES.keys()
    # From the end, so that a replacement does not move the tokens that are still to come.
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(source).readline))):
        if token.type != tokenize.NAME or token.string not in KEYWORDS | NAMES.keys():
            continue
        unused.discard(token.string)
        row, start, end = token.start[0] - 1, token.start[1], token.end[1]
        before, after = lines[row][:start], lines[row][end:]
        if token.string in KEYWORDS:
            lines[row] = before + after.removeprefix(" ")
        else:
            lines[row] = before + NAMES[token.string] + after
    if unused:
        raise GeneratorError(f"expected these names in aio.py, found none of them: {', '.join(sorted(unused))}")
    return "".join(lines)


def main() -> None:
    try:
        text = generate((PACKAGE / "aio.py").read_text(encoding="utf-8"))
    except GeneratorError as error:
        sys.exit(f"error: {error}")
    (PACKAGE / "client.py").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
