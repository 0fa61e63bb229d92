//! Tools that exercise the protocol around a call: progress, logs, reconnecting, headers, changing
//! lists.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_hub::json::{self, Object};
use toolyard_sdk::{Content, Context, LogLevel, Prompt, Raw, Tool, ToolError, tool};

/// Appears and disappears when the suite asks for a change of the list.
const DUMMY: &str = "test_dummy";

const SCHEMA_2020_12: &str = r##"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {
    "address": {
      "$anchor": "addressDef",
      "type": "object",
      "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
    }
  },
  "properties": {
    "name": {"type": "string"},
    "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    "phone": {"type": "string"},
    "email": {"type": "string"}
  },
  "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
  "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
  "then": {"required": ["phone"]},
  "else": {"required": ["email"]},
  "additionalProperties": false
}"##;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        test_tool_with_logging(),
        test_tool_with_progress(),
        test_reconnection(),
        json_schema_2020_12_tool(),
        test_x_mcp_header(),
        test_missing_capability(),
        test_logging_tool(),
        test_trigger_tool_change(),
        test_trigger_prompt_change(),
    ]
}

/// Writes three log lines.
#[tool]
async fn test_tool_with_logging(ctx: Context) -> Result<&'static str, ToolError> {
    ctx.log(LogLevel::Info, "Tool execution started");
    pause_briefly().await;
    ctx.log(LogLevel::Info, "Tool processing data");
    pause_briefly().await;
    ctx.log(LogLevel::Info, "Tool execution completed");
    Ok("Tool with logging executed successfully")
}

/// Reports progress three times.
#[tool]
async fn test_tool_with_progress(ctx: Context) -> Result<&'static str, ToolError> {
    ctx.report_progress(0, "Started");
    pause_briefly().await;
    ctx.report_progress(50, "Half way");
    pause_briefly().await;
    ctx.report_progress(100, "Completed");
    Ok("Tool with progress executed successfully")
}

/// Lets the caller disconnect, and answers when it reconnects.
#[tool]
async fn test_reconnection(ctx: Context) -> Result<&'static str, ToolError> {
    ctx.pause(Duration::from_millis(500)).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok("Reconnection test completed successfully")
}

/// Has a schema with keywords that older dialects lack.
fn json_schema_2020_12_tool() -> Tool {
    let echo = |arguments: Raw, _: Context| async move {
        let content = [Content::text(arguments.get()).to_raw()];
        let mut result = Object::default();
        result.set("content", json::to_raw(&content));
        Ok(result.to_raw())
    };
    Tool::raw("json_schema_2020_12_tool", echo)
        .description("Tool with JSON Schema 2020-12 features")
        .input_schema(&json::from_text(SCHEMA_2020_12.to_owned()))
}

#[derive(Deserialize, JsonSchema)]
struct Where {
    /// Also travels as the header `Mcp-Param-Region`.
    #[serde(default)]
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

/// Has an argument that also travels as a header.
#[tool]
async fn test_x_mcp_header(params: Where) -> Result<String, ToolError> {
    Ok(format!("Region: {}", params.region))
}

/// Works only for clients that can call a model.
#[tool]
async fn test_missing_capability(ctx: Context) -> Result<&'static str, ToolError> {
    if !ctx.capabilities().sample {
        // For a client without sampling, this request fails with the error that names the missing
        // capability.
        ctx.sample_text("question", "Can you hear me?", 10).await?;
    }
    Ok("Success")
}

/// Logs, if the caller requested logs.
#[tool]
async fn test_logging_tool(ctx: Context) -> Result<&'static str, ToolError> {
    ctx.log(LogLevel::Info, "Logging evaluated");
    Ok("Logging evaluated")
}

/// Adds a tool to the list, or removes it again.
#[tool]
async fn test_trigger_tool_change(ctx: Context) -> Result<&'static str, ToolError> {
    let native = ctx.native();
    if native.tools().iter().any(|tool| tool.name() == DUMMY) {
        native.remove_tool(DUMMY);
    } else {
        native.add_tool(Tool::new(DUMMY, || async { Ok("Nothing to see") }).description("Comes and goes."));
    }
    Ok("Mutation triggered")
}

/// Adds a prompt to the list, or removes it again.
#[tool]
async fn test_trigger_prompt_change(ctx: Context) -> Result<&'static str, ToolError> {
    let native = ctx.native();
    if native.prompts().iter().any(|prompt| prompt.name() == DUMMY) {
        native.remove_prompt(DUMMY);
    } else {
        native.add_prompt(
            Prompt::new(DUMMY, |_, _| async { Ok("Nothing to see") }).description("Comes and goes."),
        );
    }
    Ok("Mutation triggered")
}

async fn pause_briefly() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
