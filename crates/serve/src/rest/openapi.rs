//! `GET /openapi.json`: this API as an OpenAPI document, limited to what the caller may use. The
//! parts common to all yards are in `skeleton.json`; each tool adds a path with the schema of its
//! parameters. The document lists only responses that can occur.

mod embed;

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};
use toolyard_hub::ToolEntry;

pub(super) use self::embed::EmbeddedSchema;
use self::embed::embed;
use super::errors::RestError;
use super::query::Query;
use super::response::respond_json;
use super::tool_cache::RestTool;
use super::{RestCaller, RestFront};

/// The path of a tool in the skeleton: a template that is removed and filled in for each tool.
const TOOL_PATH: &str = "/mcp/tools/{tool}/execute";

/// The document without the tools of a yard.
pub(super) const SKELETON_TEXT: &str = include_str!("openapi/skeleton.json");

static SKELETON: LazyLock<Skeleton> = LazyLock::new(Skeleton::read);

struct Skeleton {
    document: Value,
    execute: Value,
}

impl Skeleton {
    fn read() -> Self {
        // The skeleton is compiled in, and a test parses it.
        let mut document: Value = serde_json::from_str(SKELETON_TEXT).unwrap_or_default();
        document["info"]["version"] = super::VERSION.into();
        let paths = document["paths"].as_object_mut();
        let execute = paths.and_then(|paths| paths.shift_remove(TOOL_PATH)).unwrap_or_default();
        Self { document, execute }
    }
}

pub(super) async fn show(
    State(rest): State<Arc<RestFront>>,
    RestCaller(principal): RestCaller,
    request: Request,
) -> Result<Response<Body>, RestError> {
    Query::read(request.uri().query()).finish()?;
    rest.admit_list(&principal).await?;
    rest.yard.wait_for_startup(rest.settings.start_wait).await;
    let cached = rest.tool_cache.tools(&rest.yard);
    let tools: Vec<&RestTool> = cached.iter().filter(|shown| shown.tool.is_listed_for(&principal)).collect();
    Ok(respond_json(StatusCode::OK, &document(&tools)))
}

pub(super) fn document(tools: &[&RestTool]) -> Value {
    let mut document = SKELETON.document.clone();
    for shown in tools {
        let name = shown.tool.full_name.as_str();
        let (input, output) = shown.embedded_schemas(|tool| {
            let input = embed(&tool.input_schema, &pointer(&input_name(name)), json!({"type": "object"}));
            let output = tool.output_schema.as_ref();
            (input, output.map(|schema| embed(schema, &pointer(&output_name(name)), json!(true)).schema))
        });
        document["paths"][format!("/mcp/tools/{name}/execute")] =
            path_item(&shown.tool, input, output.is_some());
        let schemas = &mut document["components"]["schemas"];
        schemas[input_name(name)] = input.schema.clone();
        if let Some(schema) = output {
            schemas[output_name(name)] = schema.clone();
        }
    }
    document
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

/// Builds the path item of one tool.
fn path_item(tool: &ToolEntry, input: &EmbeddedSchema, has_output: bool) -> Value {
    let name = tool.full_name.as_str();
    let mut item = SKELETON.execute.clone();
    let operation = &mut item["post"];
    operation["operationId"] = format!("execute.{name}").into();
    operation["summary"] = tool.title.as_str().into();
    operation["description"] = tool.description.as_deref().unwrap_or_default().into();
    operation["tags"] = json!([tool.source.as_str()]);
    let body = &mut operation["requestBody"]["content"]["application/json"]["schema"];
    body["properties"]["tool"]["enum"] = json!([name, null]);
    body["properties"]["params"] = json!({"$ref": pointer(&input_name(name))});
    if input.has_required {
        body["required"] = json!(["params"]);
    }
    if has_output {
        let success = &mut operation["responses"]["200"]["content"]["application/json"]["schema"];
        success["properties"]["result"] = json!({"$ref": pointer(&output_name(name))});
    }
    if let Some(true) = tool.metadata.get("deprecated").and_then(Value::as_bool) {
        operation["deprecated"] = true.into();
    }
    item
}

#[cfg(test)]
mod tests;
