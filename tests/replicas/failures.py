"""Replicas and Redis that die, stop, lose their data, or lose each other."""

import itertools
import threading
import time

from cases import ASK, LOG, NOTE, WAIT, WHO, asker, at_most, equal, together
from clients import ELICITATION, Legacy, Modern, content, execute
from cluster import DEAD_SECONDS, Cluster, Link, eventually

# How long a client waits at most while a replica dies: until it counts as dead, and a little more.
PATIENCE = DEAD_SECONDS + 3
# How long a request takes at most without Redis: shared limits wait two seconds for it before each replica applies its
# share, and a new session makes two requests.
WITHOUT_REDIS = 5
# How long a slow Redis takes to receive a command, and as long to answer.
SLOW_SECONDS = 0.05
# How long a replica is stopped.
STOPPED_SECONDS = 10


def run(group):
    # Every replica reaches Redis on a link of its own, so that one of them can lose it.
    with Cluster(group.home, asker(group.home), nginx=False, cluster_keys={"redis": "${REPLICA_REDIS}"}) as cluster:
        links = [Link(cluster.redis.port) for _ in cluster.replicas]
        for replica, link in zip(cluster.replicas, links):
            replica.env["REPLICA_REDIS"] = f"redis://127.0.0.1:{link.port}/0"
        cluster.start()
        killed(group, cluster)
        stopped(group, cluster)
        alone(group, cluster, links)
        store(group, cluster)
        slow(group, cluster, links)
        for link in links:
            link.close()


def opened(replica, count=1, **more):
    return [Legacy(replica.url, **more) for _ in range(count)]


def parked(replica, id):
    """Returns a function that answers a new parked call of a modern client at any replica."""
    client = Modern(capabilities=ELICITATION)
    reply = client.call(replica.url, ASK, {"id": id, "rounds": 1})
    if "repeat the call" in reply.failure:
        # A call of another client was in flight. From now on this one has a private session with the server.
        reply = client.call(replica.url, ASK, {"id": id, "rounds": 1})
    equal(reply.result["resultType"], "input_required")
    answer = {"action": "accept", "content": {"answer": "fine"}}
    more = {
        "requestState": reply.result["requestState"],
        "inputResponses": {key: answer for key in reply.result["inputRequests"]},
    }
    return lambda url, seconds=PATIENCE + 5: client.call(url, ASK, {"id": id, "rounds": 1}, seconds=seconds, **more)


def where(session, replica, seconds=PATIENCE + 5):
    return content(session.call(replica.url, WHO, seconds=seconds))["replica"]


