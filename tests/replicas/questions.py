"""Questions, streams and sessions whose every request goes to another replica."""

import itertools
import os
import threading

from cases import ASK, NOTE, WAIT, WHO, asker, equal, together
from clients import ELICITATION, Legacy, Modern, content
from cluster import Cluster, eventually

QUESTIONS = int(os.environ.get("TOOLYARD_REPLICA_QUESTIONS", "60"))


def run(group):
    with Cluster(group.home, asker(group.home), nginx=False) as cluster:
        cluster.start()
        modern_questions(group, cluster)
        legacy_questions(group, cluster)
        session(group, cluster)
        streams(group, cluster)


def accept(message):
    return {"action": "accept", "content": {"answer": f"answer to {message}"}}


def expected(replica, id, rounds):
    return {"replica": replica.name, "id": id, "answers": [f"answer to {id} {each}" for each in range(1, rounds + 1)]}


def without_pid(seen):
    return {key: value for key, value in seen.items() if key != "pid"}


def repeat(paths, home, replicas):
    """Repeats the paths as often as this replica has to answer questions of the `QUESTIONS` in all."""
    count = len(range(replicas.index(home), QUESTIONS, len(replicas)))
    return list(itertools.islice(itertools.cycle(paths), count))


def ask_modern(client, path, id):
    """Makes one call. Its first request goes to the first replica of the path, each retry to the next one. Returns the
    result and the request states."""
    rounds, states, more = len(path) - 1, [], {}
    for replica in path:
        reply = client.call(replica.url, ASK, {"id": id, "rounds": rounds}, **more)
        result = reply.result if not reply.failure else content(reply)
        if result["resultType"] != "input_required":
            return content(reply), states
        states.append(result["requestState"])
        answers = {key: accept(request["params"]["message"]) for key, request in result["inputRequests"].items()}
        more = {"requestState": states[-1], "inputResponses": answers}
    raise AssertionError(f"{id}: more questions than rounds: {result}")


def modern_questions(group, cluster):
    replicas = cluster.replicas

    def ask(home):
        # A legacy server over stdio does not say which call it asks about, so each replica makes one call at a time.
        client, others = Modern(capabilities=ELICITATION), [each for each in replicas if each is not home]
        # The call, the first retry and the second retry are each at another replica.
        paths = repeat([(home, *retries) for retries in itertools.permutations(others)], home, replicas)
        # In addition, some calls have both retries at one replica.
        for number, path in enumerate([*paths, *((home, other, other) for other in others)]):
            id = f"{home.name} modern {number}"
            seen, states = ask_modern(client, path, id)
            equal(without_pid(seen), expected(home, id, 2))
            equal(len(set(states)), 2, "request states")
            used.append((path, id, states))

    used = []
    with group.case(f"{QUESTIONS} modern calls with two questions, every answer at another replica"):
        together(*(lambda home=home: ask(home) for home in replicas))
    with group.case("a request state that was used is refused by every replica"):
        client = Modern(capabilities=ELICITATION)
        path, id, states = used[-1]
        for replica, state in itertools.product(replicas, states):
            answers = {"question-1": accept("again"), "question-2": accept("again")}
            reply = client.call(replica.url, ASK, {"id": id, "rounds": 2}, requestState=state, inputResponses=answers)
            assert "requestState" in reply.failure, f"{replica.name}: {reply}"


def legacy_questions(group, cluster):
    replicas = cluster.replicas

    def ask(home):
        paths = repeat(list(itertools.permutations(replicas, 2)), home, replicas)
        # In addition, some calls have both at one replica that is not the home.
        paths += [(other, other) for other in replicas if other is not home]
        for number, (stream, answers) in enumerate(paths):
            if number % 8 == 0:
                session = Legacy(home.url, capabilities=ELICITATION)
            id = f"{home.name} legacy {number}"

            def answer(message):
                reply = session.respond(answers.url, message["id"], accept(message["params"]["message"]))
                equal(reply.status, 202, f"answer at {answers.name}")

            reply = session.call(stream.url, ASK, {"id": id, "rounds": 2}, answer)
            equal(without_pid(content(reply)), expected(home, id, 2), f"stream at {stream.name}, answers at {answers.name}")

    with group.case(f"{QUESTIONS} legacy calls with two questions, stream and answers at different replicas"):
        together(*(lambda home=home: ask(home) for home in replicas))


