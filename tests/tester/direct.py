"""The reference session: sends the same requests directly to another instance of the server."""

from cases import steady
from harness.talk import SERVER_INFO, Client, Refused, Talk

CAPABILITIES = {"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}}
LISTS = {
    "tools": ("tools/list", "tools"),
    "resources": ("resources/list", "resources"),
    "resource templates": ("resources/templates/list", "resourceTemplates"),
    "prompts": ("prompts/list", "prompts"),
}
NOWHERE = "nowhere://no/such/resource"


def refused(error):
    """Returns an error of the server with sorted keys, because the tester does not preserve their order."""
    return ("refused", *sorted(error or ()))


def questions(questions_asked):
    """Returns the questions to the client, without fields that clients add. Skips `roots/list`, which servers can send at
    any time."""
    requests = [(each["method"], each.get("params") or {}) for each in questions_asked]
    return [(method, params.get("message"), params.get("messages")) for method, params in requests if method != "roots/list"]


def conversation(case, work, era, answers):
    """Returns the responses of the server, with the same keys as in `visit.py`."""
    questions_asked = []

    def answer(method, params):
        questions_asked.append({"method": method, "params": params})
        return answers[f"{method} url" if params.get("mode") == "url" else method]

    work.restore()
    with case.running():
        talk = Talk(case.wire(), era, Client(CAPABILITIES, answer))
        try:
            return collect(case, talk, questions_asked)
        finally:
            talk.close()


def collect(case, talk, questions_asked):
    about = dict(talk.about)
    info = about.get("serverInfo") or dict(about.get("_meta", ())).get(SERVER_INFO)
    responses = {"server_info": info, "capabilities": about["capabilities"], "instructions": about.get("instructions")}

    def note(key, method, params):
        questions_asked.clear()
        try:
            responses[key] = steady(talk.ask(method, params))
        except Refused as error:
            responses[key] = refused(error.error)

    def lists(when):
        for what, (method, key) in LISTS.items():
            try:
                responses[f"{what} {when}"] = talk.all(method, key)
            except Refused:
                responses[f"{what} {when}"] = []  # a server without this list counts as one with an empty list

    lists("before")
    for number, (name, arguments) in enumerate(case.calls):
        note(f"call {number} {name}", "tools/call", {"name": name, "arguments": arguments})
        responses[f"questions of call {number} {name}"] = questions(questions_asked)
    lists("after")
    for uri in [*(dict(resource)["uri"] for resource in responses["resources after"]), *case.uris, NOWHERE]:
        note(f"read {uri}", "resources/read", {"uri": uri})
    for name, arguments in case.prompts.items():
        note(f"prompt {name}", "prompts/get", {"name": name, "arguments": arguments})
    return responses
