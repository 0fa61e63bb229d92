"""What the control socket and `toolyard watch` at one replica show of the others."""

import hashlib
import json
import subprocess
import threading
import time

from cases import WAIT, WHO, asker, at_most, equal
from clients import execute, send
from cluster import DEAD_SECONDS, KEYS, Cluster, eventually
from harness import processes
from harness.control import Control

OWNER = "owner-token-of-these-tests"
GUEST = "guest-token-of-these-tests"
CALLS = ["call_started", "call_progress", "call_ended"]
# Longer than any check.
LONG = 60


def run(group):
    digest = hashlib.sha256(GUEST.encode()).hexdigest()
    yard = f'[[tokens]]\nname = "guest"\nsha256 = "{digest}"\n' + asker(group.home)
    with Cluster(group.home / "cluster", yard, auth="token", token=OWNER, nginx=False) as cluster:
        cluster.start()
        first, second, third = cluster.replicas
        for replica in cluster.replicas:
            equal(execute(replica.url, WHO, token=OWNER).status, 200)
        everywhere(group, cluster)
        watched(group, first, second)
        strangers(group, cluster)
        paused(group, first, second, third)
        store(group, cluster)
        different(group, cluster)
        killed(group, cluster)


def opened(replica, *events, token=OWNER):
    control = Control(replica.url, token)
    control.fetch("subscribe", events=list(events))
    return control


def names(list):
    return [each["name"] for each in list["replicas"]]


def waiting(replica, seconds=LONG):
    """Starts a call in the background. It ends with the replica, or when its time is over."""

    def call():
        try:
            execute(replica.url, WAIT, {"seconds": seconds}, token=OWNER, seconds=LONG + 10)
        except OSError:
            pass  # the replica was killed

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def everywhere(group, cluster):
    first, second, third = cluster.replicas
    owner, guest = opened(first, *CALLS), opened(first, *CALLS, token=GUEST)
    with group.case("the welcome names the replica, and the list shows all of them as connected"):
        equal(owner.welcome["replica"], first.name)
        listed = owner.fetch("mcp_replicas")
        equal(sorted(names(listed)), sorted(each.name for each in cluster.replicas))
        equal({(each["state"], each["connected"], len(each["differences"])) for each in listed["replicas"]}, {("ready", True, 0)})
    for replica in cluster.replicas:
        with group.case(f"a call at {replica.name} is seen at {first.name} with its name"):
            with at_most(3, "the call and its events"):
                execute(replica.url, WHO, token=OWNER)
                started = owner.event(lambda event: event["event"] == "call_started")["call"]
                ended = owner.event(lambda event: event["event"] == "call_ended")["call"]
            equal((started["subject"], started["replica"], started["principal"]), (WHO, replica.name, "owner"))
            equal((ended["id"], ended["status"], ended["replica"]), (started["id"], "succeeded", replica.name))
    with group.case("the recent calls of all replicas are listed"):
        calls = owner.fetch("mcp_history", limit=50)["calls"]
        equal({each["replica"] for each in calls}, {each.name for each in cluster.replicas})
    with group.case("a guest sees its own calls at every replica, and no others"):
        execute(third.url, WHO, token=GUEST)
        started = guest.event()
        equal((started["call"]["principal"], started["call"]["replica"]), ("guest", third.name))
        equal({each["principal"] for each in guest.fetch("mcp_history")["calls"]}, {"guest"})
        for request in (("mcp_replicas", {}), ("subscribe", {"events": ["replicas"]})):
            try:
                guest.fetch(request[0], **request[1])
            except ConnectionError as error:
                assert "observe" in str(error), error
            else:
                raise AssertionError(f"{request[0]} is not refused")
    with group.case("a server is shown with its state at every replica"):
        server = next(each for each in owner.fetch("mcp_servers")["servers"] if each["name"] == "asker")
        equal([(each["name"], each["state"]) for each in server["replicas"]], [(second.name, "ready"), (third.name, "ready")])
    with group.case("reconnecting a server at one replica is seen at another one"):
        control = opened(first, "server")
        there = Control(second.url, OWNER)
        there.fetch("mcp_reconnect", server_name="asker")
        state = lambda event: {each["name"]: each["state"] for each in event["server"]["replicas"]}[second.name]
        control.event(lambda event: event["server"]["name"] == "asker" and state(event) != "ready")
        control.event(lambda event: event["server"]["name"] == "asker" and state(event) == "ready")
        there.close()
        control.close()
    owner.close()
    guest.close()


def watched(group, first, second):
    """`toolyard watch` as text and as JSON."""
    env = {**processes.environment(group.home), "TOOLYARD_TOKEN": OWNER}
    watch = [processes.binary(), "watch", "--url", first.url, "--calls"]
    for name, more in (("text", []), ("JSON", ["--json"])):
        with group.case(f"toolyard watch prints the replica of a call as {name}"):
            process = subprocess.Popen(
                watch + more, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
            )
            try:
                note = process.stderr.readline()
                assert f"at replica `{first.name}`" in note, note
                # The note is printed before the subscription has arrived.
                lines, printed = [], threading.Event()

                def read():
                    for line in process.stdout:
                        lines.append(line)
                        if "call_ended" in line:
                            printed.set()

                reader = threading.Thread(target=read, daemon=True)
                reader.start()
                while not printed.wait(0.5):
                    execute(second.url, WHO, token=OWNER)
                ended = next(line for line in lines if "call_ended" in line)
                if more:
                    equal(json.loads(ended)["call"]["replica"], second.name)
                else:
                    assert f"{WHO} by owner over rest at {second.name} succeeded" in ended, ended
            finally:
                process.kill()
                process.wait()


