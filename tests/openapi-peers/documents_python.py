"""Calls tools through the official Python SDK, which validates results against output schemas. Reads the plan from
standard input and writes one JSON line per result to standard output."""

import asyncio
import json
import sys

from jsonschema import Draft7Validator
from mcp import Client

# Maximum number of calls that Prism handles in parallel.
AT_ONCE = 8


def breaks(schema, text):
    """Returns whether a body violates a schema, wrapped in an object if the schema expects that."""
    try:
        body = json.loads(text)
    except ValueError:
        body = text
    schema = schema or {}
    wrapped = list(schema.get("properties", {})) == ["result"] or not isinstance(body, dict)
    return not Draft7Validator(schema).is_valid({"result": body} if wrapped else body)


async def call(client, turn, source, name, arguments, schema):
    async with turn:
        report = {"source": source, "name": name}
        try:
            result = await asyncio.wait_for(client.call_tool(name, arguments), 300)
        except Exception as error:  # every error of the client is a result
            return report | {"thrown": f"{type(error).__name__}: {error}"[:600]}
    answer = result.model_dump(by_alias=True, mode="json")
    http = (answer.get("_meta") or {}).get("dev.toolyard/http", {})
    text = "".join(block.get("text") or "" for block in answer["content"][:1])
    report |= {"isError": bool(answer.get("isError")), "status": http.get("status"), "text": text[:300]}
    if text.startswith("the call was made: "):
        report["breaks"] = breaks(schema, text.partition("\n\n")[2])
    return report


async def call_all(url, source, calls):
    turn = asyncio.Semaphore(AT_ONCE)
    async with Client(f"{url}/servers/{source}/mcp") as client:
        cursor, schemas = None, {}
        while True:
            page = await client.list_tools(cursor=cursor)
            schemas |= {tool.name: tool.output_schema for tool in page.tools}
            cursor = page.next_cursor
            if not cursor:
                break
        order = [call for call in calls for _ in range(call["times"])]
        jobs = [call(client, turn, source, one["name"], one["arguments"], schemas.get(one["name"])) for one in order]
        for report in await asyncio.gather(*jobs):
            print(json.dumps(report), flush=True)


async def main():
    order = json.load(sys.stdin)
    for source, calls in order["plan"].items():
        await call_all(order["url"], source, calls)


asyncio.run(main())
