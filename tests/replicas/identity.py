"""Session IDs and request states that a client must not be able to use, keys that change, and replicas that are not who
they should be."""

import email.utils
import itertools
import json
import random
import subprocess
import time
from pathlib import Path

from cases import ASK, NOTE, WHO, asker, at_most, equal, people
from clients import ELICITATION, Legacy, Modern, content, execute, send
from cluster import KEYS, Cluster, Replica, eventually
from failures import PATIENCE, parked, where
from harness import processes
from harness.debian import require_program

OWNER = "owner-token-of-these-tests"
PEOPLE = {"alice": "alice-token-of-these-tests", "bob": "bob-token-of-these-tests"}
# The prefix of all keys in Redis.
KEY = "toolyard:{yard}:"
ACCEPT = {"action": "accept", "content": {"answer": "mine"}}


def run(group):
    tokens(group)
    rotation(group)
    strangers(group)
    impostors(group)
    clocks(group)


def tokens(group):
    yard = people(PEOPLE) + asker(group.home)
    with Cluster(group.home / "tokens", yard, auth="token", token=OWNER, nginx=False) as cluster:
        cluster.start()
        first, second, third = cluster.replicas
        session = Legacy(first.url, token=PEOPLE["alice"])
        with group.case("a request without a token is refused wherever it arrives"):
            session.token = None
            equal([session.ask(each.url, "tools/list").status for each in cluster.replicas], [401] * 3)
            session.token = PEOPLE["alice"]
        with group.case("a token works for its own session at every replica"):
            equal([where(session, each) for each in cluster.replicas], [first.name] * 3)
        with group.case("forged session IDs get 404 at every replica"):
            for replica, id in itertools.product(cluster.replicas, forged(session.id)):
                equal(uses(session, replica, id), 404, f"{id[:80]!r} at {replica.name}")
        with group.case("forged session IDs get 404 for GET and DELETE"):
            for id in forged(session.id)[:12]:
                headers = {**session.headers(), "Mcp-Session-Id": id, "Accept": "text/event-stream"}
                for method in ("GET", "DELETE"):
                    equal(send(second.url, method, "/mcp", headers).reply().status, 404, f"{method} {id[:80]!r}")
        states = request_states(group, cluster)
        with group.case("a request state is not a session ID, nor the other way around"):
            equal([uses(session, each, states.state) for each in cluster.replicas], [404] * 3)
            for replica in cluster.replicas:
                assert states.retry(replica, state=session.id).failure, replica.name
        with group.case("the session of one token is not found by another one, wherever it asks"):
            for token, replica in itertools.product([PEOPLE["bob"], OWNER], cluster.replicas):
                session.token = token
                equal(session.ask(replica.url, "tools/list").status, 404, replica.name)
                equal(session.listen(replica.url).reply().status, 404, replica.name)
                equal(session.delete(replica.url).status, 404, replica.name)
            session.token = PEOPLE["alice"]
            equal([where(session, each) for each in cluster.replicas], [first.name] * 3)
        with group.case("a session does not move to another endpoint"):
            session.path = "/servers/asker/mcp"
            equal([session.ask(each.url, "tools/list").status for each in cluster.replicas], [404] * 3)
            session.path = "/mcp"
        first.kill()
        with group.case("another token cannot take over the session of a dead replica"):
            session.token = PEOPLE["bob"]
            equal([session.ask(each.url, "tools/list", seconds=PATIENCE + 5).status for each in (second, third)], [404] * 2)
            session.token = PEOPLE["alice"]
            equal(where(session, second), second.name)
            session.token = PEOPLE["bob"]
            equal([session.ask(each.url, "tools/list").status for each in (second, third)], [404] * 2)
        with group.case("forged session IDs get 404 while a replica is dead"):
            for id in forged(session.id)[:12]:
                session.token = PEOPLE["alice"]
                equal(uses(session, third, id), 404, f"{id[:80]!r}")


def uses(session, replica, id):
    """Returns the status of a request with this session ID."""
    headers = {**session.headers(), "Mcp-Session-Id": id}
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}
    with at_most(PATIENCE, f"{id[:80]!r} at {replica.name}"):
        return send(replica.url, "POST", session.path, headers, message).reply().status


