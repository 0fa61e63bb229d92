"""The official Python client, version 2 (both eras), as a client of Toolyard. cases.json has the expected values."""

import asyncio
import base64
import contextlib
import json
import os
import struct
import sys
from pathlib import Path

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, PromptReference

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))
LABEL, MODE, TRANSPORT = sys.argv[1:4]
ERA = "legacy" if MODE == "legacy" else "modern"
# "modern" uses the version without negotiation: its first request is not `server/discover`.
MODES = {"legacy": "legacy", "auto": "auto", "modern": "2026-07-28"}
checks = 0


async def check(name, body, seconds=10):
    """Runs a check and prints its result on one line."""
    global checks
    checks += 1
    try:
        await asyncio.wait_for(body(), seconds)
        print(f"ok {LABEL}: {name}", flush=True)
    except Exception as error:  # every exception is a failed check
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        reason = " ".join(f"{type(error).__name__} {error}".split())[:400]
        print(f"FAIL {LABEL}: {name}\t{reason}", flush=True)


def equal(actual, expected, what="value"):
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


def true(condition, reason):
    if not condition:
        raise AssertionError(reason)


async def refusal(awaitable):
    """Returns the JSON-RPC code of the error that a request must fail with."""
    try:
        answer = await awaitable
    except MCPError as error:
        return error.error.code
    raise AssertionError(f"expected an error, got {answer!r}")


@contextlib.asynccontextmanager
async def connect(elicit=None, token=None, errors=None, statuses=None):
    async def status(response):
        if statuses is not None:
            statuses.append(response.status_code)

    async def handle_message(message):
        if isinstance(message, Exception) and errors is not None:
            errors.append(message)

    async with contextlib.AsyncExitStack() as stack:
        if TRANSPORT == "stdio":
            target = StdioServerParameters(command=os.environ["TOOLYARD_BIN"], args=["stdio"])
        else:
            headers = {"Authorization": f"Bearer {token or os.environ['PEER_TOKEN']}"}
            http = httpx2.AsyncClient(headers=headers, timeout=30, event_hooks={"response": [status]})
            await stack.enter_async_context(http)
            target = streamable_http_client(os.environ["PEER_URL"], http_client=http)
        client = Client(target, mode=MODES[MODE], elicitation_callback=elicit, message_handler=handle_message)
        yield await stack.enter_async_context(client)


def plain(result):
    """Returns the relevant parts of a tool result."""
    content = [block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in result.content]
    return {"content": content, "structured": result.structured_content, "isError": bool(result.is_error)}


def text_result(words):
    return {"content": [{"type": "text", "text": word} for word in words], "structured": None, "isError": False}


async def check_tools(client):
    async def listed():
        tools = (await client.list_tools()).tools
        seen = {}
        for tool in tools:
            equal(tool.input_schema.get("type"), "object", f"inputSchema of {tool.name}")
            properties = sorted(tool.input_schema.get("properties", {}))
            seen[tool.name] = {"properties": properties, "required": sorted(tool.input_schema.get("required", []))}
        equal(seen, CASES["tools"], "tools")
        equal(len(tools), len(seen), "number of tools")

    await check("tools/list", listed)

    async def structured(case):
        answer = plain(await client.call_tool(case["tool"], case["arguments"]))
        value = answer["structured"]
        equal({key: value[key] for key in case["result"]} if case.get("more_keys") else value, case["result"])
        equal(answer["isError"], False, "isError")
        equal([block["type"] for block in answer["content"]], ["text"], "content")
        equal(json.loads(answer["content"][0]["text"]), value, "the text")

    async def text(case):
        equal(plain(await client.call_tool(case["tool"], case["arguments"])), text_result(case["result"]))

    async def image(case):
        answer = plain(await client.call_tool(case["tool"], case["arguments"]))
        data = answer["content"][0].get("data", "") if answer["content"] else ""
        block = {"type": "image", "mimeType": "image/png", "data": data}
        equal(answer, {"content": [block], "structured": None, "isError": False})
        png = base64.b64decode(data, validate=True)
        equal((png[:8], png[12:16]), (b"\x89PNG\r\n\x1a\n", b"IHDR"), "start of the PNG")
        equal(struct.unpack(">II", png[16:24]), (case["width"], case["height"]), "size in IHDR")

    for kind, body in (("structured", structured), ("texts", text), ("images", image)):
        for case in CASES[kind]:
            given = json.dumps(case["arguments"], ensure_ascii=False, separators=(",", ":"))
            await check(f"tools/call {case['tool']} {given}", lambda: body(case))

    async def progress():
        case, seen = CASES["progress"], []

        async def report(progress, total, message):
            seen.append((progress, total))

        answer = plain(await client.call_tool(case["tool"], case["arguments"], progress_callback=report))
        equal(answer, text_result(case["result"]))
        equal([total for _, total in seen], [case["total"]] * case["times"], "totals of the reports")
        values = [value for value, _ in seen]
        true(all(a < b for a, b in zip(values, values[1:])), f"not increasing: {values}")

    await check("tools/call count_down reports progress", progress)


