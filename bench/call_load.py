"""Loads a yard with `tools/call` requests of a modern client, and measures the CPU that they cost."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = int(os.environ.get("BENCH_SECONDS", "8"))
IN_FLIGHT = 64
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def binary():
    if "TOOLYARD_BIN" in os.environ:
        return os.environ["TOOLYARD_BIN"]
    subprocess.run(["cargo", "build", "--profile", "dist", "--quiet"], cwd=ROOT, check=True)
    return str(ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "dist/toolyard")


def need(*programs):
    missing = [each for each in programs if not shutil.which(each)]
    if missing:
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-qq", "-y", "--no-install-recommends", *missing], check=True, stdout=subprocess.DEVNULL)


def cpu(pids):
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def load(folder, url, name):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {"a": 2, "b": 3}, "_meta": META}}
    script = folder / "call.lua"
    script.write_text(f"""
wrk.method = "POST"
wrk.body = [==[{json.dumps(body)}]==]
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
wrk.headers["MCP-Protocol-Version"] = "2026-07-28"
wrk.headers["Mcp-Method"] = "tools/call"
wrk.headers["Mcp-Name"] = "{name}"
local bad = 0
response = function(status, headers, body) if status ~= 200 or not string.find(body, '"sum":5', 1, true) then bad = bad + 1 end end
""")
    command = ["wrk", "-t1", f"-c{IN_FLIGHT}", f"-d{SECONDS}s", "-s", str(script), url]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    requests = int(re.search(r"(\d+) requests in", text).group(1))
    assert not wrong, text
    return requests