def forged(text):
    """Returns texts that resemble an issued one."""
    chosen = random.Random(1)
    flipped = lambda at: text[:at] + chosen.choice([each for each in "AZaz09-_" if each != text[at]]) + text[at + 1 :]
    places = sorted({0, 1, len(text) // 2, len(text) - 2, len(text) - 1, *chosen.sample(range(len(text)), 8)})
    return [
        *(flipped(at) for at in places),
        *(text[:length] for length in (1, 8, len(text) // 2, len(text) - 1)),
        text + "A", text + text, text[1:], text[::-1], text.swapcase(), text + "=", text + ".", "." + text,
        "0" * 32, "a" * len(text), "session", "../../mcp", "%00", "' OR 1=1", "x" * 6000,
    ]


class States:
    """A parked call of alice, and retries of it with other states, tokens and arguments."""

    def __init__(self, home):
        self.home, self.client = home, Modern(token=PEOPLE["alice"], capabilities=ELICITATION)
        result = self.client.call(home.url, ASK, {"id": "mine", "rounds": 1}).result
        self.state, self.answers = result["requestState"], {key: ACCEPT for key in result["inputRequests"]}

    def retry(self, replica, state=None, token=None, id="mine"):
        client = Modern(token=token or PEOPLE["alice"], capabilities=ELICITATION)
        more = {"requestState": self.state if state is None else state, "inputResponses": self.answers}
        return client.call(replica.url, ASK, {"id": id, "rounds": 1}, seconds=PATIENCE, **more)


def request_states(group, cluster):
    states = States(cluster.replicas[0])
    with group.case("forged request states are refused at every replica"):
        for replica, state in itertools.product(cluster.replicas, forged(states.state)):
            reply = states.retry(replica, state)
            assert "requestState" in reply.failure, f"{state[:80]!r} at {replica.name}: {reply}"
    with group.case("the request state of one token is refused for another one and for another request"):
        for replica in cluster.replicas:
            for reply in (states.retry(replica, token=PEOPLE["bob"]), states.retry(replica, id="another")):
                assert "requestState" in reply.failure, f"{replica.name}: {reply}"
    with group.case("the call is still parked after all of that, and its answer counts once"):
        equal(content(states.retry(cluster.replicas[1]))["answers"], ["mine"])
        for replica in cluster.replicas:
            assert "requestState" in states.retry(replica).failure, replica.name
    return States(cluster.replicas[0])


def rotation(group):
    """Replaces the key as the documentation says, one replica after the other, with sessions that stay in use."""
    with Cluster(group.home / "rotation", asker(group.home), nginx=False) as cluster:
        cluster.start()
        old = [Legacy(each.url) for each in cluster.replicas]
        steps = [[KEYS[0], KEYS[1]], [KEYS[1], KEYS[0]]]
        for number, keys in enumerate(steps, 1):
            with group.case(f"key rotation, step {number}: old and new sessions work after every restart"):
                cluster.write_config(keys=keys)
                for replica in cluster.replicas:
                    replica.restart()
                    cluster.wait_until_joined()
                    new = [Legacy(each.url) for each in cluster.replicas]
                    for session, each in itertools.product(old + new, cluster.replicas):
                        where(session, each)
                    answer = parked(replica, f"rotation {number}")
                    others = [each for each in cluster.replicas if each is not replica]
                    equal(content(answer(others[number % 2].url))["answers"], ["fine"])
        with group.case("key rotation, step 3: sessions under the new key work without the old one, the others get 404"):
            cluster.write_config(keys=[KEYS[1]])
            for replica in cluster.replicas:
                replica.restart()
            cluster.wait_until_joined()
            for session, each in itertools.product(new, cluster.replicas):
                where(session, each)
            for session, each in itertools.product(old, cluster.replicas):
                equal(session.ask(each.url, "tools/list").status, 404, each.name)


def strangers(group):
    """One replica has other keys, and addresses belong to another process than before."""
    different = {3: {"REPLICA_KEY": KEYS[1]}}
    keys = {"keys": ["${REPLICA_KEY:-" + KEYS[0] + "}"]}
    with Cluster(group.home / "strangers", asker(group.home), nginx=False, cluster_keys=keys, replica_env=different) as cluster:
        cluster.start()
        first, second, third = cluster.replicas
        with group.case("a replica with other keys is reported in GET /replicas of every replica"):
            equal(differences(first), {first.name: [], second.name: [], third.name: ["keys"]})
            equal(differences(second), {first.name: [], second.name: [], third.name: ["keys"]})
            equal(differences(third), {first.name: ["keys"], second.name: ["keys"], third.name: []})
        with group.case("a replica with other keys is reported in the log of every replica"):
            for replica in cluster.replicas:
                assert eventually(lambda replica=replica: warnings(replica, "keys")), replica.log()[-1000:]
        with group.case("sessions and request states of a replica with other keys are refused, and never hang"):
            sessions = {each: Legacy(each.url) for each in cluster.replicas}
            for at, home in itertools.product(cluster.replicas, cluster.replicas):
                with at_most(PATIENCE, f"a session of {home.name} at {at.name}"):
                    reply = sessions[home].call(at.url, WHO)
                if (at is third) == (home is third):
                    equal(content(reply)["replica"], home.name)
                else:
                    equal(reply.status, 404, f"a session of {home.name} at {at.name}")
            assert "requestState" in parked(third, "stranger")(first.url).failure
            assert "requestState" in parked(first, "stranger")(third.url).failure
            # The answer of a call that is parked at its home still counts there.
            equal(content(parked(third, "own")(third.url))["answers"], ["fine"])
        with group.case("a new process at the address of a killed replica: its sessions go on with one home"):
            sessions = [Legacy(first.url) for _ in range(3)]
            answer = parked(first, "replaced")
            first.kill()
            first.start().wait()
            for session in sessions:
                with at_most(PATIENCE, "the first call"):
                    homes = [where(session, each) for each in (second, first, second)]
                equal(len(set(homes)), 1, f"homes {homes}")
            reply = answer(second.url)
            assert reply.failure, reply
        with group.case("another yard at the address of a killed replica never sees its sessions"):
            sessions = [Legacy(first.url) for _ in range(2)]
            answer = parked(first, "taken")
            alien_home = group.home / "alien"
            with Cluster(alien_home, asker(alien_home), count=0, nginx=False, cluster_keys={"keys": [KEYS[1]]}) as other:
                other.redis.start().wait()
                alien = Replica(alien_home / "replica", processes.binary(), 9, other.config, ["--auth", "none"], port=first.port)
                other.replicas.append(alien)
                first.kill()
                alien.start().wait()
                for session in sessions:
                    with at_most(PATIENCE, "the first call"):
                        reply = session.call(second.url, WHO, seconds=PATIENCE)
                    equal(content(reply)["replica"], second.name)
                    equal(session.ask(alien.url, "tools/list").status, 404)
                with at_most(PATIENCE, "the answer"):
                    reply = answer(second.url)
                assert reply.failure, reply
            first.start().wait()


def differences(replica):
    return {each["name"]: each["differences"] for each in replica.get("/mcp/replicas")[1]["replicas"]}


def warnings(replica, difference):
    return [line for line in replica.log().splitlines() if "another replica differs" in line and difference in line]


def impostors(group):
    """Replicas of another version and configuration, and entries in Redis that claim what is not theirs."""
    with Cluster(group.home / "impostors", asker(group.home), nginx=False) as cluster:
        first, second, third = cluster.replicas
        third.config = cluster.home / "other.toml"
        third.config.write_text(cluster.config.read_text() + "\n[limits]\ncall_seconds = 77\n")
        cluster.start()
        redis = cluster.redis
        sessions = {each: Legacy(each.url) for each in cluster.replicas}
        with group.case("a replica with another configuration is reported by every replica, and works"):
            equal(differences(first), {first.name: [], second.name: [], third.name: ["configuration"]})
            equal(differences(third), {first.name: ["configuration"], second.name: ["configuration"], third.name: []})
            for replica in cluster.replicas:
                assert eventually(lambda replica=replica: warnings(replica, "configuration")), replica.log()[-1000:]
            for home, at in itertools.product(cluster.replicas, cluster.replicas):
                equal(where(sessions[home], at), home.name, f"at {at.name}")
        with group.case("a replica of another version is reported by every replica, and sessions go on"):
            newer = {"name": "newer", "url": "http://127.0.0.1:1", "version": "99.0.0", "unknown": {"a": [1]}}
            register(redis, "f" * 32, newer)
            listed = lambda each: differences(each).get("newer")
            expected = [["version"], ["version"], ["version", "configuration"]]
            assert eventually(lambda: [listed(each) for each in cluster.replicas] == expected), differences(first)
            for replica in cluster.replicas:
                assert eventually(lambda replica=replica: warnings(replica, "version")), replica.log()[-1000:]
            for home, at in itertools.product(cluster.replicas, cluster.replicas):
                equal(where(sessions[home], at), home.name, f"at {at.name}")
            cluster.wait_until_joined(20)
        with group.case("a replica that claims the address of another one is removed, and gets no requests"):
            register(redis, "e" * 32, {"name": "liar", "url": second.url})
            with at_most(PATIENCE, "calls"):
                for home, at in itertools.product(cluster.replicas, cluster.replicas):
                    equal(where(sessions[home], at), home.name, f"at {at.name}")
            cluster.wait_until_joined()
        with group.case("garbage in place of a replica does not harm the others"):
            for text in ("", "x", "[]", "{}", '{"name": 7, "url": "x"}', '{"name": "' + "n" * 100_000 + '"}'):
                register(redis, "d" * 32, text)
                time.sleep(1.2)
                for home, at in itertools.product(cluster.replicas, cluster.replicas):
                    equal(where(sessions[home], at), home.name, f"at {at.name} with {text[:20]!r}")
            redis.ask("HDEL", f"{KEY}replicas:records", "d" * 32)
            cluster.wait_until_joined()
        claimed_sessions(group, cluster)


def claimed_sessions(group, cluster):
    """Redis says that a session has a home that does not have it."""
    first, second, third = cluster.replicas
    session = Legacy(first.url)
    first.kill()
    equal(where(session, second), second.name)
    (home,) = [key for key in cluster.redis.keys() if key.startswith(f"{KEY}session:")]
    owners = [cluster.redis.ask("GET", home), replica_id(cluster.redis, third), "0" * 32, "released", "garbage \r\n"]
    with group.case("a session that is claimed by a replica without it is served by one replica, once for each call"):
        lines = []
        for owner in owners:
            cluster.redis.ask("SET", home, owner, "PX", 60_000)
            for at in (third, second, third):
                lines.append(f"claimed {len(lines)}")
                with at_most(PATIENCE, f"a call at {at.name}, claimed by {owner!r}"):
                    content(session.call(at.url, NOTE, {"line": lines[-1]}, seconds=PATIENCE + 5))
        noted = [line for line in (group.home / "notes").read_text().splitlines() if line.startswith("claimed")]
        equal(sorted(noted), sorted(lines))


def register(redis, id, record):
    """Registers a replica that stays alive for some seconds. What the record lacks is that of a live replica."""
    if isinstance(record, dict):
        live = json.loads(redis.ask("HGET", f"{KEY}replicas:records", replica_id(redis)))
        record = json.dumps({**live, **record})
    redis.ask("HSET", f"{KEY}replicas:records", id, record)
    redis.ask("ZADD", f"{KEY}replicas:seen", int(redis.ask("TIME")[0]) * 1000 + 5_000, id)


def replica_id(redis, replica=None):
    """Returns the ID of a live replica, or of the one with the first name."""
    flat = redis.ask("HGETALL", f"{KEY}replicas:records")
    records = {id: json.loads(record) for id, record in zip(flat[::2], flat[1::2])}
    named = lambda record: record["name"] == (replica.name if replica else "replica-1")
    return next(id for id, record in records.items() if named(record))


def clocks(group):
    """Two replicas whose clocks are ten minutes apart from that of the first one."""
    library = faketime_library()
    fake = lambda offset: {"LD_PRELOAD": str(library), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    env = {2: fake("-600s"), 3: fake("+600s")}
    with Cluster(group.home / "clocks", asker(group.home), nginx=False, replica_env=env) as cluster:
        cluster.start()
        with group.case("clocks ten minutes apart: every replica sees the others, and its clock differs"):
            cluster.wait_until_joined()
            equal(sorted(round(offset(each) / 60) for each in cluster.replicas), [-10, 0, 10])
        with group.case("clocks ten minutes apart: sessions and questions work at every replica"):
            sessions = {each: Legacy(each.url) for each in cluster.replicas}
            for home, at in itertools.product(cluster.replicas, cluster.replicas):
                equal(where(sessions[home], at), home.name, f"at {at.name}")
                equal(content(parked(home, f"{home.name} {at.name}")(at.url))["replica"], home.name, f"at {at.name}")
        with group.case("clocks ten minutes apart: a call with an idempotency key is made once"):
            for at in cluster.replicas:
                equal(execute(at.url, NOTE, {"line": "clocks"}, idempotencyKey="clocks").status, 200, at.name)
            equal((group.home / "notes").read_text().splitlines().count("clocks"), 1)
        with group.case("clocks ten minutes apart: sessions of a dead replica go on"):
            cluster.replicas[0].kill()
            for at in cluster.replicas[1:]:
                where(sessions[cluster.replicas[0]], at)
            cluster.wait_until_joined()
        cluster.replicas[0].start().wait()
        expired(group, cluster)


def expired(group, cluster):
    """The clock of the third replica is put forward by a day and an hour."""
    first, second, third = cluster.replicas
    old = Legacy(first.url)
    third.restart(FAKETIME="+90000s")
    cluster.wait_until_joined()
    with group.case("a session ID that has expired gets 404 with the reason, and another session can be opened"):
        reply = old.ask(third.url, "tools/list")
        equal((reply.status, reply.failure), (404, "the session has expired; send `initialize` again"))
        equal(old.listen(third.url).reply().status, 404)
        equal([where(old, each) for each in (first, second)], [first.name] * 2)
        new = Legacy(third.url)
        equal([where(new, each) for each in cluster.replicas], [third.name] * 3)


def offset(replica):
    """Returns by how many seconds the clock of a replica is ahead."""
    date = send(replica.url, "GET", "/health", {}).headers["date"]
    return email.utils.parsedate_to_datetime(date).timestamp() - time.time()


def faketime_library():
    require_program("faketime")
    listed = subprocess.run(["dpkg", "-L", "libfaketime"], capture_output=True, text=True, check=True).stdout
    return next(Path(line) for line in listed.splitlines() if line.endswith("libfaketimeMT.so.1"))
