//! Parameters, bodies, responses, servers and security: the argument mapping of each tool.

use serde_json::{Value, json};
use toolyard_openapi::{
    Argument, ArgumentLocation, BodyEncoding, Conversion, ParameterStyle, ResultWrapping,
    SecurityRequirement, SecuritySchemeKind, ServerUrl,
};

use super::{converted, tool, warnings};

/// A document with one operation at `/{id}`.
fn document(version: &str, operation: &Value, more: &Value) -> Conversion {
    let mut whole = json!({"openapi": version, "paths": {"/things/{id}": {"post": operation}}});
    if version.starts_with('2') {
        whole["swagger"] = json!(version);
        whole.as_object_mut().unwrap().remove("openapi");
    }
    for (key, value) in more.as_object().unwrap() {
        whole[key] = value.clone();
    }
    converted(&whole.to_string())
}

/// Every argument as `property -> place wire-name style explode`.
fn table(conversion: &Conversion) -> Vec<String> {
    let line = |argument: &Argument| {
        let Argument { property, place, wire_name, style, explode, required, .. } = argument;
        let must = if *required { " required" } else { "" };
        let explode = if *explode { " explode" } else { "" };
        format!("{property} -> {place:?} {wire_name} {style:?}{explode}{must}")
    };
    conversion.operations[0].arguments.iter().map(line).collect()
}

#[test]
fn parameters_of_all_places_have_the_styles_that_they_ask_for() {
    let query = |name: &str, style: &str| json!({"name": name, "in": "query", "style": style, "schema": {"type": "array"}});
    let conversion = document(
        "3.0.3",
        &json!({"operationId": "it", "parameters": [
            {"name": "id", "in": "path", "required": true, "style": "matrix", "explode": true, "schema": {}},
            query("plain", "form"),
            query("spaces", "spaceDelimited"),
            query("pipes", "pipeDelimited"),
            {"name": "deep", "in": "query", "style": "deepObject", "explode": true, "schema": {"type": "object"}},
            {"name": "flat", "in": "query", "explode": false, "allowReserved": true, "schema": {"type": "array"}},
            {"name": "X-Trace", "in": "header", "required": true, "schema": {"type": "string"}},
            {"name": "session", "in": "cookie", "schema": {"type": "string"}},
            {"name": "filter", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
            {"name": "odd", "in": "query", "style": "label", "schema": {}},
            {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
            {"name": "Host", "in": "header", "required": true, "schema": {"type": "string"}},
            {"name": "content-length", "in": "header", "schema": {"type": "integer"}},
            {"name": "Transfer-Encoding", "in": "header", "schema": {"type": "string"}},
            {"name": "CONNECTION", "in": "header", "schema": {"type": "string"}}
        ]}),
        &json!({}),
    );
    assert_eq!(
        table(&conversion),
        [
            "id -> Path id Matrix explode required",
            "plain -> Query plain Form explode",
            "spaces -> Query spaces SpaceDelimited",
            "pipes -> Query pipes PipeDelimited",
            "deep -> Query deep DeepObject explode",
            "flat -> Query flat Form",
            "filter -> Query filter Form explode",
            "odd -> Query odd Form explode",
            "X-Trace -> Header X-Trace Simple required",
            "session -> Cookie session Form explode",
        ]
    );
    let arguments = &conversion.operations[0].arguments;
    assert!(arguments[5].allow_reserved && !arguments[1].allow_reserved);
    assert_eq!(arguments[6].content.as_deref(), Some("application/json"));
    assert_eq!(warnings(&conversion), ["unknown-style /paths/~1things~1{id}/post/parameters/9/style"]);
    assert_eq!(tool(&conversion, "it")["inputSchema"]["required"], json!(["id", "X-Trace"]));
    // Headers that HTTP itself sets are not arguments, which is reported.
    let left_out = conversion.diagnostics.iter().filter(|found| found.code == "reserved-header");
    assert_eq!(left_out.count(), 5);
}

#[test]
fn swagger_collection_formats_become_styles() {
    let list = |name: &str, format: &str| json!({"name": name, "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": format});
    let conversion = document(
        "2.0",
        &json!({"parameters": [
            {"name": "id", "in": "path", "required": true, "type": "array", "items": {"type": "integer"}},
            list("a", "csv"), list("b", "ssv"), list("c", "tsv"), list("d", "pipes"), list("e", "multi"),
            {"name": "f", "in": "query", "type": "array", "items": {"type": "string"}}
        ]}),
        &json!({}),
    );
    assert_eq!(
        table(&conversion),
        [
            "id -> Path id Simple required",
            "a -> Query a Form",
            "b -> Query b SpaceDelimited",
            "c -> Query c TabDelimited",
            "d -> Query d PipeDelimited",
            "e -> Query e Form explode",
            "f -> Query f Form",
        ]
    );
}

#[test]
fn names_that_clash_get_their_place_as_a_suffix() {
    let conversion = document(
        "3.0.3",
        &json!({
            "parameters": [
                {"name": "id", "in": "cookie", "schema": {}},
                {"name": "id", "in": "query", "schema": {}},
                {"name": "id", "in": "path", "required": true, "schema": {}},
                {"name": "id", "in": "header", "schema": {}},
                {"name": "$top", "in": "query", "schema": {}},
                {"name": "filter[name]", "in": "query", "schema": {}}
            ],
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "object", "properties": {"id": {}, "name": {}}
            }}}}
        }),
        &json!({}),
    );
    assert_eq!(
        table(&conversion),
        [
            "id -> Path id Simple required",
            "id_query -> Query id Form explode",
            "top -> Query $top Form explode",
            "filter_name -> Query filter[name] Form explode",
            "id_header -> Header id Simple",
            "id_cookie -> Cookie id Form explode",
            "body -> Body body Simple required",
        ]
    );
}

