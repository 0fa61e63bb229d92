"""Calls every tool of every document in tests/data/openapi, served by Prism, through both official SDKs, which validate results
against output schemas and reject invalid ones.

Each successful response of a document is requested once: a proxy in front of Prism adds `Prefer: code=…`. The proxy also caches
the responses of Prism, which is slow, for the second SDK."""

import http.client
import json
import re
import subprocess
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data/openapi"
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
# Documents without operations.
NO_OPERATIONS = {"learn-v3.1-webhook.json"}
# Prism cannot read documents with dangling or external references, or version 3.2. It gets a copy in which such references
# allow anything and the version is 3.1. The yard reads the original documents.
PATCHED = {"own-features-2.0.json", "own-features-3.1.json", "own-features-3.2.yaml"}
# Operations that Prism cannot serve, with the reason. The yard must return an error for these tools.
UNANSWERED = {
    "learn-v3-2-tags": {  # the document has no responses
        "get_flights", "get_flights_international", "get_flights_domestic", "get_flights_delayed",
    },
    "own-features-2-0": {"send_file"},  # Prism cannot generate an image
    "own-features-3-0": {
        # Prism hangs if a path contains an object in the style `label`.
        "get_thing", "put_things_by_id_matrix_by_label", "trace_things_by_id_matrix_by_label",
        "upload_bytes",  # Prism cannot serialize an object as text
    },
    "own-features-3-2": {
        "search", "copy_search", "purge_search",  # methods that Prism does not know
        "search_by_string",  # Prism cannot generate JSON lines
    },
}  # fmt: skip
# Timeout in seconds, for a busy machine.
PATIENCE = 600
# Seconds after which Prism is considered to hang.
SILENCE = 20
# Methods that Prism does not know.
UNKNOWN_METHODS = ("QUERY", "COPY", "PURGE", "LINK", "UNLINK")


def at(document, reference):
    """Returns the target of a reference inside the document. Raises a KeyError if it has none."""
    if not reference.startswith("#"):
        raise KeyError(reference)
    node = document
    for step in filter(None, reference.removeprefix("#").split("/")):
        step = step.replace("~1", "/").replace("~0", "~")
        node = node[int(step)] if isinstance(node, list) else node[step]
    return node


def patched(document):
    """Returns a copy in which unresolvable references allow anything."""

    def copy(node):
        if isinstance(node, list):
            return [copy(below) for below in node]
        if not isinstance(node, dict):
            return node
        if isinstance(node.get("$ref"), str):
            try:
                at(document, node["$ref"])
            except (KeyError, IndexError, ValueError, TypeError):
                return {}
        return {key: copy(below) for key, below in node.items() if key not in ("$id", "$dynamicRef", "$self")}

    whole = copy(document)
    if str(whole.get("openapi", "")).startswith("3.2"):
        whole["openapi"] = "3.1.0"
    return whole


def plain(document, node):
    for _ in range(64):
        if not isinstance(node, dict) or "$ref" not in node:
            return node
        node = at(document, node["$ref"])
    return {}


def good_codes(document, path, method):
    """Returns the status codes of the successful responses of an operation."""
    item = plain(document, document["paths"][path])
    responses = plain(document, item[method]).get("responses", {})
    return sorted(str(code) for code in responses if re.fullmatch("2[0-9][0-9]", str(code)))


