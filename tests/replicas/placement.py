"""Servers that run on one replica only: one process behind all replicas, which moves when its replica goes."""

import contextlib
import itertools
import os
import threading
import time
from pathlib import Path

from cases import HERE, at_most, equal, together
from clients import ELICITATION, Legacy, Modern, content, execute, send
from cluster import DEAD_SECONDS, Cluster, Link, eventually

TOKEN = "the token of these tests"
# How long a server takes to move at most after its replica died: until the replica counts as dead, the attempt to reach it,
# and the start of the server.
MOVE_SECONDS = DEAD_SECONDS + 5
STOPPED_SECONDS = 6


def server(home, name, **keys):
    """Returns the tables of a server that runs on one replica. Its processes have `NOTES` in their environment."""
    settings = {"command": "python3", "args": [str(HERE / "asker.py")], "placement": "one", **keys}
    env = {"REPLICA_NAME": "${REPLICA_NAME}", "NOTES": str(home / name)}
    lines = [f"{key} = {value if isinstance(value, int) else repr(value)}" for key, value in settings.items()]
    return "\n".join([f"[servers.{name}]", *lines, "env = { %s }" % ", ".join(f"{k} = {v!r}" for k, v in env.items())]) + "\n"


def tool(server, name):
    return f"mcp__{server}__{name}"


WHO, ASK, WAIT, ADD = (tool("shared", name) for name in ("who", "ask", "wait", "add_tool"))
PRIVATE = tool("private", "who")


def run(group):
    home = group.home
    yard = "limits.rate = false\n" + server(home, "shared") + server(home, "private", sessions="per-client")
    keys = {"redis": "${REPLICA_REDIS}"}
    with Cluster(home, yard, nginx=False, auth="token", token=TOKEN, cluster_keys=keys) as cluster:
        links = [Link(cluster.redis.port) for _ in cluster.replicas]
        for replica, link in zip(cluster.replicas, links):
            replica.env["REPLICA_REDIS"] = f"redis://127.0.0.1:{link.port}/0"
        cluster.start()
        one_process(group, cluster)
        questions(group, cluster)
        private_sessions(group, cluster)
        forged(group, cluster)
        drained(group, cluster)
        killed(group, cluster)
        stopped(group, cluster)
        alone(group, cluster, links)
        store(group, cluster)
        with group.case("a yard that stops leaves no process"):
            equal([each.stop() for each in cluster.replicas], [0] * 3)
            equal([processes(cluster, name) for name in ("shared", "private")], [[], []])
        for link in links:
            link.close()


def processes(cluster, server):
    """Returns the processes of a server, of all replicas."""
    found, mark = [], f"NOTES={cluster.home / server}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_server = b"asker.py" in (folder / "cmdline").read_bytes() and not b"toolyard" in os.readlink(folder / "exe").encode()
            if is_server and mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return sorted(found)


def legacy(replica, **more):
    return Legacy(replica.url, token=TOKEN, **more)


def modern(**more):
    return Modern(token=TOKEN, **more)


def who(replica, seconds=MOVE_SECONDS + 5, name=WHO):
    """Returns what the server says about itself, called over REST at a replica."""
    reply = execute(replica.url, name, token=TOKEN, seconds=seconds)
    assert reply.status == 200, f"{replica.name}: status {reply.status}: {reply.text[:300]}"
    return reply.message["result"]


def owner(cluster, asked=None):
    """Returns the replica that runs the server, according to a call."""
    name = who(asked or next(each for each in cluster.replicas if each.is_running()))["replica"]
    return next(each for each in cluster.replicas if each.name == name)


def others(cluster, replica):
    return [each for each in cluster.replicas if each is not replica]


def only_process(cluster, server="shared"):
    """Waits until the server has one process and returns it."""
    assert eventually(lambda: len(processes(cluster, server)) == 1, 5), processes(cluster, server)
    return processes(cluster, server)[0]


def runs_once(cluster, replicas, seconds):
    """Checks that these replicas reach the same process of the server within some seconds, and that there is no other."""
    with at_most(seconds, "the first call"):
        seen = who(replicas[0])
    equal({who(each)["pid"] for each in replicas}, {seen["pid"]}, "processes")
    equal(only_process(cluster), seen["pid"])
    return next(each for each in cluster.replicas if each.name == seen["replica"])