#[test]
fn a_body_that_is_a_plain_object_is_spread_out() {
    let body = |schema: Value, required: bool| {
        let content = json!({"application/json": {"schema": schema}});
        let operation = json!({"requestBody": {"required": required, "content": content}});
        let conversion = document("3.1.0", &operation, &json!({}));
        table(&conversion).split_off(1)
    };
    let plain =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {}}});
    assert_eq!(body(plain.clone(), true), ["a -> BodyField a Simple required", "b -> BodyField b Simple"]);
    // Only `body` can express that the whole may be omitted, but not its members.
    assert_eq!(body(plain.clone(), false), ["body -> Body body Simple"]);
    let optional = json!({"type": "object", "properties": {"a": {}}});
    assert_eq!(body(optional, false), ["a -> BodyField a Simple"]);
    let whole = ["body -> Body body Simple required"];
    assert_eq!(body(json!({"type": "array", "items": {}}), true), whole);
    assert_eq!(body(json!({"type": ["object", "null"], "properties": {"a": {}}}), true), whole);
    assert_eq!(body(json!({"allOf": [plain]}), true), whole);
    let open = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": true});
    assert_eq!(body(open, true), whole);
    assert_eq!(body(json!({"type": "object"}), true), whole);
}

#[test]
fn the_best_media_type_is_picked_and_the_rest_told() {
    let picked = |types: &[&str]| {
        let schema = json!({"schema": {"type": "string"}});
        let content: serde_json::Map<String, Value> =
            types.iter().map(|name| ((*name).to_owned(), schema.clone())).collect();
        let conversion = document("3.0.3", &json!({"requestBody": {"content": content}}), &json!({}));
        let body = conversion.operations[0].body.clone().unwrap();
        (body.media_type, body.encoding)
    };
    for (types, media_type, encoding) in [
        (&["application/xml", "application/json"][..], "application/json", BodyEncoding::Json),
        (&["text/plain", "application/vnd.api+json"], "application/vnd.api+json", BodyEncoding::Json),
        (
            &["multipart/form-data", "application/x-www-form-urlencoded"],
            "application/x-www-form-urlencoded",
            BodyEncoding::Form,
        ),
        (
            &["application/octet-stream", "multipart/form-data"],
            "multipart/form-data",
            BodyEncoding::Multipart,
        ),
        (&["application/octet-stream", "text/csv"], "text/csv", BodyEncoding::Text),
        (&["image/png"], "image/png", BodyEncoding::Bytes),
        (&["application/xml"], "application/xml", BodyEncoding::Text),
        (&["*/*"], "application/json", BodyEncoding::Json),
        (&["application/x-odd"], "application/x-odd", BodyEncoding::Text),
    ] {
        assert_eq!(picked(types), (media_type.to_owned(), encoding));
    }
}

#[test]
fn forms_have_files_and_fields_with_their_encodings() {
    let conversion = document(
        "3.0.3",
        &json!({"operationId": "it", "requestBody": {"required": true, "content": {"multipart/form-data": {
            "schema": {"type": "object", "required": ["file"], "properties": {
                "file": {"type": "string", "format": "binary"},
                "more": {"type": "array", "items": {"type": "string", "format": "binary"}},
                "meta": {"type": "object"}
            }},
            "encoding": {"meta": {"contentType": "application/json"}, "file": {"contentType": "image/png"}}
        }}}}),
        &json!({}),
    );
    let body = conversion.operations[0].body.clone().unwrap();
    let files: Vec<_> = body
        .fields
        .iter()
        .map(|(name, field)| (name.as_str(), field.file, field.content_type.as_deref()))
        .collect();
    assert_eq!(
        files,
        [("file", true, Some("image/png")), ("meta", false, Some("application/json")), ("more", true, None)]
    );
    let input = tool(&conversion, "it")["inputSchema"].clone();
    assert_eq!(input["properties"]["file"]["anyOf"][0], json!({"type": "string", "format": "byte"}));
    assert_eq!(input["properties"]["more"]["type"], "array");
    assert_eq!(input["required"], json!(["id", "file"]));
}

