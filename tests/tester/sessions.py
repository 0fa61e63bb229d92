"""Runs every official client: before connecting, with each server, and after disconnecting. Started by `run`."""

import json
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from cases import answers, cases, environment
from contract import definition_problems
from direct import conversation
from harness import processes
from harness.official import Commands, Workplace
from harness.talk import Http, Lines, Talk
from harness.tally import Tally
from visit import Answer, Visit, compare

# script, mode, transport
CLIENTS = [
    ("typescript_v1", "legacy", "stdio"),
    ("typescript_v2", "modern", "stdio"),
    ("python_v2", "legacy", "stdio"),
    ("python_v2", "modern", "stdio"),
    ("typescript_v1", "legacy", "http"),
    ("python_v2", "modern", "http"),
]
VERSIONS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
ROOTS_SECONDS = 5
UNCONNECTED = [
    ("list_tools", {}),
    ("call_tool", {"name": "echo", "arguments": {}}),
    ("list_resources", {}),
    ("read_resource", {"uri": "demo://x"}),
    ("list_prompts", {}),
    ("get_prompt", {"name": "x"}),
    ("disconnect", {}),
]


def below(pid):
    """Returns the children of a process."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return listed.stdout.split()


class Client:
    """An official client in a separate process, connected to the tester."""

    def __init__(self, command, home, variables):
        self.errors = open(home / "client-stderr", "w+", encoding="utf-8", errors="replace")
        env = environment(home, **variables)
        self.wire = Lines(command, stderr=self.errors, cwd=home, env=env)

    def ask(self, tool, arguments):
        self.wire.write({"name": tool, "arguments": arguments})
        return json.loads(self.wire.line())

    def close(self):
        """Closes the client and returns its exit code and the end of its standard error."""
        self.wire.close()
        self.errors.seek(0)
        return self.wire.process.returncode, self.errors.read()[-800:]


class Sessions:
    def __init__(self, cache, python, servers, home):
        self.cache, self.python, self.home = cache, python, home
        self.tally = Tally()
        self.binary = processes.binary()
        self.work = Workplace(home)
        self.answers = answers(self.work)
        commands = Commands(Path(servers), self.work)
        self.cases = cases(self.work, commands)
        self.rootless = commands.filesystem[:-1]
        self.old = commands.everything["sse"]
        self.direct = {}

    def run(self, script, mode, transport):
        label = f"{script} {mode} {transport}"
        variables = {"TOOLYARD_BIN": str(self.binary), "PEER_ANSWERS": json.dumps(self.answers)}
        is_python = script.startswith("python")
        command = [self.python, f"{self.cache}/{script}.py"] if is_python else ["node", f"{self.cache}/{script}.mjs"]
        command += [label, mode, transport]
        try:
            if transport == "stdio":
                self.with_client(command, label, mode, variables)
            else:
                self.over_http(command, label, mode, variables)
        except Exception as error:  # report every exception and continue with the next client
            trace = "".join(traceback.format_exception(error))[-800:]
            self.tally.report(False, f"{label}: finishes", " ".join(trace.split()))
        late = processes.sweep(3)
        self.tally.report(not late, f"{label}: no process is left running", f"{len(late)} had to be killed")

    def over_http(self, command, label, mode, variables):
        server = processes.Server(self.binary, label, self.home, self.tally, environment(self.home))
        try:
            if address := server.address():
                variables.update(PEER_URL=f"{address[0]}/tester/mcp", PEER_TOKEN=address[1])
                self.with_client(command, label, mode, variables)
                if mode == "legacy":
                    self.ended_session(label, server, *address)
        finally:
            server.stop()

    def with_client(self, command, label, mode, variables):
        client = Client(command, self.home, variables)
        try:
            self.hello(label, mode, json.loads(client.wire.line()))
            self.unconnected(label, "before connecting", client)
            for case in self.cases:
                self.visit(label, client, case)
            self.roots(label, client)
            self.old_transport(label, client)
            self.unconnected(label, "after disconnecting", client)
        finally:
            code, complaints = client.close()
            reason = f"exit code {code}, stderr {complaints!r}"
            self.tally.report(code == 0, f"{label}: the client exits with code 0", reason)

    def ended_session(self, label, server, url, token):
        """Checks that ending a session also closes its connection."""
        talk = Talk(Http(f"{url}/tester/mcp", token), "legacy")
        talk.ask("tools/call", {"name": "connect_to_server", "arguments": {"url": shlex.join(self.rootless)}})
        before = below(server.process.pid)
        talk.close()
        deadline = time.monotonic() + ROOTS_SECONDS
        while (left := below(server.process.pid)) and time.monotonic() < deadline:
            time.sleep(0.1)
        reason = f"{len(left)} of {len(before)} processes still run after {ROOTS_SECONDS} s"
        self.tally.report(before and not left, f"{label}: DELETE of a session stops the server under test", reason)

    def hello(self, label, mode, hello):
        name = (hello.get("server") or {}).get("name")
        # A client that is pinned to the modern era does not have to request the server info.
        named = name == "mcp-test-mcp" or (name is None and mode == "modern")
        self.tally.report(named, f"{label}: the server name is mcp-test-mcp", name)
        self.tally.report(hello["version"] == VERSIONS[mode], f"{label}: negotiates {VERSIONS[mode]}", hello["version"])
        wrong = definition_problems(hello["tools"])
        self.tally.report(not wrong, f"{label}: the nine tools match the document", wrong)

    def unconnected(self, label, when, client):
        for tool, arguments in UNCONNECTED:
            answer = Answer(tool, client.ask(tool, arguments))
            good = not answer.problems and answer.error["type"] == "not_connected" and "connection" not in answer.body
            self.tally.report(good, f"{label}: {tool} {when} is not_connected", f"{answer.problems} {answer.text}")
        answer = Answer("get_connection_status", client.ask("get_connection_status", {}))
        body = {key: value for key, value in answer.body.items() if key != "metadata"}
        counts = {"tools_called": 0, "resources_read": 0, "prompts_retrieved": 0, "protocol_violations": 0}
        nothing = {"connected": False, "statistics": counts}
        good = not answer.problems and body == nothing
        self.tally.report(good, f"{label}: get_connection_status {when}", f"{answer.problems} {answer.text}")

    def roots(self, label, client):
        """Checks that a server can request the roots between calls. server-filesystem does so after connecting, and has no
        other directories here."""
        client.ask("connect_to_server", {"url": shlex.join(self.rootless)})
        deadline = time.monotonic() + ROOTS_SECONDS
        text = ""
        while str(self.work.files) not in text and time.monotonic() < deadline:
            time.sleep(0.2)
            text = client.ask("call_tool", {"name": "list_allowed_directories", "arguments": {}})["content"][0]["text"]
        good = str(self.work.files) in text
        self.tally.report(good, f"{label}: a server that requests roots between calls receives them", text)
        client.ask("disconnect", {})

    def old_transport(self, label, client):
        """Checks that the tester connects to a server that only supports HTTP+SSE, and reports the transport."""
        port = processes.free_port()
        server = subprocess.Popen(self.old, env=environment(self.home, PORT=str(port)), stderr=subprocess.DEVNULL)
        try:
            processes.wait_for(port)
            ask = lambda tool, **arguments: Answer(tool, client.ask(tool, arguments)).body
            answer = ask("connect_to_server", url=f"http://127.0.0.1:{port}/sse")
            connection = answer.get("connection", {})
            good = connection.get("transport") == "streaming-http" and "HTTP+SSE" in answer.get("message", "")
            self.tally.report(good, f"{label}: connects to an HTTP+SSE server and reports the transport", answer)
            called = ask("call_tool", name="echo", arguments={"message": "hi"})
            text = called.get("tool_call", {}).get("result", {}).get("content")
            self.tally.report(text == [{"type": "text", "text": "Echo: hi"}], f"{label}: calls a tool over HTTP+SSE", called)
            client.ask("disconnect", {})
        finally:
            server.kill()
            server.wait()

    def visit(self, label, client, case):
        self.work.restore()
        visit = Visit(self.tally, label, client.ask, case)
        with case.running():
            era = visit.run()
        if era:
            key = (case.name, era)
            if key not in self.direct:
                self.direct[key] = conversation(case, self.work, era, self.answers)
            compare(visit, self.direct[key])


def main():
    processes.own_all()
    # Paths with spaces and quotes are part of the test.
    with tempfile.TemporaryDirectory(prefix="toolyard 'tester' ") as folder:
        cache, python, servers, *words = sys.argv[1:]
        sessions = Sessions(cache, python, servers, Path(folder))
        try:
            for client in CLIENTS:
                if set(words) <= set(client):
                    sessions.run(*client)
        finally:
            processes.sweep(0)
    sessions.tally.end()


main()
