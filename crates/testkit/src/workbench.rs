//! A source for tests of the REST front: the tools of the protocol's own examples, and one for each
//! kind of result.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_hub::Source;
use toolyard_hub::json::{Raw, from_text, to_raw};
use toolyard_sdk::{Content, Context, Json, LogLevel, NativeSource, Tool, ToolError, tool};

/// Creates a new workbench.
pub fn source() -> Arc<dyn Source> {
    let counts = Arc::new(Mutex::new(HashMap::new()));
    let count = Tool::new("count", move |params: Count| count(Arc::clone(&counts), params))
        .description("Counts how often it was called under a name.");
    NativeSource::new("workbench")
        .tools([analyze_code(), my_custom_tool(), advanced_tool(), sensitive_tool(), versioned_tool()])
        .tools([count, say(), blocks(), refuse(), answer(), older_versioned_tool()])
        .tools([quick_stream(), answer_number()])
        .into_source()
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Analyze {
    /// Path to the file to analyze
    file_path: String,
    #[serde(default)]
    options: Options,
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(default, rename_all = "camelCase")]
struct Options {
    #[schemars(range(min = 1, max = 5))]
    depth: Option<f64>,
    include_tests: bool,
}

#[derive(Serialize, JsonSchema)]
struct Analyzed {
    analysis: Analysis,
}

#[derive(Serialize, JsonSchema)]
struct Analysis {
    complexity: f64,
    lines: u32,
    issues: Vec<String>,
}

/// Analyzes source code for quality and patterns
#[tool]
async fn analyze_code(params: Analyze) -> Result<Json<Analyzed>, ToolError> {
    if params.file_path.starts_with("/invalid/") {
        return Err(ToolError::invalid("filePath", "Path does not exist", params.file_path));
    }
    let lines = if params.options.include_tests { 300 } else { 150 };
    let complexity = params.options.depth.unwrap_or(5.0);
    Ok(Json(Analyzed { analysis: Analysis { complexity, lines, issues: Vec::new() } }))
}

#[derive(Deserialize, JsonSchema)]
struct Custom {
    input: String,
    #[serde(default)]
    options: Verbosity,
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(default)]
struct Verbosity {
    verbose: bool,
}

#[derive(Serialize, JsonSchema)]
struct Processed {
    success: bool,
    data: Value,
}

/// Performs custom analysis
#[tool]
async fn my_custom_tool(params: Custom) -> Result<Json<Processed>, ToolError> {
    let data = json!({"processed": params.input.to_uppercase(), "verbose": params.options.verbose});
    Ok(Json(Processed { success: true, data }))
}

#[derive(Serialize, JsonSchema)]
struct Summary {
    success: bool,
    summary: &'static str,
}

/// Advanced tool with streaming and progress
#[tool(version = "2.0.0", category = "analysis", tags = ["code", "quality"])]
async fn advanced_tool(ctx: Context) -> Result<Json<Summary>, ToolError> {
    ctx.report_progress(1.0, "Starting analysis");
    let stream = ctx.stream();
    for at in [30, 60, 90] {
        ctx.log(LogLevel::Info, format!("chunk {at}"));
        stream.write(json!({"chunk": at, "data": format!("Result {at}")})).await;
        ctx.report_progress(f64::from(at), format!("Processing {at}%"));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stream.end();
    ctx.report_progress(100.0, "Complete");
    Ok(Json(Summary { success: true, summary: "Analysis complete" }))
}

/// Streams like `advanced_tool`, but without any delay
#[tool]
async fn quick_stream(ctx: Context) -> Result<&'static str, ToolError> {
    ctx.report_progress(50.0, "half");
    ctx.log(LogLevel::Info, "a line");
    let stream = ctx.stream();
    stream.write("one").await;
    stream.write(json!({"two": 2})).await;
    stream.end();
    Ok("done")
}

/// Requires admin permissions
#[tool(permissions = ["admin", "write"])]
async fn sensitive_tool() -> Result<&'static str, ToolError> {
    Ok("done")
}

/// Tool with version
fn versioned_tool() -> Tool {
    Tool::new("versioned_tool", || async { Ok("2.1.0") })
        .description("Tool with version")
        .version("2.1.0")
        .deprecates("1.0.0")
        .metadata("custom", json!({"pricing": "premium", "sla": "99.9%", "region": "us-east-1"}))
}

/// The same tool in an older version.
fn older_versioned_tool() -> Tool {
    Tool::new("versioned_tool", || async { Ok("1.0.0") }).description("Tool with version").version("1.0.0")
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    /// What is counted.
    name: String,
    /// How many milliseconds to take.
    #[serde(default)]
    ms: u64,
    /// Whether to fail.
    #[serde(default)]
    fail: bool,
}

type Counts = Arc<Mutex<HashMap<String, u64>>>;

async fn count(counts: Counts, params: Count) -> Result<String, ToolError> {
    let number = {
        let mut counts = counts.lock();
        let number = counts.entry(params.name).or_default();
        *number += 1;
        *number
    };
    tokio::time::sleep(Duration::from_millis(params.ms)).await;
    if params.fail { Err(ToolError::failed(number)) } else { Ok(number.to_string()) }
}

#[derive(Deserialize, JsonSchema)]
struct Words {
    /// The text to return.
    text: String,
}

/// Returns a text as text.
#[tool]
async fn say(params: Words) -> Result<String, ToolError> {
    Ok(params.text)
}

/// Returns text, an image, a sound and a link.
#[tool]
async fn blocks() -> Result<Vec<Content>, ToolError> {
    Ok(vec![
        Content::text(r#"{"n":9007199254740993}"#),
        Content::text("plain"),
        Content::image(b"png", "image/png"),
        Content::audio(b"wav", "audio/wav"),
        Content::link("probe://note", "note"),
    ])
}

/// Fails with structured content.
fn refuse() -> Tool {
    Tool::raw("refuse", |_: Raw, _: Context| async {
        Ok(to_raw(&json!({
            "content": [{"type": "text", "text": "out of"}, {"type": "text", "text": "paper"}],
            "structuredContent": {"tray": 2},
            "isError": true,
        })))
    })
    .description("Fails with structured content.")
}

/// Returns the given result object.
fn answer() -> Tool {
    Tool::raw("answer", |arguments: Raw, _: Context| async move { Ok(from_text(arguments.get().to_owned())) })
        .description("Returns the given result object.")
}

/// Returns something that is not a result object.
fn answer_number() -> Tool {
    Tool::raw("answer_number", |_: Raw, _: Context| async { Ok(to_raw(&7)) })
        .description("Returns something that is not a result object.")
}
