"""Requests of a program and their replies: tool calls, lookups and progress."""

import asyncio
from base64 import b64decode, b64encode
from collections import deque
from json import dumps, loads

from . import channel

_waiting = {}
_queue = deque()
_answers = {}
_sent = set()
_next = 0


class ToolError(Exception):
    """A failed tool call. `str(error)` is the message."""

    def __init__(self, message, type="execution_error", tool=None, details=None):
        super().__init__(message)
        self.message = message
        self.type = type
        self.tool = tool
        self.details = details


ToolError.__module__ = "builtins"
ToolError.__qualname__ = "ToolError"


class Media:
    """An image, audio or a file that a tool returned."""

    __slots__ = ("kind", "mime_type", "data", "uri")

    def __init__(self, kind, mime_type, data, uri):
        self.kind = kind
        self.mime_type = mime_type
        self.data = data
        self.uri = uri

    def __repr__(self):
        origin = "" if self.uri is None else " from %s" % self.uri
        return "<%s %s, %d bytes%s>" % (self.kind, self.mime_type, len(self.data), origin)


Media.__module__ = "builtins"


def plain(value):
    """Converts a value that JSON cannot represent."""
    if isinstance(value, Media):
        return b64encode(value.data).decode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b64encode(bytes(value)).decode()
    if isinstance(value, (set, frozenset)):
        return list(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    name = type(value).__name__
    if name == "Decimal":
        return int(value) if value == value.to_integral_value() else float(value)
    if name == "UUID" or hasattr(value, "__fspath__"):
        return str(value)
    if hasattr(value, "__dataclass_fields__"):
        return {field: getattr(value, field) for field in value.__dataclass_fields__}
    if hasattr(value, "_value_") and hasattr(value, "name"):
        return value.value
    if hasattr(value, "keys") and hasattr(value, "__getitem__"):
        return {key: value[key] for key in value.keys()}
    if asyncio.iscoroutine(value):
        raise TypeError("a coroutine was passed; write `await` before the call that creates it")
    raise TypeError("a value of type %s cannot be passed to a tool" % name)


def _encoded(question):
    try:
        return dumps(question, default=plain, allow_nan=False, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # JSON can escape a lone surrogate, but UTF-8 cannot encode it.
        return dumps(question, default=plain, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        why = "JSON does not support infinity and NaN" if "Out of range" in str(error) else error
        raise ToolError(
            "the arguments cannot be sent: %s" % why, "invalid_arguments", question.get("tool")
        ) from None


def _send(number, body):
    _sent.add(number)
    channel.send(channel.QUESTION, body)


def _number(question):
    global _next
    _next += 1
    question["id"] = _next
    return _next, _encoded(question)


def _done(number):
    """Marks a request as answered and sends the next one from the queue."""
    _sent.discard(number)
    while _queue and len(_sent) < channel.IN_FLIGHT:
        waiting, body = _queue.popleft()
        if waiting in _waiting:
            _send(waiting, body)


def _forget(future, number):
    if future.cancelled() and _waiting.pop(number, None) is not None and number in _sent:
        channel.send(channel.CANCEL, number.to_bytes(8, "little"))
        _done(number)


async def ask(question):
    number, body = _number(question)
    future = asyncio.get_running_loop().create_future()
    _waiting[number] = future
    if len(_sent) < channel.IN_FLIGHT:
        _send(number, body)
    else:
        _queue.append((number, body))
    try:
        reply = await future
    except asyncio.CancelledError:
        _forget(future, number)
        raise
    return value_of(reply)


def ask_and_wait(question):
    """Sends a request without an event loop and waits. Delivers other replies that arrive meanwhile."""
    number, body = _number(question)
    _waiting[number] = None
    _send(number, body)
    while number not in _answers:
        deliver(channel.receive())
    return value_of(_answers.pop(number))


def tell(question):
    """Sends a request that has no reply."""
    _, body = _number(question)
    channel.send(channel.QUESTION, body)


def deliver(frame):
    if frame is None:
        return
    kind, body = frame
    # The number comes first, so that the value is parsed only when it is needed.
    number = int.from_bytes(body[:8], "little")
    if number not in _waiting:
        return
    future = _waiting.pop(number)
    _done(number)
    if future is None:
        _answers[number] = (kind, body)
    elif not future.done():
        future.set_result((kind, body))


def _parsed(text):
    try:
        return loads(text)
    except RecursionError:
        raise ToolError("the result is nested too deeply") from None
    except ValueError:
        return loads(text, parse_int=_long)


def _long(digits):
    """Parses an integer of any length. By default, Python refuses more than 4,300 digits."""
    import sys

    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return int(digits)
    finally:
        sys.set_int_max_str_digits(before)


def _block(block):
    if "json" in block:
        return block["json"]
    if "text" in block:
        return block["text"]
    return Media(block["kind"], block["mime_type"], b64decode(block["base64"]), block["uri"])


class HttpDict(dict):
    """A dict from an HTTP API, with `status` and `headers` of the response."""


class HttpList(list):
    """A list from an HTTP API, with `status` and `headers` of the response."""


class HttpText(str):
    """A string from an HTTP API, with `status` and `headers` of the response."""


_HTTP = {dict: HttpDict, list: HttpList, str: HttpText}


def _with_http(value, http):
    """Adds `status` and `headers` to a value, if its type allows attributes."""
    kind = _HTTP.get(type(value))
    if kind is not None:
        value = kind(value)
        value.status = http.get("status")
        value.headers = http.get("headers", {})
    return value


def value_of(reply):
    kind, body = reply
    body = body[8:]
    if kind == b"h":
        length = 4 + int.from_bytes(body[:4], "little")
        http, inner = body[4:length], body[length:]
        return _with_http(value_of((inner[:1], bytes(8) + inner[1:])), _parsed(http))
    if kind == b"t":
        return body.decode()
    value = _parsed(body)
    if kind == b"x":
        raise ToolError(value["message"], value["kind"], value["tool"], value["details"])
    if kind == b"b":
        blocks = [_block(block) for block in value]
        return blocks[0] if len(blocks) == 1 else blocks
    return value
