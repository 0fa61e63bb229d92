//! The examples of the tool protocol specification, written with the SDK.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_sdk::testing::{self, TestCaller};
use toolyard_sdk::{Context, ErrorKind, Json, Progress, ToolError, tool};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Analysis {
    /// Path to the file to analyze
    file_path: String,
    #[serde(default)]
    options: Options,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct Options {
    #[schemars(range(min = 1, max = 5))]
    depth: Option<f64>,
    include_tests: bool,
}

#[derive(Serialize, JsonSchema)]
struct Summary {
    success: bool,
    summary: String,
}

/// Advanced tool with streaming and progress
#[tool(version = "2.0.0", category = "analysis", tags = ["code", "quality"])]
async fn advanced_tool(params: Analysis, context: Context) -> Result<Json<Summary>, ToolError> {
    context.report_progress(0, "Starting analysis");
    let stream = context.stream();
    for i in (10..100).step_by(10) {
        context.report_progress(i, format!("Processing {i}%"));
        stream.write(json!({"chunk": i, "data": format!("Result {i}")})).await;
    }
    stream.end();
    context.report_progress(100, "Complete");
    let tests = if params.options.include_tests { " with tests" } else { "" };
    let depth = params.options.depth.unwrap_or(1.0);
    Ok(Json(Summary {
        success: true,
        summary: format!("Analysis of {}{tests} to depth {depth} complete", params.file_path),
    }))
}

fn percent(progress: i32, message: &str) -> Progress {
    Progress { progress: progress.into(), total: Some(100.0), message: Some(message.to_owned()) }
}

#[tokio::test]
async fn reports_progress_streams_and_answers() {
    let arguments = json!({"filePath": "/src/app.ts", "options": {"includeTests": true, "depth": 2}});
    let report = testing::call(advanced_tool(), arguments).await;

    let mut progress = vec![percent(0, "Starting analysis")];
    progress.extend((1..10).map(|ten| percent(ten * 10, &format!("Processing {}%", ten * 10))));
    progress.push(percent(100, "Complete"));
    assert_eq!(report.progress, progress);
    let chunks: Vec<Value> =
        (1..10).map(|ten| json!({"chunk": ten * 10, "data": format!("Result {}", ten * 10)})).collect();
    assert_eq!(report.chunks, chunks);
    let summary =
        json!({"success": true, "summary": "Analysis of /src/app.ts with tests to depth 2 complete"});
    assert_eq!(report.structured(), summary);
    assert_eq!(report.text(), summary.to_string());
}

#[tokio::test]
async fn arguments_that_violate_the_schema_never_reach_the_tool() {
    let report =
        testing::call(advanced_tool(), json!({"filePath": "/src/app.ts", "options": {"depth": 6}})).await;
    let error = report.outcome.unwrap_err();
    let (field, reason) = ("options.depth", "6 is greater than the maximum of 5");
    let violation = json!({"pointer": "/options/depth", "field": field, "reason": reason, "provided": 6});
    let details = json!({"field": field, "reason": reason, "provided": 6, "violations": [violation]});
    assert_eq!((error.kind(), error.details()), (ErrorKind::InvalidArguments, Some(&details)));
    assert_eq!(report.progress, []);
}

#[tokio::test]
async fn an_argument_rejected_by_the_tool_has_the_error_of_the_specification() {
    #[derive(Deserialize, JsonSchema)]
    struct File {
        #[serde(rename = "filePath")]
        path: String,
    }
    #[tool]
    async fn analyze_code(params: File) -> Result<(), ToolError> {
        Err(ToolError::invalid("filePath", "Path does not exist", params.path))
    }
    let error =
        testing::call(analyze_code(), json!({"filePath": "/invalid/path.ts"})).await.outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert_eq!(error.message(), "input validation failed: filePath: Path does not exist");
    let details =
        json!({"field": "filePath", "reason": "Path does not exist", "provided": "/invalid/path.ts"});
    assert_eq!(error.details(), Some(&details));
}

#[tokio::test]
async fn a_tool_needs_all_of_its_permissions() {
    /// Requires admin permissions
    #[tool(permissions = ["admin", "write"])]
    async fn sensitive_tool() -> Result<&'static str, ToolError> {
        Ok("done")
    }
    let refused = TestCaller::new().permissions(["admin"]).call(sensitive_tool(), json!({})).await;
    assert_eq!(refused.outcome.unwrap_err().message(), "sensitive_tool needs the permission `write`");
    let allowed = TestCaller::new().permissions(["admin", "write"]).call(sensitive_tool(), json!({})).await;
    assert_eq!(allowed.text(), "done");
}
