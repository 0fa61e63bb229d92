//! The addresses that are there in every yard, as the document describes them.

use serde_json::{Map, Value, json};
use toolyard_hub::CallStatus;

use super::{pointer, refusals, version_parameter};

/// An address that is read, with what it answers when all is well.
fn read(id: &str, summary: &str, parameters: Vec<Value>, answer: Value, refused: &[u16]) -> Value {
    let mut parameters = parameters;
    parameters.insert(0, version_parameter());
    let mut responses = refusals(refused);
    responses["200"] = answer;
    json!({"operationId": id, "summary": summary, "parameters": parameters, "responses": responses})
}

fn answered(description: &str, schema: &str) -> Value {
    json!({
        "description": description,
        "headers": {"X-MCP-Version": {"$ref": "#/components/headers/Version"}},
        "content": {"application/json": {"schema": {"$ref": pointer(schema)}}},
    })
}

fn query(name: &str, description: &str, schema: &Value) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

fn in_path(name: &str, description: &str, schema: &Value) -> Value {
    json!({"name": name, "in": "path", "required": true, "description": description, "schema": schema})
}

/// The addresses that are always there.
pub(super) fn fixed_paths() -> Map<String, Value> {
    let text = || json!({"type": "string"});
    let limit =
        || query("limit", "How many at most.", &json!({"type": "integer", "minimum": 1, "maximum": 1000}));
    let id = || {
        let schema = json!({"type": "string", "pattern": "^exec-[0-9a-f]{32}$"});
        in_path("id", "The execution, as metadata.executionId names it.", &schema)
    };
    let content = query(
        "content",
        "Whether all blocks of content are in the answer, beside the result.",
        &json!({"enum": ["full", "result"]}),
    );
    let tags = json!({"type": "array", "items": {"type": "string"}});
    let cursor = json!({"type": "string", "pattern": "^after\\.[A-Za-z0-9_-]{1,64}$"});
    let filters = vec![
        query("server", "Only tools of this server.", &text()),
        query("category", "Only tools of this category.", &text()),
        query("tag", "Only tools with this tag; several mean all of them.", &tags),
        query(
            "q",
            "Only tools in whose names, description or tags all of these words are.",
            &json!({"type": "string", "maxLength": 200}),
        ),
        limit(),
        query("cursor", "nextCursor of the page before.", &cursor),
        json!({
            "name": "If-None-Match",
            "in": "header",
            "description": "The ETag of the list that you have.",
            "schema": {"type": "string"},
        }),
    ];
    let mut list_tools = read(
        "listTools",
        "Tools that you may use",
        filters,
        answered("The tools.", "ToolList"),
        &[400, 401, 403, 409, 429],
    );
    list_tools["responses"]["200"]["headers"]["ETag"] = json!({"schema": {"type": "string"}});
    list_tools["responses"]["304"] = json!({"description": "The list is the one that you have."});
    let tool_name = in_path(
        "name",
        "The full name, or a bare name that is unique.",
        &json!({"type": "string", "minLength": 1}),
    );
    // More is read than this: everything that RFC 3339 allows from 1970 on.
    let time = json!({
        "type": "string",
        "pattern": r"^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$",
    });
    let executions = vec![
        limit(),
        query(
            "state",
            "Only those in this state.",
            &json!({"enum": CallStatus::ALL.map(CallStatus::as_str)}),
        ),
        query("tool", "Only those of this tool, by its full name.", &text()),
        query("principal", "Only those of this principal.", &text()),
        query("since", "Only those that began at this time or later.", &time),
        query("until", "Only those that began before this time.", &time),
        query(
            "q",
            "Only those in whose tool, server, session, user or error this text is.",
            &json!({"type": "string", "maxLength": 200}),
        ),
        query(
            "cursor",
            "nextCursor of the page before.",
            &json!({"type": "string", "pattern": r"^[0-9]{1,18}\.[0-9a-f]{32}$"}),
        ),
    ];
    let mut cancel = read(
        "cancelExecution",
        "Cancel an execution",
        vec![id()],
        answered("It was over already.", "Execution"),
        &[400, 401, 403, 404],
    );
    cancel["responses"]["202"] = answered("It is being cancelled.", "Execution");
    let mut ready = read(
        "ready",
        "Whether all sources have started",
        Vec::new(),
        answered("They have.", "Readiness"),
        &[400, 401, 403],
    );
    ready["responses"]["503"] = answered("Some are still starting, or this yard is stopping.", "Readiness");
    let metrics = json!({
        "description": "Counters in the text format of Prometheus.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    });
    let health = json!({
        "operationId": "health",
        "summary": "Whether this process answers",
        "security": [],
        "responses": {
            "200": {
                "description": "It does.",
                "content": {"application/json": {"schema": {"$ref": pointer("Health")}}},
            },
            "403": {"$ref": "#/components/responses/403"},
        },
    });
    let described = json!({
        "description": "This document.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    });
    let paths = [
        ("/mcp/tools", json!({"get": list_tools})),
        (
            "/mcp/tools/{name}",
            json!({"get": read(
                "getTool", "Everything that is known of a tool", vec![tool_name],
                answered("The tool.", "Tool"), &[400, 401, 403, 404],
            )}),
        ),
        (
            "/mcp/executions",
            json!({"get": read(
                "listExecutions", "Recent executions, the latest first", executions,
                answered("The executions.", "ExecutionList"), &[400, 401, 403, 429],
            )}),
        ),
        (
            "/mcp/executions/{id}",
            json!({
                "get": read(
                    "getExecution", "The state and outcome of a recent execution", vec![id(), content],
                    answered("The execution.", "Execution"), &[400, 401, 403, 404],
                ),
                "delete": cancel,
            }),
        ),
        (
            "/mcp/servers",
            json!({"get": read(
                "listServers", "How the sources of this yard are doing", Vec::new(),
                answered("The sources.", "ServerList"), &[400, 401, 403, 429],
            )}),
        ),
        ("/health", json!({"get": health})),
        ("/ready", json!({"get": ready})),
        ("/metrics", json!({"get": read("metrics", "Counters", Vec::new(), metrics, &[400, 401, 403])})),
        (
            "/openapi.json",
            json!({"get": read("openapi", "This document", Vec::new(), described, &[400, 401, 403, 429])}),
        ),
    ];
    paths.into_iter().map(|(path, item)| (path.to_owned(), item)).collect()
}
