//! Tools that report progress, stream their result, or fail.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{Context, ToolError, tool};

#[derive(Deserialize, JsonSchema)]
struct CountDown {
    /// The number to start from.
    #[schemars(range(min = 1, max = 100))]
    from: u32,
    /// How many milliseconds to wait after each number.
    #[serde(default = "fifty")]
    #[schemars(range(min = 0, max = 10_000))]
    delay_ms: u64,
}

fn fifty() -> u64 {
    50
}

/// Counts down to lift-off and reports progress at every number.
#[tool(title = "Count down", category = "progress", read_only = true, open_world = false)]
pub(super) async fn count_down(params: CountDown, ctx: Context) -> Result<&'static str, ToolError> {
    for done in 1..=params.from {
        let percent = f64::from(done) * 100.0 / f64::from(params.from);
        ctx.report_progress(percent, format!("{}…", params.from - done + 1));
        tokio::time::sleep(Duration::from_millis(params.delay_ms)).await;
    }
    Ok("Lift-off!")
}

#[derive(Deserialize, JsonSchema)]
struct Words {
    /// The text to split into words.
    text: String,
}

/// Streams the words of a text one at a time, then returns their count.
#[tool(
    title = "Stream words",
    category = "streaming",
    version = "2.0.0",
    deprecates = "1.0.0",
    read_only = true,
    idempotent = true,
    open_world = false
)]
pub(super) async fn stream_words(params: Words, ctx: Context) -> Result<String, ToolError> {
    let stream = ctx.stream();
    let mut count = 0;
    for word in params.text.split_whitespace() {
        stream.write(word).await;
        count += 1;
    }
    stream.end();
    Ok(words(count))
}

/// Returns the word count of a text.
#[tool(
    name = "stream_words",
    title = "Stream words",
    category = "streaming",
    version = "1.0.0",
    read_only = true,
    idempotent = true,
    open_world = false
)]
pub(super) async fn stream_words_without_streaming(params: Words) -> Result<String, ToolError> {
    Ok(words(params.text.split_whitespace().count()))
}

fn words(count: usize) -> String {
    if count == 1 { "1 word".to_owned() } else { format!("{count} words") }
}

#[derive(Deserialize, JsonSchema)]
struct Failure {
    /// The error message.
    message: String,
}

/// Fails with the message that you pass.
#[tool(title = "Fail", category = "errors", read_only = true, open_world = false)]
pub(super) async fn fail(params: Failure) -> Result<(), ToolError> {
    Err(ToolError::failed(params.message))
}
