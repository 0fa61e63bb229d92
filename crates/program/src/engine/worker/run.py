"""Runs one program in its process: confines it, reads it, executes it and reports how it ended."""

import ast
import asyncio
import builtins
import gc
import io
import os
import sys
import types
from json import dumps, loads
from os import _exit

from . import asking, channel, confine, ending, faces, loop

_TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_COROUTINE = 0x80
# The maximum length of the value of the last expression, in bytes.
LONGEST_VALUE = 100_000


class Output(io.BufferedIOBase):
    """Standard output and standard error in one stream. Complete lines are sent immediately, so that they survive if the
    program is killed."""

    def __init__(self):
        self.room = 0
        self.left_out = 0
        self.reported = 0
        self.printed = False
        self.pending = bytearray()

    def writable(self):
        return True

    def write(self, data):
        size = len(data)
        self.printed = self.printed or size > 0
        cut = size > self.room
        if cut:
            self.left_out += size - self.room
            data = bytes(data)[: self.room]
        self.room -= len(data)
        self.pending += data
        if b"\n" in data or len(self.pending) > 65536 or cut and self.pending:
            self.send()
        # Not for every line, to limit the number of frames of a program that keeps printing.
        if cut and self.left_out - self.reported > self.reported >> 12:
            self.report()
        return size

    def report(self):
        """Reports how much output was omitted, so that the engine knows if it kills the program."""
        if self.reported != self.left_out:
            self.reported = self.left_out
            channel.send(channel.LEFT_OUT, self.left_out.to_bytes(8, "little"))

    def settle(self):
        self.send()
        self.report()

    def send(self):
        pending = self.pending
        if pending:
            for start in range(0, len(pending), 65536):
                channel.send(channel.OUTPUT, bytes(pending[start : start + 65536]))
            self.pending = bytearray()

    def flush(self):
        self.send()


class Input(io.TextIOBase):
    """An empty standard input."""

    encoding = "utf-8"

    def readable(self):
        return True

    def read(self, size=-1):
        return ""

    def readline(self, size=-1):
        return ""


def no_input(prompt="", /):
    sys.stdout.write(str(prompt))
    raise EOFError("input() is not available: a program has no standard input")


def no_system(command):
    """Replaces `os.system`, which only returns a status that scripts rarely check."""
    raise PermissionError("programs cannot start processes")


_output = None


def prepare():
    """Does what can be done once for all programs."""
    global _output
    import _sitebuiltins

    _output = Output()
    sys.stdin = sys.__stdin__ = Input()
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(_output, "utf-8", "strict", "\n", write_through=True)
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(_output, "utf-8", "backslashreplace", "\n", write_through=True)
    builtins.input = no_input
    os.system = no_system
    builtins.exit = _sitebuiltins.Quitter("exit", "")
    builtins.quit = _sitebuiltins.Quitter("quit", "")
    builtins.help = _sitebuiltins._Helper()
    channel.before_waiting = _output.settle
    loop.install()
    ending.hide(os.path.dirname(__file__))
    ending.track_awaits()
    sys.argv = [ending.NAME]


def child(settings, request, pipe):
    """Runs in a fork of the zygote and never returns."""
    try:
        confine.child(settings, request, pipe)
        channel.open_here()
        _, body = channel.receive()
        program = loads(body)
        _output.room = program["output"]
        gc.enable()
        result = _run(program["code"], program["faces"], min(program["output"], LONGEST_VALUE))
        result["left_out"] = _output.left_out
        _output.send()
        channel.send(channel.ENDING, dumps(result).encode())
    except BaseException as error:
        _report(error)
    finally:
        _exit(0)


def _report(error):
    try:
        result = {"how": "broken", "why": "%s: %s" % (type(error).__name__, error)}
        channel.send(channel.ENDING, dumps(result).encode())
    except BaseException:
        _exit(1)


def _run(code, bindings, longest):
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    vars(builtins).update(faces.names(bindings))
    ending.remember(code)
    result = _attempt(code, vars(main), longest)
    if result["how"] == "raised":
        loop.abandon_all()
    _wind_up(main)
    if result["how"] == "finished" or result["how"] == "raised":
        result["unfinished"] = ending.unfinished()
    # The hint about a forgotten `await` already covers unawaited calls.
    if result["how"] == "finished" or result["how"] == "raised" and not result["traceback"].endswith(ending.HINT):
        result["unawaited"] = ending.unawaited()
    return result


def _attempt(code, names, longest):
    # Reporting that memory ran out needs memory.
    ballast = bytearray(1 << 20)
    try:
        value = None
        try:
            value = _execute(code, names)
        except SystemExit as error:
            if ending.exit_message(error) is not None:
                raise
        loop.finish_all()
        return {"how": "finished", "value": _render(value, longest)}
    except SystemExit as error:
        message = ending.exit_message(error)
        return {"how": "finished"} if message is None else {"how": "raised", "traceback": message}
    except MemoryError as error:
        del ballast
        error.__traceback__ = None
        return {"how": "memory"}
    except BaseException as error:
        del ballast
        return {"how": "raised", "traceback": ending.format_error(error)}


def _execute(code, names):
    """Runs the program. Returns the value of its last line, if that is an expression."""
    body, last = _compiled(code)
    if (body.co_flags | (last.co_flags if last else 0)) & _COROUTINE:
        return asyncio.run(_awaited(body, last, names))
    exec(body, names)
    return eval(last, names) if last else None


async def _awaited(body, last, names):
    value = None
    for part in (body, last):
        if part is not None:
            value = eval(part, names)
            if part.co_flags & _COROUTINE:
                value = await value
    return value if last else None


def _compiled(code):
    """Compiles the program up to its last expression, and that expression."""
    if "\0" in code:
        before = code[: code.index("\0")]
        line = before.count("\n") + 1
        text = code.split("\n")[line - 1].split("\0")[0]
        raise SyntaxError("a program cannot contain null bytes", (ending.NAME, line, len(text) + 1, text))
    try:
        tree = compile(code, ending.NAME, "exec", ast.PyCF_ONLY_AST | _TOP_LEVEL_AWAIT, dont_inherit=True)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
            last = compile(last, ending.NAME, "eval", _TOP_LEVEL_AWAIT, dont_inherit=True)
        return compile(tree, ending.NAME, "exec", _TOP_LEVEL_AWAIT, dont_inherit=True), last
    except RecursionError:
        # The limit for syntax tree objects is lower than that of the compiler itself.
        return compile(code, ending.NAME, "exec", _TOP_LEVEL_AWAIT, dont_inherit=True), None


def _render(value, longest):
    """Renders the value of the last expression, if the program printed nothing."""
    if isinstance(value, asyncio.Future):
        # The task of the last line is done by now. If it failed, the program failed too.
        value = value.result() if value.done() and not value.cancelled() else None
    if _output.printed or value is None or asyncio.iscoroutine(value):
        return None
    try:
        text = repr(value)
    except MemoryError:
        raise
    except Exception as error:
        text = "<%s object whose repr raises %s: %s>" % (type(value).__name__, type(error).__name__, error)
    encoded = text.encode("utf-8", "backslashreplace")
    short = encoded[:longest].decode("utf-8", "ignore")
    return {"text": short, "left_out": len(encoded) - len(short.encode())}


def _wind_up(main):
    """Ends the program like Python does: runs exit functions, then clears the names of the main module in order."""
    import atexit

    atexit._run_exitfuncs()
    names = vars(main)
    for inner in (True, False):
        for name in list(names):
            if name != "__builtins__" and (name.startswith("_") and not name.startswith("__")) == inner:
                names[name] = None
    gc.collect()
