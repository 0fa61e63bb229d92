"""An API with every parameter style, body type and auth scheme. It echoes its requests. Features that FastAPI cannot express
are added to the document by hand."""

import base64
from typing import Annotated

from fastapi import Body, Cookie, Depends, FastAPI, File, Form, Header, HTTPException, Query, Request, Response, Security, UploadFile
from fastapi.security import APIKeyCookie, APIKeyHeader, APIKeyQuery, HTTPBasic, HTTPBasicCredentials, HTTPBearer, OpenIdConnect
from fastapi.security import OAuth2
from pydantic import BaseModel

app = FastAPI(title="Every style", version="1.0.0", docs_url=None, redoc_url=None)

STRINGS = {"type": "array", "items": {"type": "string"}}
OBJECT = {"type": "object", "properties": {"R": {"type": "integer"}, "G": {"type": "integer"}}, "additionalProperties": True}
ANY = {}


def parameter(name, place, schema=None, **more):
    schema = {} if "content" in more else {"schema": schema if schema is not None else STRINGS}
    return {"name": name, "in": place, "required": place == "path", **schema, **more}


def documented(method, path, *parameters, body=None, id=None, responses=None):
    """Adds an operation with a handwritten description."""
    extra = {"parameters": list(parameters)}
    if body:
        extra["requestBody"] = {"required": True, "content": body}

    async def echo(request: Request):
        return {"path": request.url.path, "query": request.url.query, "size": len(await request.body())}

    app.add_api_route(path, echo, methods=[method], operation_id=id, openapi_extra=extra, responses=responses or {})


for style in ("simple", "label", "matrix"):
    for explode in (False, True):
        for kind, schema in (("array", STRINGS), ("object", OBJECT), ("string", {"type": "string"})):
            word = "explode" if explode else "flat"
            documented(
                "GET", f"/path/{style}/{word}/{kind}/{{color}}/end",
                parameter("color", "path", schema, style=style, explode=explode), id=f"path_{style}_{word}_{kind}",
            )  # fmt: skip

for style, explode in (
    ("form", False), ("form", True), ("spaceDelimited", False), ("pipeDelimited", False), ("spaceDelimited", True),
    ("pipeDelimited", True), ("deepObject", True),
):  # fmt: skip
    for kind, schema in (("array", STRINGS), ("object", OBJECT)):
        if (style == "deepObject" and kind == "array") or (explode and style.endswith("Delimited") and kind == "object"):
            continue
        word = "explode" if explode else "flat"
        documented(
            "GET", f"/query/{style}/{word}/{kind}", parameter("color", "query", schema, style=style, explode=explode),
            id=f"query_{style}_{word}_{kind}",
        )  # fmt: skip

documented("GET", "/query/default", parameter("color", "query"), id="query_default")
documented("GET", "/query/piped-default", parameter("color", "query", style="pipeDelimited"), id="query_piped_default")
documented("GET", "/query/reserved", parameter("q", "query", {"type": "string"}, allowReserved=True), id="query_reserved")
documented("GET", "/query/json", parameter("filter", "query", content={"application/json": {"schema": OBJECT}}), id="query_json")
documented(
    "GET", "/query/scalars", parameter("n", "query", {"type": "number"}), parameter("i", "query", {"type": "integer"}),
    parameter("b", "query", {"type": "boolean"}), parameter("s", "query", {"type": "string"}),
    parameter("z", "query", {"type": ["string", "null"]}), id="query_scalars",
)  # fmt: skip
documented("GET", "/header/flat", parameter("X-Color", "header"), id="header_array")
documented("GET", "/header/object", parameter("X-Color", "header", OBJECT, explode=True), id="header_object")
documented("GET", "/header/json", parameter("X-Color", "header", content={"application/json": {"schema": OBJECT}}), id="header_json")
documented("GET", "/cookie/scalar", parameter("session", "cookie", {"type": "string"}), id="cookie_scalar")
documented("GET", "/cookie/array", parameter("tags", "cookie", explode=False), id="cookie_array")
documented("HEAD", "/heads", parameter("q", "query", {"type": "string"}), id="heads")
documented("OPTIONS", "/options", id="options_of")
documented(
    "POST", "/clash/{id}", parameter("id", "path", {"type": "integer"}), parameter("name", "query", {"type": "string"}),
    body={"application/json": {"schema": {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}}},
    id="clash",
)  # fmt: skip
documented("POST", "/body/array", body={"application/json": {"schema": {"type": "array", "items": ANY}}}, id="body_array")
documented("POST", "/body/text", body={"text/plain": {"schema": {"type": "string"}}}, id="body_text")
documented("PUT", "/body/xml", body={"application/xml": {"schema": {"type": "string"}}}, id="body_xml")
documented("PUT", "/body/bytes", body={"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}, id="body_bytes")
documented("PATCH", "/body/merge", body={"application/merge-patch+json": {"schema": OBJECT}}, id="body_merge")
documented(
    "POST", "/body/form-styles",
    body={
        "application/x-www-form-urlencoded": {
            "schema": {"type": "object", "properties": {"list": STRINGS, "piped": STRINGS, "deep": OBJECT, "json": OBJECT}},
            "encoding": {
                "piped": {"style": "pipeDelimited", "explode": False}, "deep": {"style": "deepObject", "explode": True},
                "json": {"contentType": "application/json"},
            },
        }
    },
    id="body_form_styles",
)  # fmt: skip
documented(
    "POST", "/body/parts",
    body={
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {
                    "title": {"type": "string"}, "meta": OBJECT, "tags": STRINGS,
                    "photo": {"type": "string", "format": "binary"},
                    "more": {"type": "array", "items": {"type": "string", "format": "binary"}},
                },
            },
            "encoding": {"photo": {"contentType": "image/png"}},
        }
    },
    id="body_parts",
)  # fmt: skip


