//! Tools that change what the yard offers, or announce a change.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{Context, Prompt, Resource, Tool, ToolError, tool};

/// The item that is added and removed.
const GUEST: &str = "guest";
const GUEST_URI: &str = "probe://guest";

pub(super) fn tools() -> Vec<Tool> {
    vec![touch(), change_tools(), change_prompts(), change_resources()]
}

#[derive(Deserialize, JsonSchema)]
struct Touched {
    /// The resource that has changed.
    uri: String,
}

/// Announces that a resource has changed.
#[tool]
async fn touch(params: Touched, ctx: Context) -> Result<(), ToolError> {
    ctx.resource_updated(&params.uri);
    Ok(())
}

/// Adds a tool, or removes it again.
#[tool]
async fn change_tools(ctx: Context) -> Result<(), ToolError> {
    let native = ctx.native();
    if native.tools().iter().any(|tool| tool.name() == GUEST) {
        native.remove_tool(GUEST);
    } else {
        native.add_tool(Tool::new(GUEST, || async { Ok("here") }).description("Comes and goes."));
    }
    Ok(())
}

/// Adds a prompt, or removes it again.
#[tool]
async fn change_prompts(ctx: Context) -> Result<(), ToolError> {
    let native = ctx.native();
    if native.prompts().iter().any(|prompt| prompt.name() == GUEST) {
        native.remove_prompt(GUEST);
    } else {
        native.add_prompt(Prompt::new(GUEST, |_, _| async { Ok("here") }));
    }
    Ok(())
}

/// Adds a resource, or removes it again.
#[tool]
async fn change_resources(ctx: Context) -> Result<(), ToolError> {
    let native = ctx.native();
    if native.resources().iter().any(|resource| resource.uri() == GUEST_URI) {
        native.remove_resource(GUEST_URI);
    } else {
        native.add_resource(Resource::text(GUEST_URI, GUEST, "here"));
    }
    Ok(())
}