async def check_failures(client):
    async def failing(case):
        answer = plain(await client.call_tool(case["tool"], case["arguments"]))
        equal(answer["isError"], True, "isError")
        text = "\n".join(block["text"] for block in answer["content"] if block["type"] == "text")
        true(text.strip(), "the error has no text")
        true(case.get("text", "") in text, f"{case.get('text')!r} is not in {text!r}")

    for case in CASES["failing"]:
        await check(f"tools/call {case['tool']} when {case['why']}", lambda: failing(case))

    async def unknown():
        equal(await refusal(client.call_tool("no_such_tool", {})), -32602, "code")

    await check("tools/call of an unknown tool", unknown)

    async def not_asked():
        if ERA == "modern":
            equal(await refusal(client.call_tool("ask_name", {})), -32021, "code")
        else:
            equal((await client.call_tool("ask_name", {})).is_error, True, "isError")

    await check("tools/call ask_name without the elicitation capability", not_asked)


async def check_resources(client):
    resource, template, nowhere = CASES["resource"], CASES["template"], CASES["unknownResource"]

    async def listed():
        found = (await client.list_resources()).resources
        equal([{"uri": str(each.uri), "mimeType": each.mime_type} for each in found], [resource])

    async def templates():
        found = (await client.list_resource_templates()).resource_templates
        equal([each.uri_template for each in found], [template["uriTemplate"]])

    async def about():
        contents = (await client.read_resource(resource["uri"])).contents
        equal([{"uri": str(each.uri), "mimeType": each.mime_type} for each in contents], [resource])
        true(contents[0].text.strip(), "no text")

    async def square():
        contents = (await client.read_resource(template["uri"])).contents
        equal([(str(each.uri), each.text) for each in contents], [(template["uri"], template["text"])])

    async def unknown():
        equal(await refusal(client.read_resource(nowhere["uri"])), nowhere[ERA], "code")

    await check("resources/list", listed)
    await check("resources/templates/list", templates)
    await check(f"resources/read {resource['uri']}", about)
    await check(f"resources/read {template['uri']}", square)
    await check("resources/read of an unknown resource", unknown)


async def check_prompts(client):
    prompt = CASES["prompt"]

    async def listed():
        prompts = (await client.list_prompts()).prompts
        equal([each.name for each in prompts], [prompt["name"]])
        equal({each.name: bool(each.required) for each in prompts[0].arguments}, prompt["arguments"])

    async def get():
        messages = (await client.get_prompt(prompt["name"], prompt["given"])).messages
        text = "\n".join(getattr(message.content, "text", "") for message in messages)
        for value in prompt["given"].values():
            true(value in text, f"{value} is not in: {text}")

    async def unknown():
        equal(await refusal(client.get_prompt("no_such_prompt")), -32602, "code")

    async def complete(case):
        ref = PromptReference(type="ref/prompt", name=prompt["name"])
        answer = await client.complete(ref, {"name": case["argument"], "value": case["value"]})
        true(answer.completion.values, "no values")
        equal(set(case["contains"]) - set(answer.completion.values), set(), "missing values")

    await check("prompts/list", listed)
    await check("prompts/get", get)
    await check("prompts/get of an unknown prompt", unknown)
    for case in CASES["completions"]:
        await check(f"completion/complete {case['argument']} {json.dumps(case['value'])}", lambda: complete(case))


async def elicitation():
    case, questions = CASES["elicitation"], []

    async def elicit(context, params):
        questions.append(params)
        return ElicitResult(action="accept", content=case["answer"])

    async with connect(elicit=elicit) as client:
        equal(plain(await client.call_tool(case["tool"], {})), text_result(case["result"]))
    equal([params.mode for params in questions], ["form"], "questions")
    true(questions[0].message.strip(), "no message")
    schema = questions[0].requested_schema
    equal((schema["type"], list(schema["properties"])), ("object", ["name"]), "requestedSchema")
    equal(schema["properties"]["name"]["type"], "string", "type of name")


async def wrong_token():
    statuses = []
    try:
        async with connect(token="wrong", statuses=statuses) as client:
            await client.list_tools()
    except ExceptionGroup:  # the client hides the status behind an internal error
        equal(set(statuses), {401}, "HTTP statuses")
        return
    raise AssertionError("connected")


async def whole_session():
    errors = []
    async with connect(errors=errors) as client:

        async def negotiated():
            equal(client.protocol_version, CASES["versions"][MODE], "version")
            session = client.session
            equal((session.initialize_result is not None), ERA == "legacy", "an initialize result")

        await check(f"negotiates {CASES['versions'][MODE]}", negotiated)
        await check_tools(client)
        await check_failures(client)
        await check_resources(client)
        await check_prompts(client)

    async def quiet():
        equal([repr(error) for error in errors], [], "errors")

    await check("the client reported no errors", quiet)


async def main():
    await check("connects and closes", whole_session, seconds=60)
    await check("tools/call ask_name asks the client", elicitation)
    if TRANSPORT == "http":
        await check("a wrong token is rejected with 401", wrong_token)
    print(f"end {checks}", flush=True)


asyncio.run(main())
