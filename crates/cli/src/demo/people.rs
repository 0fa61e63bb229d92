//! Tools that are about who is calling: one for administrators, one that asks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_sdk::{Context, ElicitResult, Json, ToolError, tool};

use super::resources::tool_names;

#[derive(Serialize, JsonSchema)]
struct Counts {
    /// How many tools the demo offers.
    tools: usize,
    /// How many resources it offers.
    resources: usize,
    /// How many prompts it offers.
    prompts: usize,
}

/// Counts what the demo offers. Only administrators see it.
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
    /// The word to greet with.
    #[serde(default = "hello")]
    greeting: String,
}

fn hello() -> String {
    "Hello".to_owned()
}

#[derive(Deserialize, JsonSchema)]
struct Person {
    /// What people call you.
    name: String,
}

/// Asks for your name and greets you.
#[tool(title = "Ask name", category = "questions", read_only = true, open_world = false)]
pub(super) async fn ask_name(params: Greeting, ctx: Context) -> Result<String, ToolError> {
    Ok(match ctx.elicit::<Person>("name", "What is your name?").await? {
        ElicitResult::Accepted(person) => format!("{}, {}!", params.greeting, person.name),
        ElicitResult::Declined => format!("{}, whoever you are. No name needed.", params.greeting),
        ElicitResult::Cancelled => format!("{}. Come back any time.", params.greeting),
    })
}