def one_process(group, cluster):
    sessions = [legacy(each) for each in cluster.replicas]
    with group.case("all replicas and fronts reach one process with one counter"):
        first = who(cluster.replicas[0])
        seen = []
        for session, replica in itertools.product(sessions, cluster.replicas):
            seen += [content(session.call(replica.url, WHO)), content(modern().call(replica.url, WHO)), who(replica)]
        equal([each["before"] for each in seen], list(range(first["before"] + 1, first["before"] + 1 + len(seen))))
        equal({each["pid"] for each in seen}, {only_process(cluster)})
    with group.case("every replica says which replica runs the server"):
        name = owner(cluster).name
        for replica in cluster.replicas:
            servers = {each["name"]: each for each in replica.get("/mcp/servers")[1]["servers"]}
            about = servers["shared"]
            equal([about["state"], about["replica"], about["transport"], about["tools"]], ["ready", name, "stdio", 6])
    with group.case("a tool that the server adds is offered by every replica"):
        content(sessions[0].call(cluster.replicas[2].url, ADD, {"name": "added"}))
        added = tool("shared", "added")
        for session, replica in zip(sessions, cluster.replicas):
            tools = lambda: [each["name"] for each in session.ask(replica.url, "tools/list").result["tools"]]
            assert eventually(lambda: added in tools(), 5), tools()
            equal(content(session.call(replica.url, added))["pid"], only_process(cluster))
    with group.case("progress of a call at another replica arrives, and a cancelled call ends"):
        session, replica = sessions[0], others(cluster, owner(cluster))[0]
        params = {"name": WAIT, "arguments": {"seconds": 1}, "_meta": {"progressToken": 7}}
        id, stream = session.start(replica.url, "tools/call", params)
        reply = stream.reply(id)
        assert reply.result and [each for each in reply.events if each["method"] == "notifications/progress"], reply
    with group.case("each call is counted and recorded once, by the replica that received it"):
        before = [calls(each) for each in cluster.replicas]
        who(others(cluster, owner(cluster))[0])
        who(owner(cluster))
        # `owner` is a call, too.
        after = [calls(each) for each in cluster.replicas]
        equal(sum(after) - sum(before), 4)