def killed(group, cluster):
    first, second, third = cluster.replicas
    cluster.wait_until_joined()
    sessions = opened(first, 4, capabilities=ELICITATION)
    old = opened(first, version="2025-03-26")[0]
    quiet, ended = opened(first, 2)
    equal(quiet.ask(second.url, "logging/setLevel", {"level": "error"}).result, {}, "logging/setLevel")
    ended.delete(second.url)
    answer = parked(first, "killed")
    id, running = sessions[0].start(second.url, "tools/call", {"name": WAIT, "arguments": {"seconds": 60}, "_meta": {"progressToken": 1}})
    next(running.messages())
    standing = sessions[1].listen(third.url, seconds=20)
    first.kill()
    with group.case("kill -9: the next request of a session succeeds at another replica"):
        with at_most(PATIENCE, "a list and a call"):
            tools = sessions[0].ask(second.url, "tools/list").result["tools"]
            assert WHO in [tool["name"] for tool in tools], tools
            equal(where(sessions[0], second), second.name)
    with group.case("kill -9: the session then has one home for all replicas"):
        equal([where(sessions[0], each) for each in (third, second, third)], [second.name] * 3)
    with group.case("kill -9: the stream of a call ends, and resumed at another replica says that the call is lost"):
        with at_most(PATIENCE, "the end"):
            reply = running.reply(id)
        assert not reply.message, reply
        with at_most(PATIENCE, "the rest of the stream"):
            rest = sessions[0].listen(third.url, running.last_event_id).reply(id)
        assert "may have been executed" in rest.failure, rest
    with group.case("kill -9: the standing stream of a session ends, so that the client opens it again"):
        with at_most(PATIENCE, "the end"):
            list(standing.messages())
        again = sessions[1].listen(second.url, seconds=5)
        equal(again.status, 200)
        again.close()
    with group.case("kill -9: two replicas that get requests of one session at once agree on its home"):
        for session in sessions[2:]:
            homes = together(*(lambda each=each: where(session, each) for each in (second, third) * 3))
            equal(len(set(homes)), 1, f"homes {homes}")
    with group.case("kill -9: questions work in a session that was taken over"):
        answers = lambda message: sessions[2].respond(third.url, message["id"], {"action": "accept", "content": {"answer": "yes"}})
        equal(content(sessions[2].call(second.url, ASK, {"id": "after", "rounds": 1}, answers))["answers"], ["yes"])
    with group.case("kill -9: a session that was taken over keeps its protocol version"):
        answers = old.batch(third.url, "ping", "tools/list").message
        assert isinstance(answers, list) and len(answers) == 2, answers
    with group.case("kill -9: a session that was taken over keeps its log level"):
        heard = lambda level: [
            each["params"]["data"] for each in quiet.call(third.url, LOG, {"level": level}).events
            if each["method"] == "notifications/message"
        ]
        equal([heard("info"), heard("critical")], [[], ["a line at critical"]])
    with group.case("kill -9: a parked call of the dead replica gets a clear error"):
        for replica in (second, third):
            with at_most(PATIENCE, replica.name):
                reply = answer(replica.url)
            assert "requestState" in reply.failure or "replica" in reply.failure, reply
    with group.case("kill -9: a session that was ended before stays ended"):
        equal([ended.ask(each.url, "tools/list").status for each in (second, third)], [404, 404])
    first.start().wait()
    cluster.wait_until_joined()
    with group.case("kill -9: the replica comes back, and the sessions stay where they are"):
        equal([where(sessions[0], each) for each in cluster.replicas], [second.name] * 3)


def stopped(group, cluster):
    first, second, third = cluster.replicas
    sessions = opened(first, 3)
    answer = parked(first, "stopped")
    waiting, late = [], []
    id, running = sessions[1].start(second.url, "tools/call", {"name": WAIT, "arguments": {"seconds": 30}, "_meta": {"progressToken": 1}})
    next(running.messages())
    first.pause()
    began = time.monotonic()
    try:
        with group.case("SIGSTOP: other clients of the other replicas notice nothing"):
            for replica in (second, third):
                with at_most(2, replica.name):
                    equal(content(Modern().call(replica.url, WHO))["replica"], replica.name)
                    equal(execute(replica.url, WHO).status, 200)
                    equal(where(opened(replica)[0], replica), replica.name)
        with group.case("SIGSTOP: the session moves to another replica"):
            # The stopped replica may have received the first call before it was stopped.
            with at_most(PATIENCE, "the first call"):
                reply = sessions[0].call(second.url, WHO)
            assert reply.status == 502 and "may have" in reply.failure or content(reply)["replica"] == second.name, reply
            with at_most(PATIENCE, "the second call"):
                equal(where(sessions[0], second), second.name)
            equal(where(sessions[0], third), second.name)
        with group.case("SIGSTOP: a parked call of the stopped replica gets a clear error in time"):
            with at_most(PATIENCE, "the error"):
                reply = answer(third.url)
            assert "requestState" in reply.failure or "replica" in reply.failure, reply
        # These requests wait in the socket of the stopped replica, which answers them when it goes on.
        for session in (sessions[0], sessions[0], sessions[2]):
            call = lambda session=session: late.append((session, session.call(first.url, WHO, seconds=30)))
            waiting.append(threading.Thread(target=call))
            waiting[-1].start()
        time.sleep(max(0, began + STOPPED_SECONDS - time.monotonic()))
    finally:
        first.resume()
    with group.case("SIGCONT: requests that waited in the stopped replica are not served by it if the session has moved"):
        for thread in waiting:
            thread.join(PATIENCE)
        equal(len(late), 3, f"answers after {PATIENCE} s")
        for session, reply in late:
            if session is sessions[0]:
                assert reply.status in (404, 502, 503) or content(reply)["replica"] == second.name, reply
    with group.case("SIGCONT: a session has one home again, at every replica"):
        for session in sessions:
            homes = [where(session, each) for each in (first, second, third, first)]
            equal(len(set(homes)), 1, f"homes {homes}")
        equal(homes_of(sessions[0], cluster), {second.name})
    with group.case("SIGCONT: the stream of a session that moved ends"):
        with at_most(PATIENCE, "the end"):
            running.reply(id)
    cluster.wait_until_joined()


