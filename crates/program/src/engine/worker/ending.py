"""The report of how a program ended: tracebacks with only the program's own lines, unawaited calls, unfinished tasks."""

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
    """Stores the code, so that tracebacks and warnings show its lines."""
    linecache.cache[NAME] = (len(code), None, code.splitlines(True), NAME)


_unawaited = []


def track_awaits():
    """Records calls that are never awaited, with the lines that created them. Python's own warning shows the line where
    the coroutine was discarded, and appears within the output of the program."""
    original = warnings._warn_unawaited_coroutine

    def warn(coroutine):
        lines = [line for file, line, _ in coroutine.cr_origin or () if file == NAME]
        if not lines:
            original(coroutine)
        elif len(_unawaited) < MOST_UNAWAITED:
            _unawaited.append({"call": coroutine.__qualname__[:200], "line": lines[0]})

    warnings._warn_unawaited_coroutine = warn
    # Comprehensions and lambdas have separate frames.
    sys.set_coroutine_origin_tracking_depth(3)


def unawaited():
    return list(_unawaited)


_unfinished = []


def line_of(task):
    """Returns the line of the program that created a task, or 0."""
    origin = getattr(task.get_coro(), "cr_origin", None) or ()
    return next((line for file, line, _ in origin if file == NAME), 0)


def _describe(task):
    """Describes a task with the line that created it and the line where it waits."""
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
    """Encodes the running tasks, in case the program is killed."""
    return json.dumps([dict(_describe(task), why="running") for task in tasks]).encode()


def abandon(tasks, why):
    """Records tasks that the program no longer waits for."""
    room = MOST_UNFINISHED - len(_unfinished)
    for task in sorted(tasks, key=line_of)[:room]:
        _unfinished.append(dict(_describe(task), why=why))


def unfinished():
    return list(_unfinished)


def hide(home):
    """Hides the frames of the worker, also in tracebacks that the program prints."""

    def hiding(walk):
        def filtered(*args):
            for item in walk(*args):
                frame = item[0]
                if not frame.f_code.co_filename.startswith(home):
                    yield item

        return filtered

    for name in ("walk_tb", "_walk_tb_with_full_positions"):
        if hasattr(traceback, name):
            setattr(traceback, name, hiding(getattr(traceback, name)))


def _program_frames(tb):
    """Returns the part of a traceback that is in the program."""
    frames = []
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == NAME:
            frames.append(tb)
        tb = tb.tb_next
    first = None
    for tb in reversed(frames):
        first = types.TracebackType(first, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return first


def _chain(error):
    """Returns an exception with its causes, contexts and group members."""
    seen, left = {}, [error]
    while left:
        current = left.pop()
        if current is None or id(current) in seen:
            continue
        seen[id(current)] = current
        left += [current.__cause__, current.__context__, *getattr(current, "exceptions", ())]
    return list(seen.values())


def _by_interpreter(error):
    """Formats one exception with the interpreter's own printer, without its causes and contexts."""
    saved = error.__cause__, error.__context__, error.__suppress_context__, sys.stderr
    sys.stderr = io.StringIO()
    try:
        error.__cause__ = error.__context__ = None
        sys.__excepthook__(type(error), error, error.__traceback__)
        return sys.stderr.getvalue()
    finally:
        error.__cause__, error.__context__, error.__suppress_context__, sys.stderr = saved


def _suggestion(error):
    """Returns the `Did you mean` part, which before 3.12 only the interpreter's own printer adds."""
    if sys.version_info >= (3, 12) or not isinstance(error, (NameError, AttributeError)):
        return ""
    _, separator, rest = _by_interpreter(error).rstrip("\n").rpartition(". Did you mean: ")
    return separator + rest if separator and "\n" not in rest else ""


def format_error(error):
    chain = _chain(error)
    hint = hints.hint_for(error)
    for link in chain:
        link.__traceback__ = _program_frames(link.__traceback__)
    if isinstance(error, SyntaxError) and len(chain) == 1 and error.__traceback__ is None:
        if error.text is None and error.filename == NAME and error.lineno:
            # For errors of the compiler rather than the parser, the interpreter looks for the line in a file.
            error.text = linecache.getline(NAME, error.lineno) or None
        # The error contains its line, and the two printers place carets differently.
        return _by_interpreter(error)
    report = traceback.TracebackException(type(error), error, error.__traceback__)
    _add_suggestions(report, error)
    text = "".join(report.format())
    if len(text) > LONGEST:
        omitted = len(text) - LONGEST
        half = LONGEST // 2
        text = "%s\n[... %d characters omitted ...]\n%s" % (text[:half], omitted, text[-half:])
    return text + hint


def _add_suggestions(report, error):
    pairs, seen = [(report, error)], set()
    while pairs:
        report, error = pairs.pop()
        if report is None or error is None or id(report) in seen:
            continue
        seen.add(id(report))
        suffix = _suggestion(error)
        if suffix and hasattr(report, "_str"):
            report._str += suffix
        pairs += [(report.__cause__, error.__cause__), (report.__context__, error.__context__)]


def exit_message(error):
    """Returns the error message of a `sys.exit`, or None if it means success."""
    if error.code is None or error.code == 0 and isinstance(error.code, int):
        return None
    if isinstance(error.code, int):
        return "SystemExit: %d\n" % error.code
    return "%s\n" % (error.code,)
