"""The conversation that the tester's answers are held against: the same requests, straight to another instance."""

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
    """An error of the server; the order of its keys is not the server's any more in what the tester says about it."""
    return ("refused", *sorted(error or ()))


def questions(asked):
    """What the client was asked, without what clients add. When roots are asked for is up to the server, and servers do
    it between calls too, so those do not count."""
    said = [(each["method"], each.get("params") or {}) for each in asked]
    return [(method, params.get("message"), params.get("messages")) for method, params in said if method != "roots/list"]


def conversation(case, work, era, answers):
    """Everything that the server says: what is asked, as in `visit.py` -> the answer."""
    asked = []

    def answer(method, params):
        asked.append({"method": method, "params": params})
        return answers[f"{method} url" if params.get("mode") == "url" else method]

    work.restore()
    with case.running():
        talk = Talk(case.wire(), era, Client(CAPABILITIES, answer))
        try:
            return heard(case, talk, asked)
        finally:
            talk.close()


def heard(case, talk, asked):
    about = dict(talk.about)
    info = about.get("serverInfo") or dict(about.get("_meta", ())).get(SERVER_INFO)
    said = {"server_info": info, "capabilities": about["capabilities"], "instructions": about.get("instructions")}

    def note(key, method, params):
        asked.clear()
        try:
            said[key] = steady(talk.ask(method, params))
        except Refused as error:
            said[key] = refused(error.error)

    def lists(when):
        for what, (method, key) in LISTS.items():
            try:
                said[f"{what} {when}"] = talk.all(method, key)
            except Refused:
                said[f"{what} {when}"] = []  # a server without such a list is a server with an empty one

    lists("before")
    for number, (name, arguments) in enumerate(case.calls):
        note(f"call {number} {name}", "tools/call", {"name": name, "arguments": arguments})
        said[f"questions of call {number} {name}"] = questions(asked)
    lists("after")
    for uri in [*(dict(resource)["uri"] for resource in said["resources after"]), *case.uris, NOWHERE]:
        note(f"read {uri}", "resources/read", {"uri": uri})
    for name, arguments in case.prompts.items():
        note(f"prompt {name}", "prompts/get", {"name": name, "arguments": arguments})
    return said
