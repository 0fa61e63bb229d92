"""The contract of the tester: its tool definitions and the format of every result."""

import json
from datetime import datetime

from harness.cache import TESTS
from jsonschema import Draft202012Validator

SPEC = json.loads((TESTS / "data/spec/tester-tools.json").read_text(encoding="utf-8"))
TOOLS = {tool["name"].removeprefix(SPEC["prefix"]): tool for tool in SPEC["tools"]}
VALIDATORS = {name: Draft202012Validator(tool["returnSchema"]) for name, tool in TOOLS.items()}
# Fields of the document that a server can omit.
OPTIONAL = {"description", "mimeType"}
TIMES = {"connected_at", "disconnected_at", "retrieved_at", "started_at", "completed_at"}


def ordered(text):
    """Parses JSON with its key order. Number texts are not preserved, because the clients reformat them."""
    return json.loads(text, object_pairs_hook=tuple)


def definition_problems(tools):
    """Returns the differences between the advertised tools and the document, which leaves the naming of local servers open."""
    problems = []
    if [tool["name"] for tool in tools] != list(TOOLS):
        return [f"tools {[tool['name'] for tool in tools]}"]
    for tool in tools:
        name, expected_tool = tool["name"], TOOLS[tool["name"]]
        pairs = zip(tool["description"].splitlines(), expected_tool["description"].splitlines(), strict=True)
        changed = [theirs for ours, theirs in pairs if ours != theirs]
        expected = ["For local servers, this will be implemented in Phase 2."] if name == "connect_to_server" else []
        for what, good in (
            ("description", changed == expected),
            ("inputSchema", tool["inputSchema"] == expected_tool["inputSchema"]),
            ("outputSchema", tool.get("outputSchema") == expected_tool["returnSchema"]),
        ):
            if not good:
                problems.append(f"the {what} of {name} differs from the document")
    return problems


def missing(schema, value, at=""):
    """Yields the properties of a schema that a successful result lacks."""
    for key, part in schema.get("properties", {}).items():
        if key not in value:
            if key not in OPTIONAL:
                yield f"{at}/{key} is missing"
        elif isinstance(value[key], dict):
            yield from missing(part, value[key], f"{at}/{key}")


def time_problems(value, at=""):
    if isinstance(value, dict):
        for key, part in value.items():
            here = f"{at}/{key}"
            if key in TIMES and datetime.fromisoformat(part).tzinfo is None:
                yield f"{here} has no time zone"
            elif key.endswith("_ms") and not (type(part) is int and part >= 0):
                yield f"{here} is {part!r}"
            elif key not in ("result", "arguments", "details", "resource", "prompt", "tools", "resources", "prompts"):
                yield from time_problems(part, here)


def error_problems(body):
    """Yields the differences between an error and the example of the document."""
    error = body.get("error", {})
    if error.get("type") not in SPEC["errorTypes"]:
        yield f"error type {error.get('type')!r}"
    if set(error) - {"suggestion"} != set(SPEC["errorExample"]["error"]) - {"suggestion"}:
        yield f"an error with {sorted(error)}"
    for key in ("message", "suggestion"):
        if not str(error.get(key) or "").strip():
            yield f"an error without {key}"
    if not isinstance(error.get("details"), dict):
        yield "an error without details"
    if set(SPEC["errorExample"]) - set(body) - {"connection"}:
        yield f"an error answer with {sorted(body)}"
    if "connection" in body and "server_url" not in body["connection"]:
        yield "a connection without server_url"


def problems(tool, result):
    """Returns the contract violations in a result of one of the nine tools, as received by an official client."""
    if "thrown" in result:
        return [f"the client threw {result['thrown']}"]
    if [(block.get("type"), sorted(block)) for block in result["content"]] != [("text", ["text", "type"])]:
        return [f"content {result['content']}"]
    text, body = result["content"][0]["text"], result["structured"]
    if ordered(text) != ordered(json.dumps(body)):
        return [f"the text is {text}, but structuredContent is {json.dumps(body)}"]
    found = [f"schema: {error.json_path} {error.message}" for error in VALIDATORS[tool].iter_errors(body)]
    found += time_problems(body)
    if result["isError"] != (body.get("success") is False):
        found.append(f"isError {result['isError']} but success {body.get('success')}")
    if result["isError"]:
        return found + list(error_problems(body))
    if body.get("connected") is False:
        return found  # without a connection, the other fields are absent
    return found + list(missing(TOOLS[tool]["returnSchema"], body))
