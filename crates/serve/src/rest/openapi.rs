//! `GET /openapi.json`: this very API for machines, as far as the caller may use it. Every tool has an address of its own
//! with the schema of its own parameters. What can really be answered is written down, and nothing else.

mod embed;
mod parts;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use toolyard_hub::Tool;

pub(super) use self::embed::Embedded;
use self::embed::embed;
use self::parts::{headers, responses, schemas};
use super::answer::of;
use super::errors::Failure;
use super::query::Query;
use super::shelf::Shown;
use super::tools::sees;
use super::{Caller, Rest};

pub(super) async fn show(
    State(rest): State<Arc<Rest>>,
    Caller(principal): Caller,
    request: Request,
) -> Result<Response<Body>, Failure> {
    Query::read(request.uri().query()).finish()?;
    rest.yard.settle(rest.settings.start_wait).await;
    let shelf = rest.shelf.of(&rest.yard);
    let tools: Vec<&Shown> = shelf.iter().filter(|shown| sees(&principal, shown)).collect();
    Ok(of(StatusCode::OK, &document(&tools)))
}

pub(super) fn document(tools: &[&Shown]) -> Value {
    let mut paths = fixed_paths();
    let mut components = schemas();
    for shown in tools {
        let name = shown.tool.full_name.as_str();
        let (input, output) = shown.embedded(|tool| {
            let input = embed(&tool.input_schema, &pointer(&input_name(name)), json!({"type": "object"}));
            let output = tool.output_schema.as_ref();
            (input, output.map(|schema| embed(schema, &pointer(&output_name(name)), json!(true)).schema))
        });
        paths.insert(format!("/mcp/tools/{name}/execute"), execute(&shown.tool, input, output.is_some()));
        components.insert(input_name(name), input.schema.clone());
        components.extend(output.clone().map(|schema| (output_name(name), schema)));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Toolyard",
            "version": super::VERSION,
            "description": "Tools of this yard over plain HTTP.",
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": components,
            "responses": responses(),
            "headers": headers(),
        },
    })
}

fn input_name(tool: &str) -> String {
    format!("{tool}.params")
}

fn output_name(tool: &str) -> String {
    format!("{tool}.result")
}

fn pointer(schema: &str) -> String {
    format!("#/components/schemas/{schema}")
}

/// The address of one tool.
fn execute(tool: &Tool, input: &Embedded, has_output: bool) -> Value {
    let name = tool.full_name.as_str();
    let mut body = json!({
        "type": "object",
        "properties": {
            "tool": {"enum": [name, null], "description": "Must be this tool, if it is there at all."},
            "params": {"$ref": pointer(&input_name(name))},
            "context": {"$ref": pointer("Context")},
        },
        "additionalProperties": false,
    });
    if input.needs_something {
        body["required"] = json!(["params"]);
    }
    let result = if has_output { json!({"$ref": pointer(&output_name(name))}) } else { json!(true) };
    let success = json!({
        "allOf": [{"$ref": pointer("Success")}],
        "properties": {"result": result},
        "required": ["result"],
    });
    let content = |schema: Value| {
        json!({
            "application/json": {"schema": schema},
            "text/event-stream": {"schema": {"type": "string"}},
        })
    };
    let mut operation = json!({
        "operationId": format!("execute.{name}"),
        "summary": tool.title,
        "description": tool.description.as_deref().unwrap_or_default(),
        "tags": [tool.source.as_str()],
        "parameters": [
            version_parameter(),
            {
                "name": "content",
                "in": "query",
                "description": "Whether all blocks of content are in the answer, beside the result.",
                "schema": {"enum": ["full", "result"]},
            },
            {
                "name": "detach",
                "in": "query",
                "description": "Whether the execution goes on if the connection is lost.",
                "schema": {"enum": ["true", "false"]},
            },
            {
                "name": "Idempotency-Key",
                "in": "header",
                "description": "Makes the call safe to repeat; the same as idempotencyKey of the context.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
            },
        ],
        "requestBody": {"required": true, "content": {"application/json": {"schema": body}}},
        "responses": refusals(&[400, 401, 403, 404, 408, 409, 413, 415, 429, 499, 500, 501, 502, 504]),
    });
    operation["responses"]["200"] = json!({
        "description": "It went well.",
        "headers": {
            "X-MCP-Version": {"$ref": "#/components/headers/Version"},
            "X-Execution-Id": {"$ref": "#/components/headers/ExecutionId"},
        },
        "content": content(success),
    });
    if let Some(true) = tool.metadata.get("deprecated").and_then(Value::as_bool) {
        operation["deprecated"] = true.into();
    }
    json!({"post": operation})
}