def strangers(group, cluster):
    first = cluster.replicas[0]
    with group.case("no token opens the events that replicas send to each other"):
        for token, expected in ((None, 401), ("wrong", 401), (GUEST, 404), (OWNER, 404)):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            equal(send(first.url, "GET", "/control/feed", headers).reply().status, expected, str(token))
    with group.case("a forged header does not open them either"):
        for value in ("x", "A" * 80, f"{first.name} {first.name}", "%00", "x" * 6000):
            equal(send(first.url, "GET", "/control/feed?after=0", {"Toolyard-Follower": value}).reply().status, 404, value[:40])


def paused(group, first, second, third):
    """A replica that hangs delays nothing at the others."""
    second.pause()
    try:
        with group.case("a replica that hangs does not delay the view of another one"):
            with at_most(2.5, "a new socket, a call and its events"):
                control = opened(first, *CALLS)
                execute(third.url, WHO, token=OWNER)
                equal(control.event(lambda event: event["event"] == "call_ended")["call"]["replica"], third.name)
            control.close()
    finally:
        second.resume()
    with group.case("a replica that continues is followed again"):
        control = opened(first, "call_ended")
        listed = lambda: {each["name"]: each["connected"] for each in control.fetch("mcp_replicas")["replicas"]}
        assert eventually(lambda: listed() == {each.name: True for each in (first, second, third)}, 15), listed()
        execute(second.url, WHO, token=OWNER)
        equal(control.event()["call"]["replica"], second.name)
        control.close()


def store(group, cluster):
    first, second, _ = cluster.replicas
    control = opened(first, "replicas", "call_ended")
    cluster.redis.kill()
    with group.case("without Redis, the view says so and still shows the calls of all replicas"):
        with at_most(10, "the event"):
            control.event(lambda event: event["event"] == "replicas" and event["store"] == "unavailable")
        equal(first.get("/ready")[1]["store"], "unavailable")
        assert "toolyard_store_available 0" in first.get("/metrics")[1], "metrics"
        execute(second.url, WHO, token=OWNER)
        equal(control.event(lambda event: event["event"] == "call_ended")["call"]["replica"], second.name)
    cluster.redis.start().wait()
    with group.case("when Redis is back, the view recovers by itself"):
        with at_most(15, "the event"):
            control.event(lambda event: event["event"] == "replicas" and event["store"] == "available")
        cluster.wait_until_joined(15)
        equal(first.get("/ready")[1]["store"], "available")
        metrics = first.get("/metrics")[1]
        assert "toolyard_store_available 1" in metrics and 'toolyard_replicas{differs="no"} 3' in metrics, metrics
    control.close()


def different(group, cluster):
    first, _, third = cluster.replicas
    control = opened(first, "replicas")
    other = third.home / "other.toml"
    other.write_text(cluster.config.read_text() + "\n[limits]\ndrain_seconds = 29\n")
    usual, third.config = third.config, other
    third.restart()
    with group.case("a replica with another configuration is shown, logged and counted"):
        differs = lambda event: {"configuration"} in [set(each["differences"]) for each in event["replicas"]]
        with at_most(15, "the event"):
            event = control.event(differs)
        equal([each["name"] for each in event["replicas"] if each["differences"]], [third.name])
        assert "another replica differs from this one" in first.log(), "the log"
        assert 'toolyard_replicas{differs="yes"} 1' in first.get("/metrics")[1], "metrics"
    other.write_text(cluster.config.read_text().replace(KEYS[0], KEYS[1]))
    third.restart()
    with group.case("a replica with other keys is shown as different and not connected"):
        listed = lambda: next((each for each in control.fetch("mcp_replicas")["replicas"] if each["name"] == third.name), {})
        seen = lambda: set(listed().get("differences", [])) == {"keys", "configuration"} and not listed()["connected"]
        assert eventually(seen, 15), listed()
        logged = "cannot follow the events of another replica"
        assert eventually(lambda: logged in first.log(), 5), first.log()[-2000:]
    with group.case("once it has the same configuration, nothing is shown"):
        third.config = usual
        third.restart()
        fine = lambda each: each["connected"] and not each["differences"]
        same = lambda event: len(event["replicas"]) == 3 and all(map(fine, event["replicas"]))
        with at_most(15, "the event"):
            control.event(same)
    control.close()


def killed(group, cluster):
    first, second, _ = cluster.replicas
    cluster.wait_until_joined()
    control = opened(first, "call_started", "call_ended", "replicas")
    waiting(second)
    started = control.event(lambda event: event["event"] == "call_started")["call"]
    began = time.monotonic()
    second.kill()
    with group.case("kill -9: the running calls of the replica end with an unknown outcome"):
        ended = control.event(lambda event: event["event"] == "call_ended")["call"]
        equal((ended["id"], ended["replica"], ended["status"]), (started["id"], second.name, "failed"))
        assert f"lost the connection to replica `{second.name}`" in ended["error"], ended
    with group.case("kill -9: the replica disappears from the list"):
        gone = lambda: second.name not in names(control.fetch("mcp_replicas"))
        assert eventually(gone, DEAD_SECONDS + 3), control.fetch("mcp_replicas")
        took = time.monotonic() - began
        assert took < DEAD_SECONDS + 3, f"after {took:.1f} s"
        server = next(each for each in control.fetch("mcp_servers")["servers"] if each["name"] == "asker")
        assert second.name not in [each["name"] for each in server["replicas"]], server
    control.close()
