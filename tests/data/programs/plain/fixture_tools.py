"""The fixture tools for a plain Python: the same names and the same answers as the test gives to a program."""

import asyncio
import base64
import json
import os

with open(os.path.join(os.path.dirname(__file__), "..", "fixture.json")) as file:
    DATA = json.load(file)
FAILED = {}


class ToolError(Exception):
    def __init__(self, message, type="execution_error", tool=None, details=None):
        super().__init__(message)
        self.message, self.type, self.tool, self.details = message, type, tool, details


ToolError.__module__ = "builtins"


class Media:
    def __init__(self, kind, mime_type, data, uri):
        self.kind, self.mime_type, self.data, self.uri = kind, mime_type, data, uri


async def list_orders(cursor=None, limit=None):
    start = int(cursor or 0)
    end = start + (limit or 10)
    more = end < len(DATA["orders"])
    return {"orders": DATA["orders"][start:end], "next_cursor": str(end) if more else None}


async def get_customer(customer_id):
    for customer in DATA["customers"]:
        if customer["id"] == customer_id:
            return dict(customer)
    raise ToolError("no customer %d" % customer_id, "execution_error", "mcp__shop__get_customer")


async def search_docs(query, limit=None):
    found = [doc for doc in DATA["docs"] if query in doc["title"]]
    return found[: limit or len(found)]


async def describe(topic):
    return DATA["topics"][topic]


async def picture(name):
    one = DATA["pictures"][name]
    return Media(one["kind"], one["mime_type"], base64.b64decode(one["base64"]), one["uri"])


async def echo(value):
    return json.loads(json.dumps(value))


async def slow(ms, value):
    await asyncio.sleep(ms / 1000)
    return value


async def flaky(key, fail_times):
    FAILED[key] = FAILED.get(key, 0) + 1
    if FAILED[key] <= fail_times:
        raise ToolError("%s is not ready" % key, "execution_error", "mcp__shop__flaky")
    return {"key": key, "attempts": FAILED[key]}


async def fail(message, type=None):
    raise ToolError(message, type or "execution_error", "mcp__shop__fail", {"asked": message})


def install():
    import builtins

    builtins.ToolError = ToolError
    for tool in (list_orders, get_customer, search_docs, describe, picture, echo, slow, flaky, fail):
        setattr(builtins, tool.__name__, tool)
        setattr(builtins, "mcp__shop__" + tool.__name__, tool)
