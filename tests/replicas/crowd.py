"""Clients of every kind that call through a load balancer while replicas die, and that check every answer.

A call has a unique `id`, which the upstream counts and which must come back. What a client may see is listed in `ALLOWED`;
everything else is a failure.
"""

import contextlib
import http.client
import json
import random
import threading
import time
from collections import Counter

from cases import ASK, WAIT
from clients import ELICITATION, Legacy, Modern, content, execute, send
from harness.talk import Refused

WORK = "mcp__counter__work"
# A request whose replica dies waits until it counts as dead. One whose idempotency key belongs to a dead replica waits
# until the lease of the key expires.
LONGEST_SECONDS, LONGEST_KEYED_SECONDS = 15, 25
PAUSE_SECONDS = 0.05

# What a client may see of a replica that dies, each with a part of the message.
ALLOWED = {
    "the connection broke": "broken connection",
    "the load balancer found no replica": "load balancer",
    "lost the connection to replica": "may have executed the request",
    "the call may have been executed": "may have been executed",
    "the replica is not reachable": "retry later",
    "the outcome is unknown": "the outcome is unknown because the replica that made the call has stopped",
    "the parked call is lost": "requestState",
    # The events of a stream are logged in the background, so those of its last moment may be missing.
    "the stream cannot be resumed": "the stream of this `last-event-id` is no longer available",
}


class Lost(Exception):
    """A call that ended with a replica. The message is not that of a replica."""