def homes_of(session, cluster):
    return {where(session, each) for each in cluster.replicas}


def alone(group, cluster, links):
    """One replica loses Redis and reaches the others. The others consider it dead."""
    first, second, third = cluster.replicas
    sessions = opened(first, 2)
    links[0].cut()
    try:
        with group.case("a replica without Redis goes on with its sessions"):
            with at_most(WITHOUT_REDIS, "a call"):
                equal(where(sessions[0], first), first.name)
        time.sleep(DEAD_SECONDS + 2)
        with group.case("the others take a session of that replica over, and agree on its home"):
            # The replica itself cannot know that, and goes on as well.
            equal([where(sessions[0], each) for each in (first, second, third)], [first.name, second.name, second.name])
    finally:
        links[0].restore()
    cluster.wait_until_joined()
    with group.case("a session has one home when the replica has Redis again"):
        equal([homes_of(sessions[0], cluster), len(homes_of(sessions[1], cluster))], [{second.name}, 1])


def everything_works(cluster, sessions, seconds):
    """Checks that clients of every kind are served at every replica, each request in time."""
    for session, replica in itertools.product(sessions, cluster.replicas):
        with at_most(seconds, f"a call of a session of {session.home.name} at {replica.name}"):
            equal(where(session, replica), session.home.name)
    for replica in cluster.replicas:
        with at_most(seconds, f"a modern call at {replica.name}"):
            equal(content(Modern().call(replica.url, WHO))["replica"], replica.name)
        with at_most(seconds, f"REST at {replica.name}"):
            equal(execute(replica.url, WHO).status, 200)
        with at_most(seconds, f"a new session at {replica.name}"):
            equal(where(opened(replica)[0], replica), replica.name)


def store(group, cluster):
    redis, (first, second, third) = cluster.redis, cluster.replicas
    sessions = [opened(each)[0] for each in cluster.replicas]
    for session, replica in zip(sessions, cluster.replicas):
        session.home = replica
    with group.case("Redis killed: sessions of live replicas go on everywhere"):
        redis.kill()
        everything_works(cluster, sessions, WITHOUT_REDIS)
        time.sleep(DEAD_SECONDS + 1)
        everything_works(cluster, sessions, WITHOUT_REDIS)
    with group.case("Redis killed: a parked call is answered through another replica"):
        with at_most(WITHOUT_REDIS, "the answer"):
            equal(content(parked(first, "without Redis")(second.url))["answers"], ["fine"])
    with group.case("Redis restarted without its data: sessions keep their homes at every moment"):
        hammered(cluster, sessions, lambda: redis.start().wait())
        cluster.wait_until_joined()
        everything_works(cluster, sessions, WITHOUT_REDIS)
    with group.case("Redis flushed: sessions keep their homes at every moment"):
        for _ in range(3):
            hammered(cluster, sessions, redis.flush)
        cluster.wait_until_joined()
        everything_works(cluster, sessions, WITHOUT_REDIS)
    with group.case("Redis stopped for 6 s: sessions go on"):
        redis.pause()
        try:
            everything_works(cluster, sessions, WITHOUT_REDIS)
            time.sleep(4)
            everything_works(cluster, sessions, WITHOUT_REDIS)
        finally:
            redis.resume()
        cluster.wait_until_joined()
        everything_works(cluster, sessions, WITHOUT_REDIS)
    with group.case("Redis full: sessions go on, and new ones are opened"):
        redis.ask("CONFIG", "SET", "maxmemory", "1")
        try:
            time.sleep(DEAD_SECONDS + 1)
            everything_works(cluster, sessions, WITHOUT_REDIS)
            equal({each.get("/ready")[1]["store"] for each in cluster.replicas}, {"unavailable"})
        finally:
            redis.ask("CONFIG", "SET", "maxmemory", "0")
        cluster.wait_until_joined()
        everything_works(cluster, sessions, WITHOUT_REDIS)
    with group.case("a replica and Redis die together: its sessions get an error at once, and go on when Redis is back"):
        redis.kill()
        first.kill()
        try:
            with at_most(PATIENCE, "the error"):
                reply = sessions[0].call(second.url, WHO)
            assert reply.status >= 400 and reply.failure, reply
        finally:
            redis.start().wait()
        assert eventually(lambda: not sessions[0].call(second.url, WHO).failure, 10), sessions[0].call(second.url, WHO)
        equal([where(sessions[0], each) for each in (third, second)], [second.name] * 2)
    first.start().wait()
    cluster.wait_until_joined()


