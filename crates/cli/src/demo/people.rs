//! Tools that depend on the caller: one requires a permission, one asks a question.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_sdk::{Context, ElicitResult, Json, ToolError, tool};

use super::resources::tool_names;

#[derive(Serialize, JsonSchema)]
struct Counts {
    /// How many tools the demo yard offers.
    tools: usize,
    /// How many resources it offers.
    resources: usize,
    /// How many prompts it offers.
    prompts: usize,
}

/// Counts what the demo yard offers. Requires the permission `admin`.
#[tool(
    title = "Admin report",
    category = "permissions",
    permissions = ["admin"],
    read_only = true,
    open_world = false
)]
pub(super) async fn admin_report(ctx: Context) -> Result<Json<Counts>, ToolError> {
    let native = ctx.native();
    Ok(Json(Counts {
        tools: tool_names(native).len(),
        resources: native.resources().len(),
        prompts: native.prompts().len(),
    }))
}

#[derive(Deserialize, JsonSchema)]
struct Greeting {
    /// The greeting to use.
    #[serde(default = "hello")]
    greeting: String,
}

fn hello() -> String {
    "Hello".to_owned()
}

#[derive(Deserialize, JsonSchema)]
struct Person {
    /// Your name.
    name: String,
}

/// Asks for your name and greets you.
#[tool(title = "Ask name", category = "questions", read_only = true, open_world = false)]
pub(super) async fn ask_name(params: Greeting, ctx: Context) -> Result<String, ToolError> {
    Ok(match ctx.elicit::<Person>("name", "What is your name?").await? {
        ElicitResult::Accepted(person) => format!("{}, {}!", params.greeting, person.name),
        ElicitResult::Declined => format!("{}, stranger. No name needed.", params.greeting),
        ElicitResult::Cancelled => format!("{}. Come back any time.", params.greeting),
    })
}