def calls(replica):
    """Returns how many calls of the server this replica has counted."""
    text = send(replica.url, "GET", "/metrics", {"Authorization": f"Bearer {TOKEN}"}).response.read().decode()
    lines = [line for line in text.splitlines() if line.startswith("toolyard_calls_total{") and 'source="shared"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def questions(group, cluster):
    accept = lambda text: {"action": "accept", "content": {"answer": text}}
    client = modern(capabilities=ELICITATION)
    with group.case("a modern client answers a question of a server elsewhere, at any replica"):
        for number, (asked, answered) in enumerate(itertools.product(cluster.replicas, repeat=2)):
            id = f"modern {number}"
            result = client.call(asked.url, ASK, {"id": id, "rounds": 1}).result
            equal(result["resultType"], "input_required", result)
            answers = {key: accept(request["params"]["message"]) for key, request in result["inputRequests"].items()}
            more = {"requestState": result["requestState"], "inputResponses": answers}
            done = content(client.call(answered.url, ASK, {"id": id, "rounds": 1}, **more))
            equal(done["answers"], [f"{id} 1"])
    with group.case("a legacy client answers a question of a server elsewhere, at any replica"):
        for number, (asked, answered) in enumerate(itertools.product(cluster.replicas, repeat=2)):
            session, id = legacy(asked, capabilities=ELICITATION), f"legacy {number}"

            def answer(request):
                session.respond(answered.url, request["id"], accept(request["params"]["message"]))

            done = content(session.call(asked.url, ASK, {"id": id, "rounds": 2}, answer))
            equal(done["answers"], [f"{id} 1", f"{id} 2"])
            session.delete(asked.url)
    with group.case("a question never reaches the client of another replica"):
        # Two calls at two replicas that do not run the server. Each client gets its own questions, or a call is aborted.
        def ask(at):
            replica, heard = cluster.replicas[at], []
            session = legacy(replica, capabilities=ELICITATION)

            def answer(request):
                heard.append(request["params"]["message"])
                session.respond(replica.url, request["id"], accept(request["params"]["message"]))

            for number in range(10):
                session.call(replica.url, ASK, {"id": f"client-{at} {number}", "rounds": 1}, answer)
            session.delete(replica.url)
            return heard

        for at, heard in enumerate(together(*(lambda at=at: ask(at) for at in range(3)))):
            assert heard and all(each.startswith(f"client-{at} ") for each in heard), f"client {at}: {heard}"
    with group.case("the private sessions that ambiguous questions have opened end with their clients"):
        only_process(cluster)


def private_sessions(group, cluster):
    first, second, third = cluster.replicas
    ada, bob = legacy(first), legacy(second)
    shared = only_process(cluster, "private")
    with group.case("two clients at different replicas have a private session each, and only one"):
        pids = {}
        for name, session in (("ada", ada), ("bob", bob)):
            seen = {content(session.call(replica.url, PRIVATE))["pid"] for replica in (first, second, third, first)}
            equal(len(seen), 1, f"processes of {name}")
            pids[name] = seen.pop()
        assert len({shared, *pids.values()}) == 3, (shared, pids)
        equal(processes(cluster, "private"), sorted([shared, *pids.values()]))
    with group.case("a private session ends with the session of its client at another replica"):
        ada.delete(third.url)
        assert eventually(lambda: processes(cluster, "private") == sorted([shared, pids["bob"]]), 5), processes(cluster, "private")
        equal(content(bob.call(third.url, PRIVATE))["pid"], pids["bob"])
    bob.delete(first.url)
    assert eventually(lambda: processes(cluster, "private") == [shared], 5), processes(cluster, "private")


def forged(group, cluster):
    runs = owner(cluster)
    with group.case("the requests of replicas are closed to clients, whatever token and header they send"):
        for action, replica in itertools.product(("call", "follow", "give-up", "answer", "nonsense"), cluster.replicas):
            for header in ({}, {"Toolyard-Replica-Request": "YQ"}, {"Toolyard-Replica-Request": "A" * 200}, {"Toolyard-Forwarded-To": "YQ"}):
                headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}", **header}
                equal(send(replica.url, "POST", f"/replicas/servers/{action}", headers, {}).status, 404, (action, header))
        equal(owner(cluster).name, runs.name)


def drained(group, cluster):
    runs = owner(cluster)
    rest = others(cluster, runs)
    stop = []

    def load(replica):
        done = failed = 0
        slowest = 0
        while not stop:
            began = time.monotonic()
            reply = execute(replica.url, WHO, token=TOKEN)
            done, failed = done + 1, failed + (reply.status != 200)
            assert reply.status == 200, f"{replica.name}: call {done}: status {reply.status}: {reply.text[:300]}"
            slowest = max(slowest, time.monotonic() - began)
        return done, slowest

    def drain():
        time.sleep(0.5)
        began = time.monotonic()
        running = wait_at(rest[0], 2)
        code = runs.stop()
        took = time.monotonic() - began
        time.sleep(1)
        stop.append(True)
        return code, took, running()

    with group.case("a draining replica hands its server over without a failed call"):
        try:
            (code, took, reply), *loads = together(drain, *(lambda each=each: load(each) for each in rest))
        finally:
            stop.append(True)
        equal(code, 0)
        # The call in flight has finished before the server moved.
        equal(reply.status, 200, reply.text)
        assert took < 10, f"draining took {took:.1f} s"
        for done, slowest in loads:
            assert done > 10 and slowest < 6, (done, slowest)
    with group.case("after draining, the server runs once at another replica"):
        new = runs_once(cluster, rest, 2)
        assert new is not runs, new.name
    runs.start().wait()
    cluster.wait_until_joined()
    with group.case("a replica that starts again does not take the server back"):
        equal(runs_once(cluster, cluster.replicas, 5).name, new.name)


def later(call):
    """Starts a call in the background. Returns a function that waits for its reply."""
    replies = []
    thread = threading.Thread(target=lambda: replies.append(call()))
    thread.start()

    def wait():
        thread.join()
        return replies[0]

    return wait