def slow(group, cluster, links):
    """Redis answers every replica late."""
    sessions = [opened(each)[0] for each in cluster.replicas]
    for session, replica in zip(sessions, cluster.replicas):
        session.home = replica
    for link in links:
        link.delay_seconds = SLOW_SECONDS
    try:
        with group.case("Redis slow: every client is served, and no replica counts as dead"):
            everything_works(cluster, sessions, WITHOUT_REDIS)
            time.sleep(DEAD_SECONDS + 1)
            everything_works(cluster, sessions, WITHOUT_REDIS)
            cluster.wait_until_joined()
            equal({each.get("/ready")[1]["store"] for each in cluster.replicas}, {"available"})
        with group.case("Redis slow: a call with an idempotency key is made once"):

            def call(replica):
                # The first command of a script takes three round trips. If it is too late, the call is refused.
                send = lambda: execute(replica.url, NOTE, {"line": "slow"}, idempotencyKey="slow")
                return eventually(lambda: [reply for reply in [send()] if reply.status != 502], 10)[0]

            replies = together(*(lambda each=each: call(each) for each in cluster.replicas * 2))
            equal([each.status for each in replies], [200] * 6, [each.text[:300] for each in replies])
            equal((group.home / "notes").read_text().splitlines().count("slow"), 1)
    finally:
        for link in links:
            link.delay_seconds = 0


def hammered(cluster, sessions, event):
    """Calls in every session at every replica while `event()` happens and for two seconds after it. An answer must come
    from the home of the session; errors count if they are more than a few."""
    until, wrong, errors, total = [time.monotonic() + 60], [], [], []

    def call(session, replica):
        while time.monotonic() < until[0]:
            total.append(1)
            try:
                reply = session.call(replica.url, WHO, seconds=5)
            except OSError as error:
                errors.append(f"session of {session.home.name} at {replica.name}: {error!r}")
                continue
            if reply.failure:
                errors.append(f"session of {session.home.name} at {replica.name}: {reply.failure}")
            elif content(reply)["replica"] != session.home.name:
                wrong.append(f"{session.home.name} by {content(reply)['replica']} at {replica.name}")
            time.sleep(0.02)

    def happen():
        time.sleep(0.3)
        event()
        until[0] = time.monotonic() + 2

    pairs = itertools.product(sessions, cluster.replicas)
    together(happen, *(lambda session=session, replica=replica: call(session, replica) for session, replica in pairs))
    assert not wrong, f"{len(wrong)} of {len(total)} calls: {sorted(set(wrong))}"
    assert not errors, f"{len(errors)} of {len(total)} calls failed: {sorted(set(errors))}"
