"""Questions of a program and their answers: calls of tools, looking tools up, progress."""

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
    """A call of a tool that did not work out. Its text is the message."""

    def __init__(self, message, type="execution_error", tool=None, details=None):
        super().__init__(message)
        self.message = message
        self.type = type
        self.tool = tool
        self.details = details


ToolError.__module__ = "builtins"
ToolError.__qualname__ = "ToolError"


class Media:
    """An image, a sound or a file that a tool gave."""

    __slots__ = ("kind", "mime_type", "data", "uri")

    def __init__(self, kind, mime_type, data, uri):
        self.kind = kind
        self.mime_type = mime_type
        self.data = data
        self.uri = uri

    def __repr__(self):
        where = "" if self.uri is None else " from %s" % self.uri
        return "<%s %s, %d bytes%s>" % (self.kind, self.mime_type, len(self.data), where)


Media.__module__ = "builtins"


def plain(value):
    """What JSON has no word for, in words that tools understand."""
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
        raise TypeError("a coroutine was given; write `await` before the call that makes it")
    raise TypeError("a value of type %s cannot be given to a tool" % name)


def _encoded(question):
    try:
        return dumps(question, default=plain, allow_nan=False, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # A lone surrogate, which JSON can escape but UTF-8 cannot say.
        return dumps(question, default=plain, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        why = "JSON has no infinity and no not-a-number" if "Out of range" in str(error) else error
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
    """One answer less to wait for, so another question can go out."""
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
    """Asks without an event loop; other answers that arrive meanwhile go where they belong."""
    number, body = _number(question)
    _waiting[number] = None
    _send(number, body)
    while number not in _answers:
        deliver(channel.receive())
    return value_of(_answers.pop(number))


def tell(question):
    """Says something that is not answered."""
    _, body = _number(question)
    channel.send(channel.QUESTION, body)


def deliver(frame):
    if frame is None:
        return
    kind, body = frame
    # The number comes first, so that the value is not read before somebody wants it.
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
        raise ToolError("the answer is nested too deeply") from None
    except ValueError:
        return loads(text, parse_int=_long)


def _long(digits):
    """An integer of any length; Python refuses those of more than 4,300 digits unless told otherwise."""
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
    """What an HTTP API answered, with `status` and `headers` of the answer."""


class HttpList(list):
    """The same of a list."""


class HttpText(str):
    """The same of a text."""


_HTTP = {dict: HttpDict, list: HttpList, str: HttpText}


def _with_http(value, http):
    """The value with `status` and `headers`, where it is something that can have them."""
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