class PreferProxy:
    """A proxy in front of Prism that requests the responses of each operation in turn."""

    def __init__(self, url, document):
        self.port = int(url.rsplit(":", 1)[1])
        self.turns, self.kept, self.lock = {}, {}, threading.Lock()
        self.operations = []
        for path, item in document["paths"].items():
            pattern = re.compile("/?" + re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(path.strip("/"))) + "/?")
            for method in METHODS:
                if isinstance(plain(document, item), dict) and method in plain(document, item):
                    codes = good_codes(document, path, method)
                    # If several operations match, the one with the fewest parameters wins.
                    self.operations.append((path.count("{"), method.upper(), pattern, codes))
        self.operations.sort(key=lambda operation: operation[0])
        preferring = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                code = preferring.code(self.command, self.path)
                key = (self.command, self.path, code)
                try:
                    kept = preferring.kept.get(key) or preferring.ask(self.command, self.path, self.headers, body, code)
                except OSError as error:
                    kept = 502, [("Content-Type", "text/plain")], f"Prism does not respond: {error}".encode()
                preferring.kept[key] = kept
                status, headers, text = kept
                self.send_response(status)
                for name, value in headers:
                    if name.lower() not in ("connection", "transfer-encoding", "content-length", "keep-alive"):
                        self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)

            def log_message(self, *_):
                pass

        for method in METHODS:
            setattr(Handler, f"do_{method.upper()}", Handler.handle_any)
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def ask(self, method, target, headers, body, code):
        """Returns the status, headers and body of Prism's response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SILENCE)
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if code:
            connection.putheader("Prefer", f"code={code}")
        connection.endheaders(body or None)
        answer = connection.getresponse()
        found = answer.status, answer.getheaders(), answer.read()
        connection.close()
        return found

    def code(self, method, target):
        path = target.split("?")[0]
        for number, (_, known, pattern, codes) in enumerate(self.operations):
            if known == method and codes and pattern.fullmatch(path):
                with self.lock:
                    turn = self.turns.get(number, 0)
                    self.turns[number] = turn + 1
                return codes[turn % len(codes)]
        return None


def serve(cache, home, read):
    """Starts Prism for every document. Returns a map from name to document and URL, and the reasons for those it cannot serve."""
    files = sorted(file for file in DATA.iterdir() if file.suffix in (".json", ".yaml"))
    documents = {file.name: read(file) for file in files if file.name not in NO_OPERATIONS}
    given = {}
    for name, document in documents.items():
        given[name] = DATA / name
        if name in PATCHED:
            documents[name] = patched(document)
            given[name] = home / f"{name}.patched.json"
            given[name].write_text(json.dumps(documents[name]))
    # The largest document takes as long as all the others together.
    largest = max(given.values(), key=lambda path: path.stat().st_size)
    shares = [[largest], [path for path in given.values() if path != largest]]
    start = lambda share: subprocess.Popen(["node", HERE / "prism.mjs", cache, *share], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines = [process.stdout.readline() for process, share in [(start(share), share) for share in shares] for _ in share]
    served, refused = {}, {}
    names = {str(path): name for name, path in given.items()}
    for line in map(json.loads, lines):
        name = names[line["document"]]
        if "url" in line:
            served[name] = (documents[name], PreferProxy(line["url"], documents[name]).url)
        else:
            refused[name] = line["error"]
    return served, refused


def schemes(document):
    """Yields configuration lines with credentials for each security scheme of a document."""
    found = document.get("components", {}).get("securitySchemes") or document.get("securityDefinitions") or {}
    for name, scheme in found.items():
        scheme = plain(document, scheme)
        basic = scheme.get("type") == "basic" or str(scheme.get("scheme", "")).lower() == "basic"
        value = '{ username = "ann", password = "pw" }' if basic else '{ token = "some-token" }'
        yield f"auth.{json.dumps(name)} = {value}\n"


def source_name(name):
    return re.sub("[^a-z0-9]+", "-", name.rsplit(".", 1)[0].lower())


def config(served):
    text = "[limits]\ncalls_per_source = 0\nrate = false\n"
    for name, (document, url) in served.items():
        text += f"[servers.{source_name(name)}]\nopenapi = {json.dumps(str(DATA / name))}\nbase_url = {json.dumps(url)}\n"
        text += 'missing_auth = "send"\n' + "".join(schemes(document))
    return text


# Candidates for strings with a pattern or a format.
TEXTS = ("text", "1", "a", "A", "1a", "abc123", "2026-01-02", "aGVsbG8=", "#aabbcc", "a-b", "/a", "10.0.0.1/32", "1234567890")
FORMATS = {
    "date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "uri": "https://example.com/a", "email": "a@example.com",
    "uuid": "00000000-0000-4000-8000-000000000000", "ipv4": "127.0.0.1", "byte": "aGVsbG8=", "nonce": "nonce-1",
}  # fmt: skip


def example(schema, root, depth=0):
    """Returns a small value that a Draft 07 schema allows, as far as simple rules can find one."""
    schema = plain(root, schema)
    if schema is True or not schema:
        return "text"
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return next((value for value in schema["enum"] if value is not None), None)
    parts = [schema, *(plain(root, part) for part in schema.get("allOf", []))]
    schema = {key: value for part in reversed(parts) for key, value in part.items()}
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            choices = [choice for choice in schema[key] if plain(root, choice).get("type") != "null"] or schema[key]
            simple = [choice for choice in choices if plain(root, choice).get("type") in ("string", "integer", "boolean")]
            chosen = (simple or choices)[0]
            if key == "oneOf" or schema.get("type") != "object":
                value = example(chosen, root, depth + 1)
                return value | members(parts, root, depth) if isinstance(value, dict) else value
            parts.append(plain(root, chosen))
    kinds = next((part["type"] for part in parts if isinstance(part, dict) and part.get("type")), None)
    kind = next((kind for kind in kinds if kind != "null"), "null") if isinstance(kinds, list) else kinds
    if kind == "null":
        return None
    if kind in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1 if "exclusiveMinimum" in schema else None)
        value = least if least is not None else min(1, schema.get("maximum", 1))
        step = schema.get("multipleOf")
        return value if not step or value % step == 0 else step * (value // step + 1)
    if kind == "boolean":
        return True
    if kind == "array":
        items = schema.get("items", {})
        count = schema.get("minItems", 0) if depth > 3 else max(1, schema.get("minItems", 0))
        if isinstance(items, list):
            return [example(item, root, depth + 1) for item in items]
        if schema.get("maxItems") == 0:
            return []
        values = [example(items, root, depth + 1) for _ in range(count)]
        if schema.get("uniqueItems") and count > 1:
            return [str(n + 1) if isinstance(value, str) else n for n, value in enumerate(values)]
        return values
    if kind == "object" or any("properties" in part for part in parts if isinstance(part, dict)):
        return members(parts, root, depth)
    texts = [FORMATS[schema["format"]]] if schema.get("format") in FORMATS else []
    texts += [text for text in [*schema.get("examples", []), schema.get("default")] if isinstance(text, str)]
    texts += TEXTS
    least, most = schema.get("minLength", 0), schema.get("maxLength", 1 << 30)
    texts += ["x" * least, "1" * least]
    pattern = schema.get("pattern")
    fits = lambda text: least <= len(text) <= most and (not pattern or re.search(pattern, text))
    return next(filter(fits, texts), "text")


def members(parts, root, depth):
    """Returns the required members of an object."""
    found = {}
    properties = {}
    for part in parts:
        if isinstance(part, dict):
            properties |= part.get("properties", {})
    for part in parts:
        for name in part.get("required", []) if isinstance(part, dict) else []:
            found[name] = example(properties.get(name, {}), root, depth + 1)
    # An empty object can serialize to nothing in a path or a query.
    if depth == 1 and not found and properties:
        name = next(iter(properties))
        found[name] = example(properties[name], root, depth + 1)
    return found


def calls(served, tools_of):
    """Returns the calls per source: one for each successful response of each tool."""
    plan = {}
    for name, (document, _) in served.items():
        source = source_name(name)
        plan[source] = []
        for definition in tools_of(source):
            method, path = definition["_meta"]["method"], definition["_meta"]["path"]
            arguments = example(definition["inputSchema"], definition["inputSchema"])
            codes = good_codes(document, path, method.lower()) if method not in UNKNOWN_METHODS else []
            call = {"name": definition["name"], "arguments": arguments, "times": max(1, len(codes))}
            plan[source].append(call)
    return plan


def through(client, yard, plan):
    """Makes all calls through one SDK and returns the results."""
    order = {"url": yard.url, "plan": plan}
    run = subprocess.run(client, input=json.dumps(order), capture_output=True, text=True, timeout=PATIENCE)
    if run.returncode != 0:
        raise RuntimeError(f"{client[-1]} exited with code {run.returncode}: {run.stderr[-2000:]}")
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


def check(yard, served, refused, cache, tally, tools_of):
    """Checks the results of both SDKs."""
    tally.report(not refused, "documents: Prism serves every document that has operations", refused)
    plan = calls(served, tools_of)
    total = sum(call["times"] for calls in plan.values() for call in calls)
    clients = {
        "Python SDK": [cache / "venv/bin/python", HERE / "documents_python.py"],
        "TypeScript SDK": ["node", HERE / "documents_typescript.mjs", cache],
    }
    for sdk, client in clients.items():
        results = through(client, yard, plan)
        tally.report(len(results) == total, f"documents: {sdk}: every tool is called once per successful response", f"{len(results)} of {total}")
        statuses, unanswered = {}, {}
        for result in results:
            what = f"documents: {sdk}: {result['source']} {result['name']}"
            tally.report("thrown" not in result, f"{what}: the client accepts the result", result.get("thrown"))
            status = result.get("status")
            statuses.setdefault(result["source"], []).append(status)
            if (status or 0) >= 500:
                unanswered.setdefault(result["source"], set()).add(result["name"])
            honest = not result.get("isError") or (status or 0) >= 400 or result["text"].startswith("the call was made: ")
            tally.report(honest, f"{what}: an error has a reason", result)
            # A second JSON Schema implementation confirms the reported violations.
            tally.report(result.get("breaks", True), f"{what}: a reported schema violation is real", result)
        for source, found in statuses.items():
            found = [status for status in found if (status or 0) < 500]
            good = sum(1 for status in found if status and status < 300)
            tally.report(good * 10 >= len(found) * 9, f"documents: {sdk}: {source}: at least 90 % of the requests succeed", f"{good} of {len(found)}")
        tally.report(unanswered == UNANSWERED, f"documents: {sdk}: Prism serves all operations except the known ones", unanswered)
        broken = sum(1 for result in results if result.get("isError") and (result.get("status") or 500) < 300)
        good = sum(1 for result in results if not result.get("isError"))
        print(f"# {sdk}: {len(results)} calls of {sum(map(len, plan.values()))} tools; {good} valid results, "
              f"{broken} responses reported as schema violations", flush=True)  # fmt: skip