class Item(BaseModel):
    name: str
    price: float
    tags: list[str] = []


@app.post("/typed/items/{shelf}", operation_id="typed_item")
async def typed_item(shelf: int, item: Item, dry: bool = False) -> Item:
    return item


@app.get("/typed/search", operation_id="typed_search")
async def typed_search(
    q: Annotated[list[str], Query()], x_trace: Annotated[str | None, Header()] = None, seen: Annotated[str | None, Cookie()] = None
) -> list[str]:
    return [*q, x_trace or "", seen or ""]


@app.post("/typed/form", operation_id="typed_form")
async def typed_form(name: Annotated[str, Form()], age: Annotated[int, Form()]) -> dict:
    return {"name": name, "age": age}


@app.post("/typed/upload", operation_id="typed_upload")
async def typed_upload(file: UploadFile, note: Annotated[str, Form()] = "") -> dict:
    return {"filename": file.filename, "type": file.content_type, "size": len(await file.read()), "note": note}


@app.post("/typed/uploads", operation_id="typed_uploads")
async def typed_uploads(files: Annotated[list[UploadFile], File()]) -> int:
    return len(files)


@app.post("/typed/number", operation_id="typed_number")
async def typed_number(number: Annotated[int, Body()]) -> int:
    return number


TOKENS = {}


class ClientCredentials(OAuth2):
    def __init__(self):
        flow = {"clientCredentials": {"tokenUrl": "/token", "scopes": {"read": "look", "write": "change"}}}
        super().__init__(flows=flow, scheme_name="oauth")


@app.post("/token", include_in_schema=False)
async def token(request: Request):
    who = base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode()
    if who != "the-client:the-secret":
        raise HTTPException(401, {"error": "invalid_client"})
    form = await request.form()
    made = f"token-{len(TOKENS)}"
    TOKENS[made] = form.get("scope", "")
    return {"access_token": made, "token_type": "bearer", "expires_in": 3600}


def secured(path, dependency, check):
    @app.get(path, operation_id=path.strip("/").replace("/", "_").replace("-", "_"), dependencies=[])
    async def guarded(response: Response, given=dependency):
        if not check(given):
            raise HTTPException(401, "unauthenticated", {"WWW-Authenticate": "Bearer"})
        return {"ok": True}


secured("/secure/header", Security(APIKeyHeader(name="X-Key", scheme_name="key_header")), lambda key: key == "k h")
secured("/secure/query", Security(APIKeyQuery(name="key", scheme_name="key_query")), lambda key: key == "k&q")
secured("/secure/cookie", Security(APIKeyCookie(name="key", scheme_name="key_cookie")), lambda key: key == "a+b/c==")
secured("/secure/bearer", Depends(HTTPBearer(scheme_name="bearer")), lambda given: given.credentials == "b-token")
secured(
    "/secure/basic", Depends(HTTPBasic(scheme_name="basic")),
    lambda given: isinstance(given, HTTPBasicCredentials) and (given.username, given.password) == ("ann", "p:w"),
)  # fmt: skip
secured("/secure/oidc", Security(OpenIdConnect(openIdConnectUrl="/oidc", scheme_name="oidc")), lambda given: given == "Bearer o-token")
OAUTH = ClientCredentials()
secured("/secure/oauth-read", Security(OAUTH, scopes=["read"]), lambda given: TOKENS.get(given.removeprefix("Bearer ")) == "read")
secured("/secure/oauth-write", Security(OAUTH, scopes=["write"]), lambda given: TOKENS.get(given.removeprefix("Bearer ")) == "write")
secured("/secure/missing", Security(APIKeyHeader(name="X-Missing", scheme_name="missing")), lambda key: True)

FAILURES = {"failing": (404, {"X-Request-Id": "r-1"}, "no such thing"), "moved": (302, {"Location": "http://127.0.0.1:1/x"}, "")}
for name, (status, headers, text) in FAILURES.items():

    def answer(status=status, headers=headers, text=text):
        return Response(text, status, headers)

    app.add_api_route(f"/answers/{name}", answer, methods=["GET"], operation_id=name, response_class=Response)


@app.get("/answers/picture", operation_id="picture", response_class=Response)
def picture():
    return Response(b"\x89PNG", 200, {"Content-Type": "image/png"})


@app.delete("/answers/nothing", operation_id="nothing", status_code=204)
def nothing():
    return None


@app.get("/answers/redirected", operation_id="redirected", response_class=Response)
def redirected():
    return Response("", 307, {"Location": "/answers/here?x=1"})


@app.get("/answers/here", include_in_schema=False)
def here():
    return {"here": True}


BUSY = {"left": 1}


@app.get("/answers/busy", operation_id="busy", response_class=Response)
def busy():
    if BUSY["left"]:
        BUSY["left"] -= 1
        return Response("later", 503, {"Retry-After": "1"})
    BUSY["left"] = 1
    return Response("done", 200, {"Content-Type": "text/plain"})
