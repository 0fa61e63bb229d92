"""The servers under test and the requests to send."""

import base64
import contextlib
import json
import os
import re
import shlex
import subprocess
from dataclasses import dataclass, field

from harness.official import ADA
from harness.processes import free_port, wait_for
from harness.talk import Http, Lines


def environment(home, **more):
    """Returns a minimal environment, because one of the tools prints all of it."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **more}


@dataclass
class Case:
    name: str
    home: object
    command: list
    # Assignments before the command, as in a shell.
    variables: dict = field(default_factory=dict)
    # The port of an HTTP server, or 0 for stdio.
    port: int = 0
    # (tool, valid arguments). Every tool of the server has at least one entry.
    calls: list = field(default_factory=list)
    # (tool, invalid arguments, JSON pointers of all violations), in addition to the generic ones.
    refusals: list = field(default_factory=list)
    # Resources that only a template describes.
    uris: list = field(default_factory=list)
    # name -> arguments. Every prompt of the server has an entry.
    prompts: dict = field(default_factory=dict)
    # (prompt, arguments, pointers)
    bad_prompts: list = field(default_factory=list)

    @property
    def url(self):
        """The URL or command line for the tester."""
        if self.port:
            return f"http://127.0.0.1:{self.port}/mcp"
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.variables.items()]
        return " ".join([*variables, shlex.join(self.command)])

    @contextlib.contextmanager
    def running(self):
        """Runs an HTTP server. The client starts stdio servers itself."""
        if not self.port:
            yield
            return
        env = environment(self.home, PORT=str(self.port))
        with subprocess.Popen(self.command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                wait_for(self.port)
                yield
            finally:
                process.kill()

    def wire(self):
        """Returns a direct connection."""
        if self.port:
            return Http(self.url)
        return Lines(self.command, env=environment(self.home, **self.variables), cwd=self.home)


def answers(work):
    """Returns the answers of the client to requests of the server."""
    form = {"name": "Ada", "check": True, "email": "ada@example.com", "integer": 7, "number": 2.5}
    words = {"type": "text", "text": "forty-two, ü"}
    return {
        "elicitation/create": {"action": "accept", "content": form},
        "elicitation/create url": {"action": "accept"},
        "sampling/createMessage": {"role": "assistant", "content": words, "model": "a-model", "stopReason": "endTurn"},
        # The same directory that the file server is started with. The server replaces its directories with the roots as
        # soon as it receives them, so the timing does not matter.
        "roots/list": {"roots": [{"uri": work.files.as_uri(), "name": "files"}]},
    }


def cases(work, commands):
    everything = {
        "calls": [
            ("echo", {"message": "hi ü \u2028 \"quoted\""}),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("get-env", {}),
            ("get-resource-links", {"count": 4}),
            ("get-resource-reference", {"resourceType": "Blob", "resourceId": 3}),
            ("get-resource-reference", {"resourceType": "Text", "resourceId": 2}),
            ("get-resource-reference", {"resourceId": -1}),
            ("get-structured-content", {"location": "Chicago"}),
            ("get-sum", {"a": 0.1, "b": 0.2}),
            ("get-tiny-image", {}),
            ("gzip-file-as-resource", {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"}),
            # On and off again: while these are on, the server does not exit when its client disconnects.
            ("toggle-simulated-logging", {}),
            ("toggle-simulated-logging", {}),
            ("toggle-subscriber-updates", {}),
            ("toggle-subscriber-updates", {}),
            ("trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
            # These send requests to the client.
            ("get-roots-list", {}),
            ("trigger-elicitation-request", {}),
            ("trigger-sampling-request", {"prompt": "how much?", "maxTokens": 7}),
            ("trigger-url-elicitation", {"url": "https://example.com/a", "elicitationId": "e-1"}),
            # Only runs as a task. The server rejects a plain call.
            ("simulate-research-query", {"topic": "engines"}),
        ],
        "refusals": [
            ("get-resource-links", {"count": 11}, {"/count"}),
            ("get-annotated-message", {"messageType": "loud", "includeImage": "yes"}, {"/messageType", "/includeImage"}),
        ],
        "uris": ["demo://resource/dynamic/text/7", "demo://resource/dynamic/blob/8"],
        "prompts": {
            "simple-prompt": {},
            "args-prompt": {"city": "Paris", "state": "Texas"},
            "completable-prompt": {"department": "Engineering", "name": "Alice"},
            "resource-prompt": {"resourceType": "Text", "resourceId": "5"},
        },
        "bad_prompts": [
            ("args-prompt", {}, {"/city"}),
            ("args-prompt", {"city": 5}, {"/city"}),
            ("resource-prompt", {}, {"/resourceType", "/resourceId"}),
        ],
    }
    files, repo = work.files, str(work.repo)
    hello, made = str(files / "hello.txt"), str(files / "made.txt")
    return [
        Case("everything", work.home, commands.everything["stdio"], **everything),
        Case("everything over HTTP", work.home, commands.everything["streamableHttp"], port=free_port(), **everything),
        Case(
            "filesystem", work.home, commands.filesystem,
            calls=[
                ("read_file", {"path": hello}),
                ("read_text_file", {"path": hello, "head": 1}),
                ("read_text_file", {"path": "/etc/hostname"}),
                ("read_media_file", {"path": hello}),
                ("read_multiple_files", {"paths": [hello, str(files / "deep/data.json"), str(files / "nowhere")]}),
                ("write_file", {"path": made, "content": "one\ntwo\n"}),
                ("edit_file", {"path": made, "edits": [{"oldText": "two", "newText": "zwei"}]}),
                ("create_directory", {"path": str(files / "new")}),
                ("list_directory", {"path": str(files)}),
                ("list_directory_with_sizes", {"path": str(files), "sortBy": "size"}),
                ("directory_tree", {"path": str(files)}),
                ("move_file", {"source": made, "destination": str(files / "new/moved.txt")}),
                ("search_files", {"path": str(files), "pattern": "**/*.txt"}),
                ("get_file_info", {"path": hello}),
                ("list_allowed_directories", {}),
            ],
            refusals=[
                ("edit_file", {"path": hello, "edits": [{"oldText": 1}]}, {"/edits/0/oldText", "/edits/0/newText"}),
                ("read_multiple_files", {"paths": []}, {"/paths"}),
            ],
        ),
        Case(
            "memory", work.home, commands.memory, variables=commands.of_memory,
            calls=[
                ("create_entities", {"entities": [{"name": "Charles", "entityType": "person", "observations": ["builds"]}]}),
                ("create_relations", {"relations": [{"from": "Ada", "to": "Charles", "relationType": "knows"}]}),
                ("add_observations", {"observations": [{"entityName": "Ada", "contents": ["writes notes"]}]}),
                ("add_observations", {"observations": [{"entityName": "Nobody", "contents": ["is not there"]}]}),
                ("read_graph", {}),
                ("search_nodes", {"query": "Ada"}),
                ("open_nodes", {"names": ["Charles"]}),
                ("delete_observations", {"deletions": [{"entityName": "Ada", "observations": ["likes engines"]}]}),
                ("delete_relations", {"relations": [{"from": "Ada", "to": "Charles", "relationType": "knows"}]}),
                ("delete_entities", {"entityNames": ["Charles"]}),
            ],
            refusals=[
                ("create_entities", {"entities": [{"name": "x"}]}, {"/entities/0/entityType", "/entities/0/observations"}),
                ("open_nodes", {"names": ["Ada", 5]}, {"/names/1"}),
            ],
        ),
        Case(
            "git", work.home, commands.git, variables=ADA,
            calls=[
                ("git_status", {"repo_path": repo}),
                ("git_diff_unstaged", {"repo_path": repo}),
                ("git_add", {"repo_path": repo, "files": ["a.txt"]}),
                ("git_diff_staged", {"repo_path": repo, "context_lines": 1}),
                ("git_commit", {"repo_path": repo, "message": "second"}),
                ("git_log", {"repo_path": repo, "max_count": 5}),
                ("git_create_branch", {"repo_path": repo, "branch_name": "side"}),
                ("git_checkout", {"repo_path": repo, "branch_name": "side"}),
                ("git_branch", {"repo_path": repo, "branch_type": "local"}),
                ("git_diff", {"repo_path": repo, "target": "HEAD~1"}),
                ("git_show", {"repo_path": repo, "revision": "HEAD"}),
                ("git_show", {"repo_path": repo, "revision": "nowhere"}),
                ("git_reset", {"repo_path": repo}),
            ],
            refusals=[
                ("git_add", {"repo_path": repo, "files": []}, {"/files"}),
                ("git_log", {"repo_path": repo, "max_count": 1.5}, {"/max_count"}),
            ],
        ),
    ]


# Values that change from run to run, and their placeholders for comparisons.
MOMENTS = [
    # server-everything generates dynamic resources on request and includes the time.
    (re.compile(r"created at \d+:\d\d:\d\d [AP]M"), "created at TIME"),
    # Session IDs over HTTP differ.
    (re.compile(r"for session [0-9a-f-]{36}"), "for session ID"),
    # server-filesystem returns file times. The files are recreated for every session.
    (re.compile(r"(created|modified|accessed): [A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} [^\n\"]*"), r"\1: TIME"),
]


def steady(value):
    """Replaces values that change from run to run, including those inside base64."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            inside = base64.b64decode(value, validate=True).decode()
            value = inside if "created at" in inside else value
        if value.startswith("{") and '"PATH"' in value:
            # The output of `get-env`. Environment variables have no order.
            value = json.dumps(json.loads(value), sort_keys=True)
        for moment, name in MOMENTS:
            value = moment.sub(name, value)
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(steady(each) for each in value)
    return value
