"""The requests that the test API must receive, written by hand: tool, arguments, and the described request.

`headers` are compared by name; a name with None must not be there. `body` is text, bytes, or for parts a list of
(name, filename, content type, bytes)."""

COLORS, POINT = ["blue", "bl/ck", "brown é"], {"R": 100, "G": 200}
# Most servers treat an encoded slash in a path like a slash.
IN_PATH = ["blue", "bl&ck", "brown é"]
E = "brown%20%C3%A9"


def case(tool, arguments, method, target, headers=None, body=b"", then=None, status=200):
    body = body.encode() if isinstance(body, str) else body
    return {
        "tool": tool, "arguments": arguments, "method": method, "target": target, "headers": headers or {}, "body": body,
        "then": then or [], "status": status,
    }  # fmt: skip


def paths():
    written = {
        ("simple", "flat"): (f"blue,bl%26ck,{E}", "R,100,G,200", "a%20b"),
        ("simple", "explode"): (f"blue,bl%26ck,{E}", "R=100,G=200", "a%20b"),
        ("label", "flat"): (f".blue,bl%26ck,{E}", ".R,100,G,200", ".a%20b"),
        ("label", "explode"): (f".blue.bl%26ck.{E}", ".R=100.G=200", ".a%20b"),
        ("matrix", "flat"): (f";color=blue,bl%26ck,{E}", ";color=R,100,G,200", ";color=a%20b"),
        ("matrix", "explode"): (f";color=blue;color=bl%26ck;color={E}", ";R=100;G=200", ";color=a%20b"),
    }
    for (style, word), values in written.items():
        for kind, given, value in zip(("array", "object", "string"), (IN_PATH, POINT, "a b"), values):
            yield case(f"path_{style}_{word}_{kind}", {"color": given}, "GET", f"/path/{style}/{word}/{kind}/{value}/end")


def queries():
    repeated = f"color=blue&color=bl%2Fck&color={E}"
    written = {
        ("form", "flat", "array"): f"color=blue,bl%2Fck,{E}",
        ("form", "flat", "object"): "color=R,100,G,200",
        ("form", "explode", "array"): repeated,
        ("form", "explode", "object"): "R=100&G=200",
        ("spaceDelimited", "flat", "array"): f"color=blue%20bl%2Fck%20{E}",
        ("spaceDelimited", "flat", "object"): "color=R%20100%20G%20200",
        ("spaceDelimited", "explode", "array"): repeated,
        ("pipeDelimited", "flat", "array"): f"color=blue%7Cbl%2Fck%7C{E}",
        ("pipeDelimited", "flat", "object"): "color=R%7C100%7CG%7C200",
        ("pipeDelimited", "explode", "array"): repeated,
        ("deepObject", "explode", "object"): "color%5BR%5D=100&color%5BG%5D=200",
    }
    snake = {"form": "form", "spaceDelimited": "space_delimited", "pipeDelimited": "pipe_delimited", "deepObject": "deep_object"}
    for (style, word, kind), query in written.items():
        given = COLORS if kind == "array" else POINT
        yield case(f"query_{snake[style]}_{word}_{kind}", {"color": given}, "GET", f"/query/{style}/{word}/{kind}?{query}")
    yield case("query_default", {"color": COLORS}, "GET", f"/query/default?{repeated}")
    yield case("query_default", {"color": []}, "GET", "/query/default")
    yield case("query_default", {}, "GET", "/query/default")
    yield case("query_piped_default", {"color": ["a", "b"]}, "GET", "/query/piped-default?color=a%7Cb")
    yield case("query_reserved", {"q": "a/b?c=d&e#f g"}, "GET", "/query/reserved?q=a/b?c=d%26e%23f%20g")
    yield case("query_json", {"filter": {"R": 1, "x": ["é"]}}, "GET", "/query/json?filter=%7B%22R%22%3A1%2C%22x%22%3A%5B%22%C3%A9%22%5D%7D")
    yield case("query_scalars", {"n": 1.5, "i": 12345678901234567890123, "b": False, "s": "", "z": None}, "GET",
               "/query/scalars?n=1.5&i=12345678901234567890123&b=false&s=")  # fmt: skip


def places():
    yield case("header_array", {"X-Color": ["a", "b c"]}, "GET", "/header/flat", {"x-color": "a,b c"})
    yield case("header_object", {"X-Color": POINT}, "GET", "/header/object", {"x-color": "R=100,G=200"})
    yield case("header_json", {"X-Color": POINT}, "GET", "/header/json", {"x-color": '{"R":100,"G":200}'})
    yield case("header_array", {}, "GET", "/header/flat", {"x-color": None, "cookie": None, "authorization": None})
    yield case("cookie_scalar", {"session": "a;b=c é"}, "GET", "/cookie/scalar", {"cookie": "session=a%3Bb%3Dc%20%C3%A9"})
    yield case("cookie_array", {"tags": ["a", "b"]}, "GET", "/cookie/array", {"cookie": "tags=a,b"})
    yield case("heads", {"q": "x"}, "HEAD", "/heads?q=x")
    yield case("options_of", {}, "OPTIONS", "/options")


