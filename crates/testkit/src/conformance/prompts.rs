//! The prompts of the suite.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{
    Content, Contents, Context, ElicitResult, Message, NativeSource, Prompt, ToolError, Values,
};

use super::PNG;

pub(super) fn register(native: NativeSource) -> NativeSource {
    native
        .prompt(
            Prompt::new("test_simple_prompt", |_, _| async { Ok("This is a simple prompt for testing.") })
                .description("A prompt without arguments."),
        )
        .prompt(
            Prompt::new("test_prompt_with_arguments", with_arguments)
                .description("A prompt with two arguments.")
                .argument("arg1", "The first argument.")
                .argument("arg2", "The second argument.")
                .complete_from("arg1", ["test", "testValue1", "other"])
                .complete_from("arg2", ["testValue2"]),
        )
        .prompt(
            Prompt::new("test_prompt_with_embedded_resource", with_embedded_resource)
                .description("A prompt with a resource in it.")
                .argument("resourceUri", "The address of the resource."),
        )
        .prompt(
            Prompt::new("test_prompt_with_image", with_image).description("A prompt with a picture in it."),
        )
        .prompt(
            Prompt::new("test_input_required_result_prompt", with_question)
                .description("A prompt that asks before it answers."),
        )
}

async fn with_arguments(arguments: Values, _: Context) -> Result<String, ToolError> {
    let (first, second) = (arguments.text("arg1"), arguments.text("arg2"));
    Ok(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))
}

async fn with_embedded_resource(arguments: Values, _: Context) -> Result<Vec<Message>, ToolError> {
    let contents = Contents::text("Embedded resource content for testing.").mime_type("text/plain");
    Ok(vec![
        Message::user(Content::resource(arguments.text("resourceUri"), contents)),
        Message::user("Please process the embedded resource above."),
    ])
}

async fn with_image(_: Values, _: Context) -> Result<Vec<Message>, ToolError> {
    Ok(vec![
        Message::user(Content::image(PNG, "image/png")),
        Message::user("Please analyze the image above."),
    ])
}

#[derive(Deserialize, JsonSchema)]
struct Background {
    context: String,
}

async fn with_question(_: Values, ctx: Context) -> Result<String, ToolError> {
    let answer = ctx.elicit::<Background>("user_context", "What context should the prompt use?").await?;
    Ok(match answer {
        ElicitResult::Accepted(background) => format!("Use this context: {}", background.context),
        ElicitResult::Declined | ElicitResult::Cancelled => "Use no context.".to_owned(),
    })
}
