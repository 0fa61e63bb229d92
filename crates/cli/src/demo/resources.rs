//! The resource, the resource template and the prompt of the demo yard.

use toolyard_sdk::{
    Context, NativeHandle, NativeSource, Prompt, Resource, ResourceTemplate, ToolError, Values,
};

const ABOUT: &str = "\
# The demo yard

Tools for trying every feature: `add` and `convert_temperature` return structured results, `count_down` reports
progress, `stream_words` streams its result, `draw_swatch` returns an image, `fail` fails, `ask_name` asks a
question, and `admin_report` requires the permission `admin`. Version 1.0.0 of `stream_words` is deprecated.

Read `demo://squares/12` for the square of a number. Get the prompt `explain_tool` to have a tool explained.
";

const AUDIENCES: [&str; 5] = ["beginner", "child", "developer", "expert", "operator"];

pub(super) fn register(native: NativeSource) -> NativeSource {
    let (suggesting, explaining) = (native.handle(), native.handle());
    native
        .resource(
            Resource::text("demo://about", "about", ABOUT)
                .title("About the demo")
                .description("What the demo yard offers.")
                .mime_type("text/markdown"),
        )
        .template(
            ResourceTemplate::new("demo://squares/{n}", "squares", square)
                .title("Squares")
                .description("The square of any integer.")
                .mime_type("text/plain"),
        )
        .prompt(
            Prompt::new("explain_tool", move |arguments, _| explain(explaining.clone(), arguments))
                .title("Explain a tool")
                .description("Asks a model to explain a tool of the demo yard.")
                .argument("tool", "The name of the tool.")
                .optional_argument("audience", "The audience of the explanation.")
                .complete("tool", move |typed, _| std::future::ready(matching_tools(&suggesting, &typed)))
                .complete_from("audience", AUDIENCES),
        )
}

async fn square(values: Values, _: Context) -> Result<String, ToolError> {
    let n = values.text("n");
    let square = n.parse::<i128>().ok().and_then(|n| n.checked_mul(n));
    Ok(square.ok_or_else(|| ToolError::not_found(format_args!("the square of {n}")))?.to_string())
}

async fn explain(native: NativeHandle, arguments: Values) -> Result<String, ToolError> {
    let (name, audience) = (arguments.text("tool"), arguments.get("audience").unwrap_or("beginner"));
    let tools = native.tools();
    let tool = tools.iter().find(|tool| tool.name() == name);
    let tool = tool.ok_or_else(|| ToolError::invalid("tool", "is not a tool of the demo yard", name))?;
    Ok(format!(
        "Explain the tool `{name}` to this audience: {audience}. Say what it does and when to use it, and show one \
         call with its arguments.\n\nIts definition:\n\n```json\n{}\n```",
        tool.to_definition()
    ))
}

fn matching_tools(native: &NativeHandle, typed: &str) -> Vec<String> {
    tool_names(native).into_iter().filter(|name| name.starts_with(typed)).collect()
}

/// Returns the name of every tool once, regardless of the number of its versions.
pub(super) fn tool_names(native: &NativeHandle) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for tool in native.tools() {
        if !names.iter().any(|name| name == tool.name()) {
            names.push(tool.name().to_owned());
        }
    }
    names
}
