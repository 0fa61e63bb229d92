"""The official Python client, version 2 (both eras), as a client of the tester: reads a line of JSON per call and
writes one per result."""

import asyncio
import contextlib
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult

MODE, TRANSPORT = sys.argv[2:4]
# "modern" uses the version without negotiation: its first request is not `server/discover`.
MODES = {"legacy": "legacy", "modern": "2026-07-28"}
ANSWERS = json.loads(os.environ["PEER_ANSWERS"])
asked = []


def dump(value):
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


async def elicit(_context, params):
    asked.append({"method": "elicitation/create", "params": dump(params)})
    kind = "elicitation/create url" if params.mode == "url" else "elicitation/create"
    return ElicitResult.model_validate(ANSWERS[kind])


async def sample(_context, params):
    asked.append({"method": "sampling/createMessage", "params": dump(params)})
    return CreateMessageResult.model_validate(ANSWERS["sampling/createMessage"])


async def roots(_context):
    asked.append({"method": "roots/list"})
    return ListRootsResult.model_validate(ANSWERS["roots/list"])


@contextlib.asynccontextmanager
async def connect():
    async with contextlib.AsyncExitStack() as stack:
        if TRANSPORT == "stdio":
            env = {key: value for key, value in os.environ.items() if not key.startswith(("PEER_", "TOOLYARD_"))}
            args = ["stdio", "--expose", "tester"]
            target = StdioServerParameters(command=os.environ["TOOLYARD_BIN"], args=args, env=env)
        else:
            http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {os.environ['PEER_TOKEN']}"}, timeout=60)
            await stack.enter_async_context(http)
            target = streamable_http_client(os.environ["PEER_URL"], http_client=http)
        client = Client(
            target, mode=MODES[MODE], elicitation_callback=elicit, sampling_callback=sample, list_roots_callback=roots
        )
        yield await stack.enter_async_context(client)


def write(value):
    print(json.dumps(value), flush=True)


async def answer(client, line):
    request = json.loads(line)
    asked.clear()
    try:
        result = await client.call_tool(request["name"], request["arguments"])
        content = [dump(block) for block in result.content]
        output = {"content": content, "structured": result.structured_content, "isError": bool(result.is_error)}
    except Exception as error:  # every exception is a result
        output = {"thrown": f"{type(error).__name__} {error}"}
    write({**output, "asked": list(asked)})


async def main():
    async with connect() as client:
        tools = [dump(tool) for tool in (await client.list_tools()).tools]
        server = dump(client.server_info) if client.server_info else None
        write({"server": server, "version": client.protocol_version, "tools": tools})
        while line := await asyncio.to_thread(sys.stdin.readline):
            await answer(client, line)


asyncio.run(main())
