"""The official servers that `tests/gateway` pins, and their test data."""

import json
import os
import shutil
import subprocess

WHEN = "1767323045 +0000"
# Makes commits reproducible.
ADA = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_AUTHOR_DATE": WHEN,
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
    "GIT_COMMITTER_DATE": WHEN,
}


class Workplace:
    """Files, a repository and a memory file that are the same in every run."""

    def __init__(self, home):
        self.home = home
        self.files, self.repo, self.memory = home / "files", home / "repo", home / "memory.jsonl"
        self.restore()

    def restore(self):
        for folder in (self.files, self.repo):
            shutil.rmtree(folder, ignore_errors=True)
        (self.files / "deep").mkdir(parents=True)
        (self.files / "hello.txt").write_text("Hello, yard!\nüñí\n")
        (self.files / "deep/data.json").write_text('{"a": 1}\n')
        self.repo.mkdir()
        (self.repo / "a.txt").write_text("one\n")
        env = {**os.environ, **ADA, "HOME": str(self.home)}
        for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "first"]):
            subprocess.run(["git", *command], cwd=self.repo, env=env, check=True)
        (self.repo / "a.txt").write_text("two\n")
        entity = {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes engines"]}
        self.memory.write_text(json.dumps(entity) + "\n")


class Commands:
    """The command line of each server."""

    def __init__(self, cache, workplace):
        modules = cache / "node_modules/@modelcontextprotocol"
        node = lambda server, *words: ["node", str(modules / server / "dist/index.js"), *map(str, words)]
        python = lambda server, *words: [str(cache / "venv/bin" / server), *map(str, words)]
        self.everything = {mode: node("server-everything", mode) for mode in ("stdio", "streamableHttp", "sse")}
        self.filesystem = node("server-filesystem", workplace.files)
        self.memory = node("server-memory")
        self.git = python("mcp-server-git", "--repository", workplace.repo)
        self.time = python("mcp-server-time", "--local-timezone", "UTC")
        self.of_memory = {"MEMORY_FILE_PATH": str(workplace.memory)}
