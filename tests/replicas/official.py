"""The official conformance suite through nginx and three replicas, compared with the fixture server itself."""

import os
import subprocess
import sys

from cases import HERE, together
from cluster import Cluster

sys.path.insert(0, str(HERE.parent / "conformance"))
import suite

VERSIONS = ["2025-11-25", "2026-07-28"]
ERAS = ["legacy", "modern"]


def run(group):
    fixture = os.environ.get("FIXTURE_BIN") or sys.exit("FIXTURE_BIN is not set: the path of toolyard-fixture")
    suite.install()
    # Each run of the suite has a fixture of its own, so that runs side by side do not see the changes of another one.
    runs = [(version, era) for version in VERSIONS for era in [None, *ERAS]]
    fixtures = {each: subprocess.Popen([fixture], stdout=subprocess.PIPE, text=True) for each in runs}
    try:
        urls = {each: process.stdout.readline().strip() for each, process in fixtures.items()}
        servers = [
            f'[servers.{name(each)}]\nurl = "{url}"\nera = "{each[1]}"\n' for each, url in urls.items() if each[1]
        ]
        with Cluster(group.home, "".join(servers)) as cluster:
            cluster.start()
            url = lambda each: f"{cluster.url}/servers/{name(each)}/mcp" if each[1] else urls[each]
            seen = {}

            def check(version):
                for each in runs:
                    if each[0] == version:
                        seen[each] = suite.checks(version, url(each), f"replicas-{each[1] or 'direct'}")

            together(*(lambda version=version: check(version) for version in VERSIONS))
            for version, era in runs:
                if era:
                    count(group, version, era, seen[version, None], seen[version, era])
            spread(group, cluster)
    finally:
        for process in fixtures.values():
            process.kill()
            process.wait()


def name(each):
    version, era = each
    return f"{era}_{version.replace('-', '_')}"


def count(group, version, era, expected, got):
    wrong = []
    note = lambda good, what, reason="": good or wrong.append(f"{what}: {reason}")
    suite.compare(version, era, f"{version} {era} upstream", expected, got, note)
    passed = sum(fine for checks in expected.values() for fine, _ in checks.values())
    with group.case(f"{version} through a {era} upstream passes what it passes directly, {passed} checks"):
        assert passed > 50, f"only {passed} checks passed directly"
        assert not wrong, "\n".join([f"{len(wrong)} checks", *wrong[:20]])


def spread(group, cluster):
    with group.case("every replica received a third of the requests"):
        lines = (cluster.nginx.home / "access.log").read_text().splitlines()
        ports = [line.split()[3].rpartition(":")[2] for line in lines]
        shares = [ports.count(str(each.port)) / len(ports) for each in cluster.replicas]
        assert all(0.25 < share < 0.42 for share in shares), f"{shares} of {len(ports)} requests"