#[test]
fn swagger_forms_and_bodies_become_bodies() {
    let conversion = document(
        "2.0",
        &json!({"consumes": ["multipart/form-data"], "parameters": [
            {"name": "id", "in": "path", "required": true, "type": "string"},
            {"name": "file", "in": "formData", "type": "file", "required": true},
            {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"}
        ]}),
        &json!({}),
    );
    assert_eq!(
        table(&conversion).split_off(1),
        ["file -> BodyField file Simple required", "tags -> BodyField tags Simple"]
    );
    let body = conversion.operations[0].body.clone().unwrap();
    assert_eq!((body.encoding, body.fields["file"].file), (BodyEncoding::Multipart, true));
    assert_eq!(
        (body.fields["tags"].style, body.fields["tags"].explode),
        (Some(ParameterStyle::Form), Some(true))
    );
    let conversion = document(
        "2.0",
        &json!({"parameters": [
            {"name": "pet", "in": "body", "required": true, "schema": {"$ref": "#/definitions/Pet"}}
        ]}),
        &json!({"definitions": {"Pet": {"type": "object", "properties": {"name": {"type": "string"}}}}}),
    );
    assert_eq!(table(&conversion).split_off(1), ["name -> BodyField name Simple"]);
    assert_eq!(conversion.operations[0].body.clone().unwrap().media_type, "application/json");
}

#[test]
fn the_parameters_of_a_path_count_for_its_operations_unless_they_are_repeated() {
    let conversion = converted(
        &json!({"openapi": "3.0.3",
            "paths": {"/a": {
                "parameters": [
                    {"$ref": "#/components/parameters/Page"},
                    {"name": "size", "in": "query", "schema": {"type": "integer"}}
                ],
                "get": {"operationId": "it", "parameters": [{"name": "size", "in": "query", "schema": {"type": "string"}}]}
            }},
            "components": {"parameters": {"Page": {"name": "page", "in": "query", "schema": {"type": "integer"}}}}
        })
        .to_string(),
    );
    assert_eq!(
        tool(&conversion, "it")["inputSchema"]["properties"],
        json!({"page": {"type": "integer"}, "size": {"type": "string"}})
    );
    assert_eq!(warnings(&conversion), Vec::<String>::new());
}

#[test]
fn faulty_parameters_are_left_out_and_the_operation_is_served() {
    let conversion = document(
        "3.0.3",
        &json!({"parameters": [
            5, {"in": "query"}, {"name": "a", "in": "space"}, {"$ref": "#/nowhere"}, {"name": "b", "in": "path"},
            {"name": "good", "in": "query", "schema": {}}
        ]}),
        &json!({}),
    );
    assert_eq!(table(&conversion), ["id -> Path id Simple required", "good -> Query good Form explode"]);
    let at = |n: usize| format!("/paths/~1things~1{{id}}/post/parameters/{n}");
    assert_eq!(
        warnings(&conversion),
        [
            format!("wrong-type {}", at(0)),
            format!("no-name {}", at(1)),
            format!("no-place {}", at(2)),
            format!("dangling-reference {}", at(3)),
            format!("not-in-path {}", at(4)),
            "undeclared-parameter /paths/~1things~1{id}/post".to_owned(),
        ]
    );
}

#[test]
fn answers_that_are_no_objects_are_wrapped() {
    let output = |responses: Value| {
        let conversion = document("3.0.3", &json!({"operationId": "it", "responses": responses}), &json!({}));
        let tool = tool(&conversion, "it");
        (tool.get("outputSchema").cloned(), conversion.operations[0].wrapping)
    };
    let json =
        |schema: Value| json!({"description": "", "content": {"application/json": {"schema": schema}}});
    let draft = "http://json-schema.org/draft-07/schema#";
    assert_eq!(
        output(json!({"200": json(json!({"type": "array", "items": {"type": "string"}}))})),
        (
            Some(json!({"$schema": draft, "type": "object",
                "properties": {"result": {"type": "array", "items": {"type": "string"}}}, "required": ["result"]})),
            ResultWrapping::Always
        )
    );
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let shown = json!({"$schema": draft, "type": "object", "properties": {"a": {"type": "string"}}});
    // Error responses are ignored.
    let several = json!({"default": json(json!({})), "404": json(json!({})), "201": json(object.clone())});
    assert_eq!(output(several), (Some(shown.clone()), ResultWrapping::Never));
    assert_eq!(output(json!({"2XX": json(object)})), (Some(shown), ResultWrapping::Never));
    let nullable = json!({"type": "object", "nullable": true});
    assert_eq!(output(json!({"200": json(nullable)})).1, ResultWrapping::Always);
    let both = json!({"oneOf": [{"type": "object", "title": "A"}, {"type": "object", "title": "B"}]});
    let (schema, wrapping) = output(json!({"200": json(both)}));
    assert_eq!((schema.unwrap()["type"].clone(), wrapping), (json!("object"), ResultWrapping::Never));
}

#[test]
fn servers_of_the_nearest_place_count() {
    let servers = |operation: Value, more: Value| {
        let conversion = document("3.0.3", &operation, &more);
        conversion.operations[0].servers.clone()
    };
    let plain = |url: &str| ServerUrl { template: url.to_owned(), variables: Default::default() };
    assert_eq!(servers(json!({}), json!({})), [plain("/")]);
    assert_eq!(servers(json!({}), json!({"servers": [{"url": "https://a"}]})), [plain("https://a")]);
    let near = json!({"servers": [{"url": "https://b"}]});
    assert_eq!(servers(near, json!({"servers": [{"url": "https://a"}]})), [plain("https://b")]);
    let with_variables = json!({"servers": [{"url": "https://{region}.x/{v}", "variables": {
        "region": {"default": "eu", "enum": ["eu", "us"]}, "v": {"default": 2}
    }}]});
    let found = servers(json!({}), with_variables);
    assert_eq!(found[0].variables["region"].allowed, ["eu", "us"]);
    assert_eq!(found[0].variables["v"].default, "2");
    let swagger = document(
        "2.0",
        &json!({}),
        &json!({"host": "x.org", "basePath": "/v1/", "schemes": ["http", "https"]}),
    );
    assert_eq!(swagger.operations[0].servers, [plain("https://x.org/v1"), plain("http://x.org/v1")]);
}

#[test]
fn security_of_the_operation_comes_before_that_of_the_document() {
    let conversion = document(
        "3.0.3",
        &json!({"security": [{"key": []}, {"oauth": ["read"]}], "parameters": [
            {"name": "X-Key", "in": "header", "required": true, "schema": {"type": "string"}}
        ]}),
        &json!({"security": [{"basic": []}], "components": {"securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "x-key"},
            "basic": {"type": "http", "scheme": "Basic"},
            "bearer": {"type": "http", "scheme": "bearer"},
            "digest": {"type": "http", "scheme": "digest"},
            "oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "/token", "scopes": {"read": ""}}}},
            "login": {"type": "openIdConnect", "openIdConnectUrl": "https://x"},
            "mutual": {"type": "mutualTLS"}
        }}}),
    );
    let require = |scheme: &str, scopes: &[&str]| SecurityRequirement {
        scheme: scheme.to_owned(),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
    };
    assert_eq!(
        conversion.operations[0].security,
        [vec![require("key", &[])], vec![require("oauth", &["read"])]]
    );
    // The credential is never an argument.
    assert_eq!(table(&conversion), ["id -> Path id Simple required"]);
    let kinds: Vec<SecuritySchemeKind> =
        conversion.schemes.iter().map(|scheme| scheme.kind.clone()).collect();
    assert_eq!(
        kinds,
        [
            SecuritySchemeKind::ApiKey { place: ArgumentLocation::Header, wire_name: "x-key".to_owned() },
            SecuritySchemeKind::Basic,
            SecuritySchemeKind::Bearer,
            SecuritySchemeKind::Http { scheme: "digest".to_owned() },
            SecuritySchemeKind::ClientCredentials {
                token_url: "/token".to_owned(),
                scopes: vec!["read".to_owned()]
            },
            SecuritySchemeKind::Token,
            SecuritySchemeKind::Other { kind: "mutualtls".to_owned() },
        ]
    );
}

#[test]
fn the_newest_version_has_more_methods_and_whole_query_strings() {
    let conversion = converted(
        &json!({"openapi": "3.2.0", "paths": {"/find": {
            "query": {"operationId": "find", "parameters": [
                {"name": "all", "in": "querystring", "content": {"application/x-www-form-urlencoded": {"schema": {
                    "type": "object"
                }}}}
            ]},
            "additionalOperations": {"COPY": {"operationId": "copy"}, "not a method": {}}
        }}})
        .to_string(),
    );
    let methods: Vec<&str> =
        conversion.operations.iter().map(|operation| operation.method.as_str()).collect();
    assert_eq!(methods, ["QUERY", "COPY"]);
    assert_eq!(conversion.operations[0].arguments[0].place, ArgumentLocation::QueryString);
    assert_eq!(warnings(&conversion), ["left-out /paths/~1find/additionalOperations/not a method"]);
}