def session(group, cluster):
    first, second, third = cluster.replicas
    with group.case("a legacy session works at every replica and is served by its home"):
        session = Legacy(first.url)
        for replica in [second, third, first, third, second]:
            equal(content(session.call(replica.url, WHO))["replica"], first.name, replica.name)
            tools = session.ask(replica.url, "tools/list").result["tools"]
            assert WHO in [tool["name"] for tool in tools], tools
            equal(session.ask(replica.url, "ping").result, {}, "ping")
    with group.case("a session keeps its protocol version at every replica"):
        old = Legacy(first.url, version="2025-03-26")
        for replica in cluster.replicas:
            answers = old.batch(replica.url, "ping", "tools/list").message
            assert isinstance(answers, list) and len(answers) == 2, f"{replica.name}: {answers}"
            equal(session.batch(replica.url, "ping", "tools/list").status, 400, replica.name)
    with group.case("a call is performed once, wherever it arrives"):
        for number, replica in enumerate(cluster.replicas):
            content(session.call(replica.url, NOTE, {"line": f"once {number}"}))
        lines = (group.home / "notes").read_text().splitlines()
        equal(sorted(line for line in lines if line.startswith("once")), ["once 0", "once 1", "once 2"])
    with group.case("an unknown tool is reported like at home"):
        replies = [session.call(replica.url, "nothing") for replica in (first, second)]
        equal(replies[1].message["error"], replies[0].message["error"])
        equal(replies[1].status, replies[0].status)
    with group.case("DELETE at one replica ends the session at every replica"):
        equal(session.delete(second.url).status, 204, "DELETE")
        for replica in cluster.replicas:
            equal(session.ask(replica.url, "tools/list").status, 404, replica.name)
            equal(session.delete(replica.url).status, 404, f"DELETE at {replica.name}")
        equal(session.listen(third.url).reply().status, 404, "GET")


def streams(group, cluster):
    first, second, third = cluster.replicas
    with group.case("progress of a call arrives through another replica while the call runs"):
        session = Legacy(first.url)
        meta = {"progressToken": "p"}
        reply = session.call(second.url, WAIT, {"seconds": 1.2}, _meta=meta)
        equal(content(reply)["replica"], first.name)
        assert len([each for each in reply.events if each["method"] == "notifications/progress"]) >= 2, reply.events
    with group.case("a stream that breaks at one replica resumes at another one"):
        id, stream = session.start(second.url, "tools/call", {"name": WAIT, "arguments": {"seconds": 2}, "_meta": meta})
        next(stream.messages())
        stream.close()
        assert stream.last_event_id, "the stream has no event IDs"
        reply = session.listen(third.url, stream.last_event_id).reply(id)
        equal(content(reply)["replica"], first.name)
    with group.case("a cancellation at another replica ends the call"):
        id, stream = session.start(second.url, "tools/call", {"name": WAIT, "arguments": {"seconds": 20}, "_meta": meta}, seconds=8)
        next(stream.messages())
        equal(session.notify(third.url, "notifications/cancelled", {"requestId": id}).status, 202)
        stream.reply(id)
    with group.case("a change of the lists reaches the stream of a session at another replica"):
        stream = session.listen(second.url)
        equal(stream.status, 200)
        heard = []
        listening = threading.Thread(target=lambda: heard.extend(itertools.islice(stream.messages(), 1)), daemon=True)
        listening.start()
        content(session.call(third.url, "mcp__asker__add_tool", {"name": "added"}))
        listening.join(10)
        stream.close()
        equal([message["method"] for message in heard], ["notifications/tools/list_changed"])
        names = lambda: [tool["name"] for tool in session.ask(third.url, "tools/list").result["tools"]]
        assert eventually(lambda: "mcp__asker__added" in names(), 5), names()
    with group.case("DELETE at another replica ends the open streams of a session"):
        stream = session.listen(second.url, seconds=10)
        equal(session.delete(third.url).status, 204)
        list(stream.messages())
        stream.close()