class Crowd:
    """The clients. Their calls are counted by kind and outcome."""

    def __init__(self, url, tokens, seed):
        self.url, self.tokens, self.seed, self.lock = url, tokens, seed, threading.Lock()
        self.outcomes, self.failures, self.slowest = Counter(), [], Counter()
        # The calls that were answered, and the arguments of those that carry an idempotency key.
        self.answered, self.keyed, self.answers = set(), set(), {}
        self.stopping, self.threads = threading.Event(), []
        self.numbers, self.sessions, self.rounds = Counter(), {}, 0

    def start(self):
        self.stopping.clear()
        self.rounds += 1
        kinds = [self.legacy] * 8 + [self.questions] * 2 + [self.streaming] * 2 + [self.listening] * 2
        # A pair is two clients.
        kinds += [self.modern] * 8 + [self.parked] * 2 + [self.rest] * 2 + [self.keyed_pair] * 3
        self.threads = [
            threading.Thread(target=self.work, args=(kind, at), daemon=True) for at, kind in enumerate(kinds)
        ]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)
            if thread.is_alive():
                self.failures.append("a client did not end")

    def work(self, kind, at):
        chosen = random.Random(f"{self.seed} {at} {self.rounds}")
        try:
            for _ in kind(chosen, at):
                if self.stopping.wait(PAUSE_SECONDS):
                    break
            self.end(at)
        except Exception as error:
            self.failures.append(f"client {at} ended: {error!r}")
            raise

    def new_id(self, kind, at):
        with self.lock:
            self.numbers[at] += 1
            return f"{kind} {at} {self.numbers[at]}"

    def attempt(self, kind, call, id=None, longest=LONGEST_SECONDS):
        """Makes one call and counts how it ended. Returns its result, or `None`."""
        began, result, failure = time.monotonic(), None, None
        try:
            result = call()
            outcome = "answered"
        except (Refused, Lost) as error:
            outcome = allowed(str(error))
            failure = None if outcome else f"{kind} {id}: {error}"
        except TimeoutError as error:
            failure = f"{kind} {id}: {error!r} after {time.monotonic() - began:.1f} s"
        except (OSError, http.client.HTTPException):
            outcome = "the connection broke"
        except Exception as error:
            failure = f"{kind} {id}: {type(error).__name__}: {error}"
        took = time.monotonic() - began
        if took > longest:
            failure = f"{kind} {id}: took {took:.1f} s"
        with self.lock:
            self.slowest[kind] = max(self.slowest[kind], took)
            self.outcomes[kind, "failed" if failure else outcome] += 1
            if failure:
                self.failures.append(failure[:500])
            elif id and outcome == "answered":
                self.answered.add(id)
        return result

    def session(self, at, capabilities=None):
        """Opens a session. Returns `None` if the clients stop meanwhile."""
        session = None
        while session is None and not self.stopping.is_set():
            open_session = lambda: Legacy(self.url, token=self.tokens[at], capabilities=capabilities)
            session = self.sessions[at] = self.attempt("initialize", open_session)
            self.stopping.wait(PAUSE_SECONDS)
        return session

    def end(self, at):
        """Ends the session of a client, if it has one."""
        if session := self.sessions.pop(at, None):
            self.attempt("delete", lambda: check_deleted(session.delete(self.url)))

    def legacy(self, chosen, at):
        session, calls = self.session(at), 0
        while session:
            id = self.new_id("legacy", at)
            self.attempt("legacy", lambda: check_work(session.call(self.url, WORK, work(chosen, id)), id), id)
            yield
            if chosen.random() < 0.2:
                self.attempt("list", lambda: check_list(session.ask(self.url, "tools/list")))
            calls += 1
            # Most sessions live through many replicas.
            if calls % 200 == 0:
                self.end(at)
                session = self.session(at)

    def modern(self, chosen, at):
        client = Modern(token=self.tokens[at])
        while True:
            id = self.new_id("modern", at)
            self.attempt("modern", lambda: check_work(client.call(self.url, WORK, work(chosen, id)), id), id)
            yield
            if chosen.random() < 0.2:
                self.attempt("list", lambda: check_list(client.ask(self.url, "tools/list")))

    def rest(self, chosen, at):
        while True:
            id = self.new_id("REST", at)
            self.attempt("REST", lambda: check_executed(execute(self.url, WORK, work(chosen, id), self.tokens[at]), id), id)
            yield

    def keyed_pair(self, chosen, at):
        """Two clients that send the same request with the same idempotency key at the same time, until each of them knows
        the outcome."""
        while True:
            id = self.new_id("keyed", at)
            arguments = work(chosen, id)
            with self.lock:
                self.keyed.add(id)
            pair = [threading.Thread(target=self.keyed_call, args=(id, arguments, at)) for _ in range(2)]
            for each in pair:
                each.start()
            for each in pair:
                each.join()
            if chosen.random() < 0.3:
                self.keyed_call(id, arguments, at)
            yield

    def keyed_call(self, id, arguments, at):
        def call():
            reply = execute(self.url, WORK, arguments, self.tokens[at], LONGEST_KEYED_SECONDS + 5, idempotencyKey=id)
            number = check_executed(reply, id)["number"]
            with self.lock:
                first = self.answers.setdefault(id, number)
            assert number == first, f"{id} was answered with call {number} and with call {first}"
            return number

        for _ in range(8):
            ended = self.attempt("keyed", call, id, LONGEST_KEYED_SECONDS)
            if ended or self.stopping.is_set():
                return
            time.sleep(PAUSE_SECONDS)

    def questions(self, chosen, at):
        """A legacy client whose server asks it, with the answers at any replica."""
        session = self.session(at, ELICITATION)
        while session:
            id = self.new_id("questions", at)

            def call():
                answer = lambda message: self.respond(session, message["id"], accept(message["params"]["message"]))
                number, stream = session.start(self.url, "tools/call", {"name": ASK, "arguments": {"id": id, "rounds": 2}})
                return check_answers(self.finish(session, number, stream, answer), id)

            self.attempt("questions", call, id, 2 * LONGEST_SECONDS)
            yield

    def respond(self, session, id, answer):
        """Sends an answer until a replica has received it. Otherwise the server would wait for it."""
        for _ in range(20):
            with contextlib.suppress(OSError, http.client.HTTPException):
                if session.respond(self.url, id, answer).status < 500:
                    return
            time.sleep(PAUSE_SECONDS)
        raise Lost("a broken connection: no replica received the answer")

    def parked(self, chosen, at):
        """A modern client whose server asks it."""
        client = Modern(token=self.tokens[at], capabilities=ELICITATION)
        while True:
            id = self.new_id("parked", at)

            def call():
                more = {}
                for _ in range(3):
                    reply = client.call(self.url, ASK, {"id": id, "rounds": 2}, **more)
                    if reply.failure or reply.result["resultType"] != "input_required":
                        return check_answers(reply, id)
                    questions = reply.result["inputRequests"].items()
                    answers = {key: accept(request["params"]["message"]) for key, request in questions}
                    more = {"requestState": reply.result["requestState"], "inputResponses": answers}
                raise AssertionError("more questions than rounds")

            self.attempt("parked", call, id, 3 * LONGEST_SECONDS)
            yield

    def streaming(self, chosen, at):
        """A legacy client that hears of progress, and resumes a stream that ends early."""
        session = self.session(at)
        while session:

            def call():
                params = {"name": WAIT, "arguments": {"seconds": 1}, "_meta": {"progressToken": at}}
                return content(of_load_balancer(self.finish(session, *session.start(self.url, "tools/call", params))))

            self.attempt("streaming", call)
            yield

    def finish(self, session, id, stream, on_request=None):
        """Reads the response of a call. Resumes its stream if it ends early."""
        for _ in range(5):
            try:
                reply = stream.reply(id, on_request)
                if reply.message or not stream.is_events:
                    return reply
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException):
                if not stream.is_events:
                    raise
            if not stream.last_event_id:
                raise Lost("a broken connection: the stream ended before its first event")
            stream = session.listen(self.url, stream.last_event_id)
        raise Lost("a broken connection: the stream ended again and again")

    def listening(self, chosen, at):
        """A legacy client with a standing stream, which it closes and opens again."""
        session = self.session(at)
        while session:

            def call():
                stream = session.listen(self.url, seconds=2)
                with contextlib.closing(stream):
                    if stream.status != 200:
                        raise Refused(f"status {stream.status}: {stream.response.read()[:300]!r}", None)
                    # Without an event, reading times out.
                    with contextlib.suppress(OSError, http.client.HTTPException):
                        list(stream.messages())
                return True

            self.attempt("listening", call)
            yield


