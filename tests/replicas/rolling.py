"""A rolling restart of every replica behind nginx, while 32 clients work."""

import threading
import time

from cases import WAIT, WHO, asker, together
from clients import Legacy, Modern, content, execute
from cluster import Cluster

# 32 clients.
LEGACY, MODERN, REST, STREAMING = 12, 9, 9, 2
# All of these clients are one principal.
YARD = "limits.rate = false\n"
# How long the new process works before the next replica stops.
BETWEEN_SECONDS = 1.5


def run(group):
    with Cluster(group.home, YARD + asker(group.home)) as cluster:
        cluster.start()
        load = Load(cluster)
        workers = [load.legacy] * LEGACY + [load.modern] * MODERN + [load.rest] * REST + [load.streaming] * STREAMING
        codes = together(lambda: restart_all(cluster, load), *workers)[0]
        with group.case("rolling restart: every replica ends with exit code 0"):
            assert codes == [0, 0, 0], codes
        for kind in ("legacy", "modern", "REST"):
            with group.case(f"rolling restart: no call of {kind} clients fails"):
                failures = load.failures[kind]
                assert load.done[kind] > 100, f"only {load.done[kind]} calls"
                why = f"{sorted(set(failures))[:10]} {unexpected(cluster.nginx)}"
                assert not failures, f"{len(failures)} of {load.done[kind]} calls: {why}"
        with group.case("rolling restart: a stream that ends early says when to retry, and no call of a stream fails"):
            assert load.done["streaming"] > 3, f"only {load.done['streaming']} calls"
            assert not load.failures["streaming"], sorted(set(load.failures["streaming"]))[:10]
        with group.case("rolling restart: no call takes longer than a few seconds"):
            slowest = max(load.slowest.items(), key=lambda each: each[1])
            assert slowest[1] < 6, slowest
        with group.case("rolling restart: every replica answered before and after"):
            seen = {each.name: load.seen.count(each.name) for each in cluster.replicas}
            assert all(seen.values()), seen
        print("rolling restart:", dict(load.done), {key: round(value, 2) for key, value in load.slowest.items()}, flush=True)


def unexpected(nginx):
    """Returns what nginx logged about replicas that it could connect to."""
    return [line for line in (nginx.home / "error.log").read_text().splitlines() if "connect() failed" not in line][:5]


def restart_all(cluster, load):
    try:
        time.sleep(2)
        codes = []
        for replica in cluster.replicas:
            codes.append(replica.restart())
            time.sleep(BETWEEN_SECONDS)
        return codes
    finally:
        load.stop.set()


class Load:
    """Clients that call through the load balancer until `stop` is set."""

    def __init__(self, cluster):
        self.url, self.stop, self.lock = cluster.url, threading.Event(), threading.Lock()
        kinds = ("legacy", "modern", "REST", "streaming")
        self.done, self.failures = dict.fromkeys(kinds, 0), {kind: [] for kind in kinds}
        self.slowest, self.seen = dict.fromkeys(kinds, 0.0), []

    def step(self, kind, call):
        """Makes one call and notes how it went. Returns whether it succeeded."""
        began = time.monotonic()
        failure = seen = None
        try:
            seen = call()
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"[:300]
        took = time.monotonic() - began
        with self.lock:
            self.done[kind] += 1
            if failure:
                self.failures[kind].append(failure)
            elif seen:
                self.seen.append(seen)
            if kind != "streaming":
                self.slowest[kind] = max(self.slowest[kind], took)
        time.sleep(0.03)
        return not failure

    def legacy(self):
        sessions = []

        def start():
            sessions.append(Legacy(self.url))

        while not self.stop.is_set():
            if not sessions and not self.step("legacy", start):
                continue
            for _ in range(25):
                if self.stop.is_set():
                    return
                self.step("legacy", lambda: content(sessions[-1].call(self.url, WHO))["replica"])
            # A new session now and then. The first sessions live through all of the restarts.
            if len(sessions) < 4:
                self.step("legacy", start)

    def modern(self):
        client = Modern()
        while not self.stop.is_set():
            self.step("modern", lambda: content(client.call(self.url, WHO))["replica"])

    def rest(self):
        def call():
            reply = execute(self.url, WHO)
            assert reply.status == 200, f"status {reply.status}: {reply.text[:200]}"
            return reply.message["result"]["replica"]

        while not self.stop.is_set():
            self.step("REST", call)

    def streaming(self):
        """Makes calls with progress, and resumes a stream that ends before the response."""
        session = Legacy(self.url)

        def call():
            params = {"name": WAIT, "arguments": {"seconds": 1}, "_meta": {"progressToken": 1}}
            id, stream = session.start(self.url, "tools/call", params)
            reply = stream.reply(id)
            if not reply.failure:
                return content(reply)["replica"]
            # The call ended with its replica. The client has learned that it should come back.
            assert stream.retry is not None or "replica" in reply.failure, reply
            return None

        while not self.stop.is_set():
            self.step("streaming", call)
