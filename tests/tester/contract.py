"""What the document that defines the tester promises: its definitions, and the form of every answer."""

import json
from datetime import datetime

from harness.cache import TESTS
from jsonschema import Draft202012Validator

SPEC = json.loads((TESTS / "data/spec/tester-tools.json").read_text(encoding="utf-8"))
TOOLS = {tool["name"].removeprefix(SPEC["prefix"]): tool for tool in SPEC["tools"]}
VALIDATORS = {name: Draft202012Validator(tool["returnSchema"]) for name, tool in TOOLS.items()}
# What the document shows and a server need not say.
OPTIONAL = {"description", "mimeType"}
TIMES = {"connected_at", "disconnected_at", "retrieved_at", "started_at", "completed_at"}


def ordered(text):
    """JSON with the order of keys kept; the text of numbers is not, since the clients write them anew."""
    return json.loads(text, object_pairs_hook=tuple)


def definition_problems(tools):
    """Where the advertised tools are not those of the document. How local servers are named is ours to say."""
    problems = []
    if [tool["name"] for tool in tools] != list(TOOLS):
        return [f"tools {[tool['name'] for tool in tools]}"]
    for tool in tools:
        name, promised = tool["name"], TOOLS[tool["name"]]
        pairs = zip(tool["description"].splitlines(), promised["description"].splitlines(), strict=True)
        changed = [theirs for ours, theirs in pairs if ours != theirs]
        expected = ["For local servers, this will be implemented in Phase 2."] if name == "connect_to_server" else []
        for what, good in (
            ("description", changed == expected),
            ("inputSchema", tool["inputSchema"] == promised["inputSchema"]),
            ("outputSchema", tool.get("outputSchema") == promised["returnSchema"]),
        ):
            if not good:
                problems.append(f"the {what} of {name} is not the document's")
    return problems


def missing(schema, value, at=""):
    """What a schema names and an answer that worked does not have."""
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
                yield f"{here} has no zone"
            elif key.endswith("_ms") and not (type(part) is int and part >= 0):
                yield f"{here} is {part!r}"
            elif key not in ("result", "arguments", "details", "resource", "prompt", "tools", "resources", "prompts"):
                yield from time_problems(part, here)


def error_problems(body):
    """Where an error has not the form of the document's example."""
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


def problems(tool, said):
    """Where an answer of one of the nine, as an official client gave it to us, breaks a promise."""
    if "thrown" in said:
        return [f"the client threw {said['thrown']}"]
    if [(block.get("type"), sorted(block)) for block in said["content"]] != [("text", ["text", "type"])]:
        return [f"content {said['content']}"]
    text, body = said["content"][0]["text"], said["structured"]
    if ordered(text) != ordered(json.dumps(body)):
        return [f"the text says {text} and structuredContent {json.dumps(body)}"]
    found = [f"schema: {error.json_path} {error.message}" for error in VALIDATORS[tool].iter_errors(body)]
    found += time_problems(body)
    if said["isError"] != (body.get("success") is False):
        found.append(f"isError {said['isError']} and success {body.get('success')}")
    if said["isError"]:
        return found + list(error_problems(body))
    if body.get("connected") is False:
        return found  # there is no connection to say anything about
    return found + list(missing(TOOLS[tool]["returnSchema"], body))
