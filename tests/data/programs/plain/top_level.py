"""Runs a script in a plain Python; one that awaits at its top level as Python's own prompt would."""

import ast
import asyncio
import linecache
import os
import sys
import types

PLAIN = [sys.executable, "-u", "-B", "-X", "utf8", sys.argv[1]]
with open(sys.argv[1]) as file:
    code = file.read()
try:
    compiled = compile(code, "<program>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
except SyntaxError:
    os.execv(sys.executable, PLAIN)
if not compiled.co_flags & 0x80:
    os.execv(sys.executable, PLAIN)

main = types.ModuleType("__main__")
sys.modules["__main__"] = main
linecache.cache["<program>"] = (len(code), None, code.splitlines(True), "<program>")


async def awaited():
    await eval(compiled, vars(main))


def print_error(kind, error, trace):
    """As Python does it, with the lines that it would read from a file."""
    import traceback

    traceback.print_exception(kind, error, trace)


sys.excepthook = print_error
asyncio.run(awaited())
