//! `GET /openapi.json`: this very API for machines, as far as the caller may use it. Every tool has an address of its own
//! with the schema of its own parameters. What can really be answered is written down, and nothing else.

mod components;
mod embed;
mod paths;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use toolyard_hub::ToolEntry;

use self::components::{headers, responses, schemas};
pub(super) use self::embed::EmbeddedSchema;
use self::embed::embed;
use self::paths::fixed_paths;
use super::errors::RestError;
use super::query::Query;
use super::response::respond_json;
use super::tool_cache::RestTool;
use super::{RestCaller, RestFront};

pub(super) async fn show(
    State(rest): State<Arc<RestFront>>,
    RestCaller(principal): RestCaller,
    request: Request,
) -> Result<Response<Body>, RestError> {
    Query::read(request.uri().query()).finish()?;
    rest.admit_list(&principal)?;
    rest.yard.settle(rest.settings.start_wait).await;
    let shelf = rest.shelf.tools(&rest.yard);
    let tools: Vec<&RestTool> = shelf.iter().filter(|shown| shown.tool.is_listed_for(&principal)).collect();
    Ok(respond_json(StatusCode::OK, &document(&tools)))
}

pub(super) fn document(tools: &[&RestTool]) -> Value {
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
fn execute(tool: &ToolEntry, input: &EmbeddedSchema, has_output: bool) -> Value {
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

#[cfg(test)]
mod tests;
