//! `toolyard prompt`: gets a prompt and prints its messages.

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{CallTarget, json};
use toolyard_upstream::ServerListKind;

use super::call::read_file;
use super::execute::{CommandCall, execute};
use super::result_output::{Destination, print, result_blocks};
use crate::Exit;
use crate::args::PromptArgs;
use crate::clean::clean_line;
use crate::error::CommandError;
use crate::one_shot::{OneShotOptions, OneShotYard, ServerSelection};
use crate::terminal::StdoutWriter;
use crate::tool_arguments::parse_text_arguments;

pub(crate) async fn run(args: PromptArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    let arguments = json::to_raw(&parse_text_arguments(&args.arguments, &read_file)?);
    let visit = OneShotYard::open(
        &args.which,
        OneShotOptions::new(ServerSelection::Named(&args.name), &[ServerListKind::Prompts]),
        &stop,
    )
    .await?;
    let target = CallTarget::Prompt { name: args.name.clone(), arguments: Some(arguments) };
    let performed =
        execute(&visit, CommandCall::new(target), &stop).await.map_err(|error| visit.explain(error));
    let done = performed.and_then(|performed| show(&args, performed.outcome.body.get()));
    visit.close().await;
    done.map(|()| Exit::Success)
}

/// Prints every message: the role on a line of its own, then the content.
fn show(args: &PromptArgs, body: &str) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    if args.json {
        out.write_line(body)?;
        return Ok(out.flush()?);
    }
    let result: Value = serde_json::from_str(body).unwrap_or_default();
    let messages = result.get("messages").and_then(Value::as_array).into_iter().flatten();
    for (index, message) in messages.enumerate() {
        if index > 0 {
            out.write_line("")?;
        }
        let role = message.get("role").and_then(Value::as_str).unwrap_or("unknown role");
        out.write_line(&format!("{}:", clean_line(role)))?;
        let content = message.get("content").unwrap_or(message);
        let pieces = match content {
            Value::Array(blocks) => result_blocks(blocks.iter()),
            block => result_blocks(std::iter::once(block)),
        };
        print(&mut out, &pieces, &Destination { file: None, raw_bytes: false })?;
    }
    Ok(out.flush()?)
}
