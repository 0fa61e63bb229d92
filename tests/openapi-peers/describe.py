"""Derives the described request for a tool's arguments from a document, independently of Toolyard. Supports only the subset of
OpenAPI that the documents of the peers use. Also generates arguments for a tool."""

import base64
import json
import re
from urllib.parse import quote


def at(document, reference):
    node = document
    for step in reference.removeprefix("#/").split("/"):
        node = node[step.replace("~1", "/").replace("~0", "~")]
    return node


def plain(document, node):
    while "$ref" in node:
        node = at(document, node["$ref"])
    return node


def made_up(schema, root, name=""):
    """Returns a value that a schema allows."""
    schema = plain(root, schema)
    if "enum" in schema:
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return made_up(schema[key][0], root, name)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "integer":
        return 200 if name == "code" else max(1, schema.get("minimum", 1))
    if kind == "number":
        return 1
    if kind == "boolean":
        return True
    if kind == "array":
        items = schema.get("items", {})
        return [made_up(items, root, name), made_up(items, root, name)]
    if kind == "object":
        properties = schema.get("properties", {"free": {"type": "string"}})
        return {key: made_up(value, root, key) for key, value in properties.items()}
    if schema.get("contentEncoding") == "base64" or schema.get("format") in ("binary", "byte"):
        return base64.b64encode(b"bytes").decode()
    if schema.get("format") == "date-time":
        return "2026-01-02T03:04:05Z"
    # Headers use only ASCII.
    return {"codes": "200", "code": "200"}.get(name, "a b/&=+" if name.startswith("If-") else "a b/ü&=+")


def text(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if isinstance(value, (bool, dict, list)) else str(value)


def encoded(value):
    return quote(text(value), safe="-._~")


def parameters(document, path, operation):
    found = {}
    for node in [*document["paths"][path].get("parameters", []), *operation.get("parameters", [])]:
        node = plain(document, node)
        found[(node["in"], node["name"])] = node
    return found.values()


def joined(parameter, value):
    """Returns the pairs of a query in the style `form`."""
    name = encoded(parameter["name"])
    if isinstance(value, dict):
        return [f"{encoded(key)}={encoded(below)}" for key, below in value.items()]
    if not isinstance(value, list):
        return [f"{name}={encoded(value)}"]
    exploded = parameter.get("explode", True) if "schema" in parameter else parameter.get("collectionFormat") == "multi"
    items = [encoded(item) for item in value]
    return [f"{name}={item}" for item in items] if exploded else [f"{name}={','.join(items)}"]


def described(document, method, path, arguments):
    """Returns the method, target, headers and body that the document describes."""
    operation = document["paths"][path][method.lower()]
    left = dict(arguments)
    target, query, headers, form = path, [], {}, {}
    for parameter in parameters(document, path, operation):
        place, name = parameter["in"], parameter["name"]
        if place == "body" or name not in left:
            continue
        value = left.pop(name)
        if place == "path":
            items = value if isinstance(value, list) else [value]
            target = target.replace("{%s}" % name, ",".join(encoded(item) for item in items))
        elif place == "query":
            query += joined(parameter, value)
        elif place == "header":
            headers[name.lower()] = text(value)
        elif place == "formData":
            form[name] = value
    # A path parameter without a description is a string.
    for name in re.findall(r"{(.*?)}", target):
        target = target.replace("{%s}" % name, encoded(left.pop(name)))
    body = b""
    content = plain(document, operation.get("requestBody", {})).get("content", {})
    if form:
        headers["content-type"] = "application/x-www-form-urlencoded"
        body = "&".join(f"{encoded(name)}={encoded(value)}" for name, value in form.items()).encode()
    elif content and left:
        # Prefers JSON.
        kind = "application/json" if "application/json" in content else next(iter(content))
        value = left["body"] if set(left) == {"body"} else left
        headers["content-type"] = kind
        body = base64.b64decode(value) if kind == "application/octet-stream" else text(value).encode()
    return {"method": method, "target": target + ("?" + "&".join(query) if query else ""), "headers": headers, "body": body}
