"""How a program ended, in the words that Python has for it, with the program's own lines only."""

import io
import json
import linecache
import sys
import traceback
import types
import warnings

from . import hints

NAME = hints.NAME
LONGEST = 100_000
MOST_UNAWAITED = 20
MOST_UNFINISHED = 20
HINT = hints.AWAIT


def remember(code):
    """Lets tracebacks and warnings show the lines."""
    linecache.cache[NAME] = (len(code), None, code.splitlines(True), NAME)


_unawaited = []


def mind_awaits():
    """Remembers calls that nobody awaited, with the lines that made them. Python's own warning says where they were
    thrown away instead, in the middle of what the program prints."""
    pythons_own = warnings._warn_unawaited_coroutine

    def warn(coroutine):
        made = [line for file, line, _ in coroutine.cr_origin or () if file == NAME]
        if not made:
            pythons_own(coroutine)
        elif len(_unawaited) < MOST_UNAWAITED:
            _unawaited.append({"call": coroutine.__qualname__[:200], "line": made[0]})

    warnings._warn_unawaited_coroutine = warn
    # Comprehensions and lambdas are frames of their own.
    sys.set_coroutine_origin_tracking_depth(3)


def unawaited():
    return list(_unawaited)


_unfinished = []


def line_of(task):
    """The line of the program that made a task, or 0."""
    made = getattr(task.get_coro(), "cr_origin", None) or ()
    return next((line for file, line, _ in made if file == NAME), 0)


def _running(task):
    """A task with its lines: where it was made, and where in the program it waits."""
    coroutine = task.get_coro()
    at, inner = None, coroutine
    while inner is not None:
        frame = getattr(inner, "cr_frame", None)
        if frame is not None and frame.f_code.co_filename == NAME:
            at = frame.f_lineno
        inner = getattr(inner, "cr_await", None)
    call = getattr(coroutine, "__qualname__", type(coroutine).__name__)[:200]
    return {"call": call, "line": line_of(task) or at, "at": at}


def unfinished_now(tasks):
    """What runs while the program could be stopped, as a message."""
    return json.dumps([dict(_running(task), why="running") for task in tasks]).encode()


def leave(tasks, why):
    """Remembers tasks that are not waited for any more."""
    room = MOST_UNFINISHED - len(_unfinished)
    for task in sorted(tasks, key=line_of)[:room]:
        _unfinished.append(dict(_running(task), why=why))


def unfinished():
    return list(_unfinished)


def hide(home):
    """Frames of this worker are no business of a program, also where it prints tracebacks itself."""

    def hiding(walk):
        def walked(*args):
            for item in walk(*args):
                frame = item[0]
                if not frame.f_code.co_filename.startswith(home):
                    yield item

        return walked

    for name in ("walk_tb", "_walk_tb_with_full_positions"):
        if hasattr(traceback, name):
            setattr(traceback, name, hiding(getattr(traceback, name)))


def _own(tb):
    """The part of a traceback that is in the program."""
    frames = []
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == NAME:
            frames.append(tb)
        tb = tb.tb_next
    own = None
    for tb in reversed(frames):
        own = types.TracebackType(own, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return own


def _every(error):
    """An exception and all that hang on it."""
    seen, left = {}, [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen[id(one)] = one
        left += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return list(seen.values())


def _by_interpreter(error):
    """What the interpreter's own printer says of one exception, without those that hang on it."""
    keep = error.__cause__, error.__context__, error.__suppress_context__, sys.stderr
    sys.stderr = io.StringIO()
    try:
        error.__cause__ = error.__context__ = None
        sys.__excepthook__(type(error), error, error.__traceback__)
        return sys.stderr.getvalue()
    finally:
        error.__cause__, error.__context__, error.__suppress_context__, sys.stderr = keep


def _suggestion(error):
    """`Did you mean`, which before 3.12 only the interpreter's own printer says."""
    if sys.version_info >= (3, 12) or not isinstance(error, (NameError, AttributeError)):
        return ""
    _, found, rest = _by_interpreter(error).rstrip("\n").rpartition(". Did you mean: ")
    return found + rest if found and "\n" not in rest else ""


def words(error):
    every = _every(error)
    hint = hints.of(error)
    for one in every:
        one.__traceback__ = _own(one.__traceback__)
    if isinstance(error, SyntaxError) and len(every) == 1 and error.__traceback__ is None:
        if error.text is None and error.filename == NAME and error.lineno:
            # What the parser accepts and the compiler does not: the interpreter looks for the line in a file.
            error.text = linecache.getline(NAME, error.lineno) or None
        # It carries its line with it, and the two printers disagree about carets.
        return _by_interpreter(error)
    told = traceback.TracebackException(type(error), error, error.__traceback__)
    _suggest(told, error)
    text = "".join(told.format())
    if len(text) > LONGEST:
        left_out = len(text) - LONGEST
        half = LONGEST // 2
        text = "%s\n[... %d characters left out ...]\n%s" % (text[:half], left_out, text[-half:])
    return text + hint


def _suggest(told, error):
    pairs, seen = [(told, error)], set()
    while pairs:
        one, of = pairs.pop()
        if one is None or of is None or id(one) in seen:
            continue
        seen.add(id(one))
        suffix = _suggestion(of)
        if suffix and hasattr(one, "_str"):
            one._str += suffix
        pairs += [(one.__cause__, of.__cause__), (one.__context__, of.__context__)]


def of_exit(error):
    """What `sys.exit` means: nothing, or the words of a failure."""
    if error.code is None or error.code == 0 and isinstance(error.code, int):
        return None
    if isinstance(error.code, int):
        return "SystemExit: %d\n" % error.code
    return "%s\n" % (error.code,)
