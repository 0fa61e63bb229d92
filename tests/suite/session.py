"""The official Python client, version 2: sends requests to any server and prints every answer as JSON.

Arguments: the mode of the client, the command or URL of the server, and the requests as JSON.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult


async def main(mode, target, requests):
    questions, progress = [], []

    async def elicit(context, params):
        questions.append(params.message)
        return ElicitResult(action="accept", content={"name": "Ada"})

    async def report(value, total, message):
        progress.append([value, total, message])

    if target.startswith("http"):
        connection = streamable_http_client(target)
    else:
        connection = StdioServerParameters(command=target, args=[])
    async with Client(connection, mode=mode, elicitation_callback=elicit) as client:
        methods = {
            "tools": client.list_tools, "prompts": client.list_prompts, "resources": client.list_resources,
            "read": client.read_resource, "prompt": client.get_prompt,
            "call": lambda name, arguments: client.call_tool(name, arguments, progress_callback=report),
        }
        for method, *arguments in json.loads(requests):
            try:
                answer = (await methods[method](*arguments)).model_dump(by_alias=True, mode="json")
                print(method, json.dumps(answer, sort_keys=True))
            except MCPError as error:
                print(method, "error", error.error.code, error.error.message)
    print("questions", json.dumps(questions))
    print("progress", json.dumps(progress))


asyncio.run(main(*sys.argv[1:]))
