"""Tests one server through the tester: connects, reads all lists, uses every tool, resource and prompt, and disconnects."""

import base64
import json
import os

from cases import steady
from contract import problems
from direct import NOWHERE, questions, refused
from harness.talk import exact


class Answer:
    """The result of one of the nine tools."""

    def __init__(self, tool, result):
        self.problems = problems(tool, result)
        self.asked = result.get("asked", [])
        broken = "thrown" in result or not result.get("content")
        self.text = "{}" if broken else result["content"][0]["text"]
        self.body, self.tree = json.loads(self.text), exact(self.text)

    def at(self, *path):
        """Returns a part of the result as exact JSON."""
        tree = self.tree
        for key in path:
            tree = dict(tree).get(key) if isinstance(tree, tuple) else None
        return tree

    @property
    def error(self):
        return self.body.get("error", {})

    def pointers(self):
        return {each.get("pointer") for each in self.error.get("details", {}).get("violations", [])}


class Visit:
    """A test run with one server. `seen` holds its responses, to be compared with `direct.conversation`."""

    def __init__(self, tally, label, ask, case):
        self.tally, self.label, self.case = tally, f"{label} {case.name}", case
        self._ask = ask
        self.seen = {}
        # These servers do not violate the protocol.
        self.done = {"tools_called": 0, "resources_read": 0, "prompts_retrieved": 0, "protocol_violations": 0}
        self.connection = {}

    def check(self, what, answer, *found):
        """Reports whether the result fulfills the contract and has none of the given problems."""
        wrong = [*answer.problems, *(each for each in found if each)]
        reason = f"{'; '.join(map(str, wrong))} in {answer.text[:800]}"
        self.tally.report(not wrong, f"{self.label}: {what}", reason)

    def ask(self, tool, **arguments):
        return Answer(tool, self._ask(tool, arguments))

    def refuses(self, kind, tool, what, found=lambda answer: "", **arguments):
        """Checks that a call returns this type of error."""
        answer = self.ask(tool, **arguments)
        wrong = answer.error.get("type") != kind and f"{answer.error.get('type')} instead of {kind}"
        self.check(f"{tool} {what} is {kind}", answer, wrong, not wrong and found(answer))
        return answer

    def on_connection(self, answer):
        """Checks that a result contains the current connection."""
        connection = answer.body.get("connection", {})
        wrong = {key: value for key, value in connection.items() if self.connection.get(key) != value}
        return f"connection {connection}" if wrong or not connection else ""

    def run(self):
        """Runs all checks. Returns the era of the connection, or `None` if it failed."""
        era = self.connect()
        if not era:
            return None
        tools, _, prompts = self.lists("before")
        self.calls()
        self.invalid_calls(tools)
        _, resources, _ = self.lists("after")
        self.resources(resources)
        self.prompts(prompts)
        self.disconnect()
        return era

    def connect(self):
        answer = self.ask("connect_to_server", url=self.case.url)
        self.connection = answer.body.get("connection", {})
        transport = "streaming-http" if self.case.port else "stdio"
        expected = {"server_url": self.case.url, "transport": transport}
        actual = {key: self.connection.get(key) for key in expected}
        self.check("connect_to_server", answer, actual != expected and f"connection {actual}")
        for key in ("server_info", "capabilities", "instructions"):
            self.seen[key] = answer.at("connection", key)
        if answer.body.get("success"):
            again = {"url": self.case.url}
            self.refuses("connection_failed", "connect_to_server", "while connected", self.still_connected, **again)
        return self.connection.get("protocol_era")

    def still_connected(self, answer):
        where, suggestion = answer.error["details"].get("server_url"), answer.error.get("suggestion", "")
        if where != self.case.url or "disconnect" not in suggestion:
            return "the error does not name the current connection and suggest `disconnect`"
        return ""

    def lists(self, when):
        """Checks and returns the current lists of tools, resources and prompts."""
        found = []
        for what in ("tools", "resources", "prompts"):
            answer = self.ask(f"list_{what}")
            self.seen[f"{what} {when}"] = self.as_advertised(answer) if what == "tools" else answer.at(what)
            if what == "resources":
                self.seen[f"resource templates {when}"] = answer.at("resource_templates")
            found.append(answer.body.get(what, []))
            total = answer.body.get("metadata", {}).get(f"total_{what}")
            self.check(
                f"list_{what} {when}", answer, self.on_connection(answer),
                total != len(found[-1]) and f"total {total}, but the list has {len(found[-1])}",
                # All definitions of these servers are valid.
                "malformed" in answer.body and "unexpected `malformed`",
            )
        return found

    def as_advertised(self, answer):
        """Returns the original definitions. The contract renames `inputSchema` to `input_schema` in the same position."""
        out = []
        for tool in answer.at("tools") or []:
            members = dict(tool)
            if "input_schema" not in members or "inputSchema" in members:
                answer.problems.append(f"{members.get('name')} must have only `input_schema`")
            out.append(tuple(("inputSchema" if key == "input_schema" else key, value) for key, value in tool))
        return out

    def calls(self):
        for number, (name, arguments) in enumerate(self.case.calls):
            answer = self.ask("call_tool", name=name, arguments=arguments)
            key = f"call {number} {name}"
            self.seen[f"questions of {key}"] = questions(answer.asked)
            call = answer.body.get("tool_call", {})
            self.done["tools_called"] += bool(call)
            if "result" in call:
                self.seen[key] = steady(answer.at("tool_call", "result"))
                failed = bool(call["result"].get("isError"))
            else:
                self.seen[key] = refused(answer.at("error", "details", "rpc_error"))
                failed = True
            self.check(
                f"call_tool {name} {json.dumps(arguments)[:80]}", answer, self.on_connection(answer),
                failed and answer.error.get("type") != "execution_error" and f"{answer.error} for a call that failed",
                call.get("execution", {}).get("success") == failed and "execution.success is wrong",
                (call.get("tool_name"), call.get("arguments")) != (name, arguments) and "the result describes another call",
                "output_schema_violations" in answer.body.get("metadata", {}) and "output_schema_violations",
            )

    def invalid_calls(self, tools):
        for tool in tools:
            name, schema = tool["name"], tool["input_schema"]
            properties, required = schema.get("properties", {}), schema.get("required", [])
            # None of the properties of these servers accepts an object.
            wrong_types = {each: {} for each in properties}
            if properties:
                self.invalid(name, wrong_types, {f"/{each}" for each in properties})
            if required:
                self.invalid(name, {}, {f"/{each}" for each in required})
            if not properties and not required:
                print(f"# {self.label}: {name} accepts any arguments, so there are no invalid ones", flush=True)
        for name, arguments, pointers in self.case.refusals:
            self.invalid(name, arguments, pointers)
        self.refuses("tool_not_found", "call_tool", "of an unknown tool", name="no_such_tool", arguments={})
        self.refuses(
            "invalid_arguments", "call_tool", "with arguments that are not an object",
            lambda answer: answer.pointers() != {"/arguments"} and f"pointers {answer.pointers()}",
            name=tools[0]["name"], arguments=[],
        )

    def invalid(self, name, arguments, pointers):
        self.refuses(
            "invalid_arguments", "call_tool", f"{name} {json.dumps(arguments)[:80]}",
            lambda answer: (answer.pointers() != pointers and f"pointers {answer.pointers()} instead of {pointers}")
            or ("tool_call" in answer.body and "the tool was called"),
            name=name, arguments=arguments,
        )

    def resources(self, resources):
        for uri in [*(resource["uri"] for resource in resources), *self.case.uris]:
            answer = self.ask("read_resource", uri=uri)
            resource, contents = answer.body.get("resource", {}), answer.at("resource", "contents")
            self.done["resources_read"] += bool(answer.body.get("success"))
            self.seen[f"read {uri}"] = steady((("contents", contents),))
            first = (resource.get("contents") or [{}])[0]
            content = first.get("text", first.get("blob"))
            size = len(base64.b64decode(first["blob"])) if "blob" in first else len((content or "").encode())
            reported = answer.body.get("metadata", {}).get("content_size")
            self.check(
                f"read_resource {uri}", answer, self.on_connection(answer),
                resource.get("content") != content and "content is not the first of contents",
                any(resource.get(key) != first.get(key) for key in ("uri", "mimeType")) and "uri or mimeType",
                reported != size and f"content_size {reported} instead of {size}",
            )
        answer = self.refuses("resource_not_found", "read_resource", "of an unknown resource", uri=NOWHERE)
        self.seen[f"read {NOWHERE}"] = refused(answer.at("error", "details", "rpc_error"))

    def prompts(self, prompts):
        listed = {prompt["name"] for prompt in prompts}
        good = listed == set(self.case.prompts)
        self.tally.report(good, f"{self.label}: every prompt is covered", f"listed {sorted(listed)}")
        for name, arguments in self.case.prompts.items():
            answer = self.ask("get_prompt", name=name, arguments=arguments)
            self.done["prompts_retrieved"] += bool(answer.body.get("success"))
            # Apart from the name, the fields are those of the server.
            fields = tuple(pair for pair in answer.at("prompt") or () if pair[0] != "name")
            self.seen[f"prompt {name}"] = steady(fields)
            actual = answer.body.get("prompt", {}).get("name")
            self.check(f"get_prompt {name}", answer, self.on_connection(answer), actual != name and f"name {actual}")
        for name, arguments, pointers in self.case.bad_prompts:
            self.refuses(
                "invalid_arguments", "get_prompt", f"{name} {json.dumps(arguments)}",
                lambda answer: answer.pointers() != pointers and f"pointers {answer.pointers()} instead of {pointers}",
                name=name, arguments=arguments,
            )
        self.refuses("prompt_not_found", "get_prompt", "of an unknown prompt", name="no_such_prompt")

    def disconnect(self):
        status = self.ask("get_connection_status")
        counted = status.body.get("statistics")
        self.check(
            "get_connection_status", status, self.connection != status.body.get("connection") and "another connection",
            status.body.get("connected") is not True and "not connected",
            counted != self.done and f"statistics {counted} instead of {self.done}",
        )
        answer = self.ask("disconnect")
        before = answer.body.get("previous_connection", {})
        same = all(before.get(key) == self.connection.get(key) for key in ("server_url", "connected_at"))
        self.check(
            "disconnect", answer, not same and "another connection",
            before.get("statistics") != self.done and f"statistics instead of {self.done}",
        )


def compare(visit, direct):
    """Compares the responses through the tester with those of a direct session."""
    called = {name for name, _ in visit.case.calls}
    listed = {dict(tool)["name"] for tool in direct["tools before"]}
    visit.tally.report(called == listed, f"{visit.label}: every tool is covered", f"{sorted(called ^ listed)}")
    for key, expected in direct.items():
        # The contract only has `contents` of a resource. The other fields of the modern era are about caching.
        if key.startswith("read ") and expected[:1] != ("refused",):
            expected = tuple(pair for pair in expected if pair[0] == "contents")
        got = visit.seen.get(key)
        good = got == expected and type(got) is type(expected)
        visit.tally.report(good, f"{visit.label}: {key} matches a direct session", difference(expected, got))


def difference(expected, got):
    """Returns the first difference between two values."""
    expected, got = json.dumps(expected), json.dumps(got)
    start = max(len(os.path.commonprefix([expected, got])) - 200, 0)
    return f"direct …{expected[start:start + 600]} through the tester …{got[start:start + 600]}"
