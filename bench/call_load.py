"""Loads a yard with `tools/call` requests, and measures the CPU that they cost."""

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


def load(folder, url, name, session=None):
    """Calls `name` for some seconds as a modern client, or in the session of a legacy client. Returns the number of calls."""
    params = {"name": name, "arguments": {"a": 2, "b": 3}}
    if session:
        headers = {"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": session}
    else:
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
        params["_meta"] = META
    # A session refuses an ID that is in use.
    body = json.dumps({"jsonrpc": "2.0", "id": "ID", "method": "tools/call", "params": params}).replace('"ID"', "%d")
    lines = "\n".join(f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items())
    script = folder / "call.lua"
    script.write_text(f"""
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
{lines}
local id = 0
request = function()
  id = id + 1
  return wrk.format(nil, nil, nil, string.format([==[{body}]==], id))
end
response = function(status, headers, body)
  if status ~= 200 or not string.find(body, '"sum":5', 1, true) then print("WRONG " .. status .. " " .. body) end
end
""")
    command = ["wrk", "-t1", f"-c{IN_FLIGHT}", f"-d{SECONDS}s", "-s", str(script), url]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wrong = "WRONG" in text or "Non-2xx" in text
    requests = int(re.search(r"(\d+) requests in", text).group(1))
    assert not wrong, text[:2000]
    return requests
