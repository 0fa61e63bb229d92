"""One program, in a process of its own: confine it, read it, run it, say how it ended."""

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


class Output(io.BufferedIOBase):
    """What is printed, in order, whichever stream it was printed to. Whole lines go out at once, so that they are
    there if the program is killed."""

    def __init__(self):
        self.room = 0
        self.left_out = 0
        self.pending = bytearray()

    def writable(self):
        return True

    def write(self, data):
        size = len(data)
        if size > self.room:
            self.left_out += size - self.room
            data = bytes(data)[: self.room]
        self.room -= len(data)
        self.pending += data
        if b"\n" in data or len(self.pending) > 65536:
            self.send()
        return size

    def send(self):
        pending = self.pending
        if pending:
            for start in range(0, len(pending), 65536):
                channel.send(channel.OUTPUT, bytes(pending[start : start + 65536]))
            self.pending = bytearray()

    def flush(self):
        self.send()


class Input(io.TextIOBase):
    """Nobody is there to type."""

    encoding = "utf-8"

    def readable(self):
        return True

    def read(self, size=-1):
        return ""

    def readline(self, size=-1):
        return ""


def no_input(prompt="", /):
    sys.stdout.write(str(prompt))
    raise EOFError("input() has nobody to ask: a program has no standard input")


_output = None


def prepare():
    """What can be done once for all programs."""
    global _output
    import _sitebuiltins

    _output = Output()
    sys.stdin = sys.__stdin__ = Input()
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(_output, "utf-8", "strict", "\n", write_through=True)
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(_output, "utf-8", "backslashreplace", "\n", write_through=True)
    builtins.input = no_input
    builtins.exit = _sitebuiltins.Quitter("exit", "")
    builtins.quit = _sitebuiltins.Quitter("quit", "")
    builtins.help = _sitebuiltins._Helper()
    channel.before_waiting = _output.send
    loop.install()
    ending.hide(os.path.dirname(__file__))
    ending.mind_awaits()
    sys.argv = [ending.NAME]


def child(settings, order, pipe):
    """A fork of the zygote, from its first step to its last."""
    try:
        confine.child(settings, order, pipe)
        channel.open_here()
        _, body = channel.receive()
        program = loads(body)
        _output.room = program["output"]
        gc.enable()
        how = _run(program["code"], program["faces"])
        how["left_out"] = _output.left_out
        _output.send()
        channel.send(channel.ENDING, dumps(how).encode())
    except BaseException as error:
        _report(error)
    finally:
        _exit(0)


def _report(error):
    try:
        why = {"how": "broken", "why": "%s: %s" % (type(error).__name__, error)}
        channel.send(channel.ENDING, dumps(why).encode())
    except BaseException:
        _exit(1)


def _run(code, known):
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    vars(builtins).update(faces.names(known))
    ending.remember(code)
    how = _attempt(code, vars(main))
    _wind_up(main)
    # Who is told what to do about a coroutine already need not hear it twice.
    if how["how"] == "finished" or how["how"] == "raised" and not how["traceback"].endswith(ending.HINT):
        how["unawaited"] = ending.unawaited()
    return how


def _attempt(code, names):
    # Whoever has run out of memory needs some to say so.
    ballast = bytearray(1 << 20)
    try:
        compiled = compile(code, ending.NAME, "exec", _TOP_LEVEL_AWAIT, dont_inherit=True)
        if compiled.co_flags & _COROUTINE:
            asyncio.run(_awaited(compiled, names))
        else:
            exec(compiled, names)
        return {"how": "finished"}
    except SystemExit as error:
        said = ending.of_exit(error)
        return {"how": "finished"} if said is None else {"how": "raised", "traceback": said}
    except MemoryError as error:
        del ballast
        error.__traceback__ = None
        return {"how": "memory"}
    except BaseException as error:
        del ballast
        return {"how": "raised", "traceback": ending.words(error)}


async def _awaited(compiled, names):
    await eval(compiled, names)


def _wind_up(main):
    """What Python does when it ends: exit functions, then the names of the main module, one after the other."""
    import atexit

    atexit._run_exitfuncs()
    names = vars(main)
    for inner in (True, False):
        for name in list(names):
            if name != "__builtins__" and (name.startswith("_") and not name.startswith("__")) == inner:
                names[name] = None
    gc.collect()