def bodies():
    json, form = {"content-type": "application/json"}, {"content-type": "application/x-www-form-urlencoded"}
    yield case("clash", {"id": 1, "name": "q", "body": {"id": 2, "name": "b"}}, "POST", "/clash/1?name=q", json, '{"id":2,"name":"b"}')
    yield case("body_array", {"body": [1, "é", None, {"a": True}]}, "POST", "/body/array", json, '[1,"é",null,{"a":true}]')
    yield case("body_text", {"body": "line 1\nä"}, "POST", "/body/text", {"content-type": "text/plain"}, "line 1\nä")
    yield case("body_xml", {"body": "<a>ä</a>"}, "PUT", "/body/xml", {"content-type": "application/xml"}, "<a>ä</a>")
    yield case("body_bytes", {"body": "AP+A"}, "PUT", "/body/bytes", {"content-type": "application/octet-stream"}, b"\x00\xff\x80")
    yield case("body_merge", {"body": {"R": 1, "G": 2}}, "PATCH", "/body/merge", {"content-type": "application/merge-patch+json"}, '{"R":1,"G":2}')
    yield case("body_form_styles", {"list": ["a b", "c"], "piped": ["x", "y"], "deep": POINT, "json": POINT}, "POST", "/body/form-styles",
               form, "list=a%20b&list=c&piped=x%7Cy&deep%5BR%5D=100&deep%5BG%5D=200&json=%7B%22R%22%3A100%2C%22G%22%3A200%7D")  # fmt: skip
    yield case(
        "body_parts",
        {
            "title": "Hi é", "meta": POINT, "tags": ["a", "b"], "photo": {"data": "iVBO", "filename": "a\"b.png"},
            "more": ["data:text/plain;base64,aGk=", {"data": "AAE=", "filename": "x.bin", "content_type": "application/x"}],
        },
        "POST", "/body/parts", {},
        [
            ("title", None, None, "Hi é".encode()), ("meta", None, "application/json", b'{"R":100,"G":200}'),
            ("tags", None, None, b"a"), ("tags", None, None, b"b"), ("photo", "a%22b.png", "image/png", b"\x89PN"),
            ("more", "more", "text/plain", b"hi"), ("more", "x.bin", "application/x", b"\x00\x01"),
        ],
    )  # fmt: skip
    yield case("typed_item", {"shelf": 7, "dry": True, "name": "n", "price": 1.5, "tags": ["x"]}, "POST", "/typed/items/7?dry=true",
               json, '{"name":"n","price":1.5,"tags":["x"]}')  # fmt: skip
    yield case("typed_search", {"q": ["a", "b"], "x-trace": "t", "seen": "s"}, "GET", "/typed/search?q=a&q=b", {"x-trace": "t", "cookie": "seen=s"})
    yield case("typed_form", {"name": "A & B", "age": 3}, "POST", "/typed/form", form, "name=A%20%26%20B&age=3")
    yield case("typed_upload", {"file": {"data": "aGVsbG8=", "filename": "h.txt", "content_type": "text/plain"}, "note": "n"}, "POST",
               "/typed/upload", {}, [("file", "h.txt", "text/plain", b"hello"), ("note", None, None, b"n")])  # fmt: skip
    octets = "application/octet-stream"
    yield case("typed_uploads", {"files": ["aGk=", "aG8="]}, "POST", "/typed/uploads", {},
               [("files", "files", octets, b"hi"), ("files", "files", octets, b"ho")])  # fmt: skip
    yield case("typed_number", {"body": 12345678901234567890}, "POST", "/typed/number", json, "12345678901234567890")


def credentials():
    no_auth = {"authorization": None, "x-key": None, "cookie": None}
    yield case("secure_header", {}, "GET", "/secure/header", {**no_auth, "x-key": "k h"})
    yield case("secure_query", {}, "GET", "/secure/query?key=k%26q", no_auth)
    yield case("secure_cookie", {}, "GET", "/secure/cookie", {**no_auth, "cookie": "key=a+b/c=="})
    yield case("secure_bearer", {}, "GET", "/secure/bearer", {**no_auth, "authorization": "Bearer b-token"})
    yield case("secure_basic", {}, "GET", "/secure/basic", {**no_auth, "authorization": "Basic YW5uOnA6dw=="})
    yield case("secure_oidc", {}, "GET", "/secure/oidc", {**no_auth, "authorization": "Bearer o-token"})


def answers():
    yield case("failing", {}, "GET", "/answers/failing", status=404)
    yield case("moved", {}, "GET", "/answers/moved", status=302)
    yield case("picture", {}, "GET", "/answers/picture")
    yield case("nothing", {}, "DELETE", "/answers/nothing", status=204)
    yield case("redirected", {}, "GET", "/answers/redirected", then=["GET /answers/here?x=1"])
    yield case("busy", {}, "GET", "/answers/busy", then=["GET /answers/busy"])


CASES = [*paths(), *queries(), *places(), *bodies(), *credentials(), *answers()]