def wait_at(replica, seconds):
    return later(lambda: execute(replica.url, WAIT, {"seconds": seconds}, token=TOKEN, seconds=seconds + 10))


def killed(group, cluster):
    runs = owner(cluster)
    rest = others(cluster, runs)
    before = who(rest[0])["pid"]
    running = wait_at(rest[0], 60)
    time.sleep(0.5)
    runs.kill()
    with group.case("kill -9: the server moves within seconds, and calls wait for it"):
        new = runs_once(cluster, rest, MOVE_SECONDS)
        assert new is not runs and who(new)["pid"] != before, new.name
    with group.case("kill -9: a call in flight gets an error"):
        reply = running()
        assert reply.status == 502 and "may have been executed" in reply.text, reply
    runs.start().wait()
    cluster.wait_until_joined()
    with group.case("kill -9: the replica comes back and uses the server where it is"):
        equal(runs_once(cluster, cluster.replicas, 5).name, new.name)


def stopped(group, cluster):
    runs = owner(cluster)
    rest = others(cluster, runs)
    old = only_process(cluster)
    runs.pause()
    began = time.monotonic()
    try:
        with group.case("SIGSTOP: the server moves within seconds"):
            # The stopped replica may have received the first call.
            with at_most(MOVE_SECONDS, "the first call"):
                execute(rest[0].url, WHO, token=TOKEN)
            with at_most(MOVE_SECONDS, "the second call"):
                equal(who(rest[0])["replica"] in [each.name for each in rest], True)
            equal(len({who(each)["pid"] for each in rest}), 1)
        # These requests wait in the socket of the stopped replica, which must not serve them with the old process.
        late = [later(lambda: execute(runs.url, WHO, token=TOKEN)) for _ in range(3)]
        time.sleep(max(0, began + STOPPED_SECONDS - time.monotonic()))
    finally:
        runs.resume()
    with group.case("SIGCONT: the old process is ended and serves no further call"):
        for each in late:
            reply = each()
            assert reply.status != 200 or reply.message["result"]["pid"] != old, reply
        cluster.wait_until_joined()
        assert eventually(lambda: old not in processes(cluster, "shared"), 5), processes(cluster, "shared")
        assert runs_once(cluster, cluster.replicas, 5) is not runs


def alone(group, cluster, links):
    """The replica that runs the server loses Redis and reaches the others, which consider it dead."""
    runs = owner(cluster)
    rest = others(cluster, runs)
    old = only_process(cluster)
    link = links[cluster.replicas.index(runs)]
    link.cut()
    try:
        with group.case("a replica that alone loses Redis gives the server up, and uses it at the new one"):
            moved = lambda: execute(rest[0].url, WHO, token=TOKEN).text and owner(cluster, rest[0]) is not runs
            assert eventually(moved, MOVE_SECONDS + 5), "it has not moved"
            assert eventually(lambda: old not in processes(cluster, "shared"), 5), processes(cluster, "shared")
            new = runs_once(cluster, cluster.replicas, 5)
            assert new in rest, new.name
    finally:
        link.restore()
    cluster.wait_until_joined()
    with group.case("and when it has Redis again, the server stays"):
        equal(runs_once(cluster, cluster.replicas, 5).name, new.name)


def store(group, cluster):
    redis, runs = cluster.redis, owner(cluster)
    old = only_process(cluster)
    with group.case("Redis killed: the server stays and every replica reaches it"):
        redis.kill()
        time.sleep(DEAD_SECONDS + 1)
        equal({who(each)["pid"] for each in cluster.replicas}, {old})
        equal(processes(cluster, "shared"), [old])
    with group.case("Redis restarted without its data, then flushed: the server stays"):
        redis.start().wait()
        cluster.wait_until_joined()
        for _ in range(2):
            for _ in range(10):
                equal({who(each)["pid"] for each in cluster.replicas}, {old})
                time.sleep(0.1)
            redis.flush()
        time.sleep(DEAD_SECONDS + 1)
        equal([runs_once(cluster, cluster.replicas, 2).name, processes(cluster, "shared")], [runs.name, [old]])
