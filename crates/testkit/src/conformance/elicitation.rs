//! Tools that ask questions while they run. This is how clients of the session-based versions are
//! asked.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_sdk::{Context, ElicitResult, Tool, ToolError, tool};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        test_sampling(),
        test_elicitation(),
        test_elicitation_sep1034_defaults(),
        test_elicitation_sep1330_enums(),
        test_streaming_elicitation(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Sampling {
    /// What the caller's model is asked.
    prompt: String,
}

/// Asks the caller's model.
#[tool]
async fn test_sampling(params: Sampling, ctx: Context) -> Result<String, ToolError> {
    let text = ctx.sample_text("sampling", params.prompt, 100).await?;
    Ok(format!("LLM response: {text}"))
}

#[derive(Deserialize, JsonSchema)]
struct Elicitation {
    /// What the person is asked.
    message: String,
}

/// Asks the person for a name and an address.
#[tool]
async fn test_elicitation(params: Elicitation, ctx: Context) -> Result<String, ToolError> {
    let form = json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    });
    Ok(format!("User response: {}", format_answer(&ctx.elicit_with("user", params.message, &form).await?)))
}

/// Asks with a default for every kind of field.
#[tool]
async fn test_elicitation_sep1034_defaults(ctx: Context) -> Result<String, ToolError> {
    let form = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "User name", "default": "John Doe"},
            "age": {"type": "integer", "description": "User age", "default": 30},
            "score": {"type": "number", "description": "User score", "default": 95.5},
            "status": {
                "type": "string",
                "description": "User status",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "description": "Verification status", "default": true},
        },
        "required": [],
    });
    let answer = ctx.elicit_with("defaults", "Please review and update the form", &form).await?;
    Ok(format!("Elicitation completed: {}", format_answer(&answer)))
}

/// Asks with every kind of choice.
#[tool]
async fn test_elicitation_sep1330_enums(ctx: Context) -> Result<String, ToolError> {
    let options = ["option1", "option2", "option3"];
    let titled = |kind: &str| {
        json!([
            {"const": "value1", "title": format!("First {kind}")},
            {"const": "value2", "title": format!("Second {kind}")},
            {"const": "value3", "title": format!("Third {kind}")},
        ])
    };
    let form = json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled("Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
        },
        "required": [],
    });
    let answer = ctx.elicit_with("enums", "Please select options from the enum fields", &form).await?;
    Ok(format!("Elicitation completed: {}", format_answer(&answer)))
}

#[derive(Deserialize, JsonSchema)]
struct Answer {
    text: String,
}

/// Asks the person, if the caller can ask one.
#[tool]
async fn test_streaming_elicitation(ctx: Context) -> Result<String, ToolError> {
    if !ctx.capabilities().elicit_form {
        return Ok("Streaming complete".to_owned());
    }
    Ok(match ctx.elicit::<Answer>("answer", "What should be streamed?").await? {
        ElicitResult::Accepted(answer) => format!("Streaming complete: {}", answer.text),
        ElicitResult::Declined | ElicitResult::Cancelled => {
            "Streaming complete, without an answer".to_owned()
        }
    })
}

fn format_answer(answer: &ElicitResult<Value>) -> String {
    match answer {
        ElicitResult::Accepted(content) => format!("action=accept, content={content}"),
        ElicitResult::Declined => "action=decline, content={}".to_owned(),
        ElicitResult::Cancelled => "action=cancel, content={}".to_owned(),
    }
}
