//! Tools that ask their caller.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{Context, ElicitResult, Tool, ToolError, tool};

pub(super) fn tools() -> Vec<Tool> {
    vec![ask(), ask_twice()]
}

#[derive(Deserialize, JsonSchema)]
struct Occasion {
    /// What the question is about.
    about: String,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// The name.
    name: String,
}

/// Asks for a name.
#[tool]
async fn ask(params: Occasion, ctx: Context) -> Result<String, ToolError> {
    let answer = ctx.elicit::<Name>("name", &format!("Who is it, for {}?", params.about)).await?;
    Ok(format!("{}: {}", params.about, answer_text(answer)))
}

/// Asks for two names, one after the other.
#[tool]
async fn ask_twice(ctx: Context) -> Result<String, ToolError> {
    let first = answer_text(ctx.elicit::<Name>("first", "Who is first?").await?);
    let second = answer_text(ctx.elicit::<Name>("second", "Who is second?").await?);
    Ok(format!("{first}, then {second}"))
}

fn answer_text(answer: ElicitResult<Name>) -> String {
    match answer {
        ElicitResult::Accepted(name) => name.name,
        ElicitResult::Declined => "declined".to_owned(),
        ElicitResult::Cancelled => "cancelled".to_owned(),
    }
}