def work(chosen, id):
    return {"id": id, "seconds": round(chosen.uniform(0, 0.3), 3)}


def accept(message):
    return {"action": "accept", "content": {"answer": f"answer to {message}"}}


def allowed(message):
    """Returns the kind of an error that a client may see, or `None`."""
    return next((kind for kind, part in ALLOWED.items() if part in message), None)


def of_load_balancer(reply):
    """Raises an error for a response that nginx made."""
    if reply.status in (502, 504) and "nginx" in reply.text:
        raise Lost("the load balancer has lost the replica")
    return reply


def check_work(reply, id):
    seen = content(of_load_balancer(reply))
    assert seen["id"] == id, f"the answer of {seen}"
    return seen


def check_list(reply):
    names = {tool["name"] for tool in of_load_balancer(reply).result["tools"]}
    assert {WORK, ASK, WAIT} <= names, f"the list is {names}"
    return names


def check_deleted(reply):
    if of_load_balancer(reply).status != 204:
        raise Refused(f"status {reply.status}: {reply.failure}", None)
    return True


def check_executed(reply, id):
    if of_load_balancer(reply).status != 200:
        raise Refused(f"status {reply.status}: {reply.text[:500]}", None)
    seen = reply.message["result"]
    assert seen["id"] == id, f"the answer of {seen}"
    return seen


def check_answers(reply, id):
    seen = content(of_load_balancer(reply))
    expected = [f"answer to {id} {number}" for number in (1, 2)]
    assert (seen["id"], seen["answers"]) == (id, expected), f"the answers of {json.dumps(seen)}"
    return seen