fn version_parameter() -> Value {
    json!({
        "name": "X-MCP-Version",
        "in": "header",
        "description": "The version of the protocol; absent means the newest.",
        "schema": {"enum": super::version::SUPPORTED},
    })
}

fn refusals(statuses: &[u16]) -> Value {
    let reference =
        |status: &u16| (status.to_string(), json!({"$ref": format!("#/components/responses/{status}")}));
    Value::Object(statuses.iter().map(reference).collect::<Map<_, _>>())
}

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

fn query(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

fn in_path(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "path", "required": true, "description": description, "schema": schema})
}

/// The addresses that are always there.
fn fixed_paths() -> Map<String, Value> {
    let text = || json!({"type": "string"});
    let limit =
        || query("limit", "How many at most.", json!({"type": "integer", "minimum": 1, "maximum": 1000}));
    let id = || {
        let schema = json!({"type": "string", "pattern": "^exec-[0-9a-f]{32}$"});
        in_path("id", "The execution, as metadata.executionId names it.", schema)
    };
    let content = query(
        "content",
        "Whether all blocks of content are in the answer, beside the result.",
        json!({"enum": ["full", "result"]}),
    );
    let tags = json!({"type": "array", "items": {"type": "string"}});
    let filters = vec![
        query("server", "Only tools of this server.", text()),
        query("category", "Only tools of this category.", text()),
        query("tag", "Only tools with this tag; several mean all of them.", tags),
        query("q", "Only tools in whose names, description or tags all of these words are.", text()),
        limit(),
        query("cursor", "nextCursor of the page before.", text()),
    ];
    let mut list_tools = read(
        "listTools",
        "Tools that you may use",
        filters,
        answered("The tools.", "ToolList"),
        &[400, 401, 403],
    );
    list_tools["parameters"].as_array_mut().map(|parameters| {
        parameters.push(json!({
            "name": "If-None-Match",
            "in": "header",
            "description": "The ETag of the list that you have.",
            "schema": {"type": "string", "pattern": "^(W/)?\"[!#-~]*\"$"},
        }));
    });
    list_tools["responses"]["200"]["headers"]["ETag"] = json!({"schema": {"type": "string"}});
    list_tools["responses"]["304"] = json!({"description": "The list is the one that you have."});
    let tool_name = in_path(
        "name",
        "The full name, or a bare name that is unique.",
        json!({"type": "string", "minLength": 1}),
    );
    let executions = vec![
        limit(),
        query(
            "state",
            "Only those in this state.",
            json!({"enum": ["running", "succeeded", "failed", "cancelled"]}),
        ),
        query("tool", "Only those of this tool, by its full name.", text()),
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
                answered("The executions.", "ExecutionList"), &[400, 401, 403],
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
                answered("The sources.", "ServerList"), &[400, 401, 403],
            )}),
        ),
        ("/health", json!({"get": health})),
        ("/ready", json!({"get": ready})),
        ("/metrics", json!({"get": read("metrics", "Counters", Vec::new(), metrics, &[400, 401, 403])})),
        (
            "/openapi.json",
            json!({"get": read("openapi", "This document", Vec::new(), described, &[400, 401, 403])}),
        ),
    ];
    paths.into_iter().map(|(path, item)| (path.to_owned(), item)).collect()
}

#[cfg(test)]
mod tests;
