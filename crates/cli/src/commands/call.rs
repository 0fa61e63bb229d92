//! `toolyard call`

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolyard_config::Config;
use toolyard_hub::{CallTarget, json};
use toolyard_upstream::ServerListKind;

use super::execute::{CommandCall, CommandOutcome, ProgressMode, execute};
use super::result_output::{self, Destination, print_failure, result_blocks};
use super::save_test::save_test;
use crate::Exit;
use crate::args::CallArgs;
use crate::clean::clean_line;
use crate::configuration::process_environment;
use crate::error::CommandError;
use crate::name_cache::NameCache;
use crate::one_shot::{OneShotOptions, OneShotYard, ServerSelection};
use crate::terminal::{StdoutWriter, print_note};
use crate::tool_arguments::parse_arguments;

/// Limit on a file or standard input passed as an argument.
const LARGEST: u64 = 64 * 1024 * 1024;

pub(crate) async fn run(args: CallArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    if let Some(fault) = server_instead_of_tool_error(&args) {
        return Err(fault);
    }
    let wish = OneShotOptions {
        call_time: args.timeout,
        ..OneShotOptions::new(ServerSelection::Named(&args.tool), &[ServerListKind::Tools])
    };
    let visit = OneShotYard::open(&args.which, wish, &stop).await?;
    let done = call(&args, &visit, &stop).await;
    visit.close().await;
    done
}

/// Explains `call SERVER TOOL` before any server is started.
fn server_instead_of_tool_error(args: &CallArgs) -> Option<CommandError> {
    let (server, tool) = (&args.tool, args.arguments.first()?);
    if tool.contains('=') || !args.which.other.is_empty() || args.which.server.is_some() {
        return None;
    }
    let config = Config::load(&args.which.config, &process_environment()).ok()?;
    let entry = config.servers().iter().find(|entry| entry.name().as_str() == server)?;
    // If the server is known to lack the tool, the user meant something else.
    if args.which.config.is_empty() && NameCache::load().lacks(server, tool, &[ServerListKind::Tools]) {
        return None;
    }
    let fault = CommandError::usage(format!("`{server}` is a server, not a tool"));
    let tool = clean_line(tool);
    let plain = tool.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter));
    Some(match plain {
        true => fault.suggest(format!(
            "run `toolyard call {}{tool}` or `toolyard call --server {server} {tool}`",
            entry.name().prefix()
        )),
        false => fault.suggest(format!("run `toolyard call --server {server} TOOL`")),
    })
}

async fn call(args: &CallArgs, visit: &OneShotYard, stop: &CancellationToken) -> Result<Exit, CommandError> {
    let tool = visit.yard.find_tool(&args.tool, &visit.principal);
    let tool = tool.map_err(|error| visit.explain(error))?;
    let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
    let made = parse_arguments(args.args.as_deref(), &args.arguments, &schema, &read_file)?;
    let arguments: Value = serde_json::from_str(made.get()).unwrap_or_default();
    let target = CallTarget::Tool { name: tool.full_name.to_string(), arguments: Some(made) };
    let telling = if args.progress { ProgressMode::Lines } else { ProgressMode::Bar };
    let performed =
        execute(visit, CommandCall { target, timeout: args.timeout, progress_mode: telling }, stop).await;
    if let Some(path) = &args.save_test {
        let result = performed.as_ref().map(|performed| &performed.outcome);
        save_test(path, &args.which.other, &tool, arguments, result)?;
    }
    let performed = performed.map_err(|error| {
        let invalid = error.kind() == toolyard_hub::ErrorKind::InvalidArguments;
        let fault = CommandError::from(error);
        match (&fault, invalid) {
            (CommandError::Failure { suggestion: None, .. }, true) => {
                fault.suggest(format!("run `toolyard inspect {}` to see its parameters", tool.full_name))
            }
            _ => fault,
        }
    })?;
    show(args, performed)
}

fn show(args: &CallArgs, performed: CommandOutcome) -> Result<Exit, CommandError> {
    let CommandOutcome { outcome, chunks } = performed;
    let mut out = StdoutWriter::new();
    if args.json && chunks.is_empty() {
        out.write_line(outcome.body.get())?;
        out.flush()?;
        return Ok(if outcome.failed { Exit::ToolFailed } else { Exit::Success });
    }
    let mut result: Value = serde_json::from_str(outcome.body.get()).unwrap_or_default();
    // Streamed chunks are part of the result.
    let mut content = chunks;
    if let Some(Value::Array(rest)) = result.get_mut("content").map(Value::take) {
        content.extend(rest);
    }
    if args.json {
        result["content"] = Value::Array(content);
        out.write_line(json::to_raw(&result).get())?;
        out.flush()?;
        return Ok(if outcome.failed { Exit::ToolFailed } else { Exit::Success });
    }
    let pieces = result_blocks(content.iter());
    if outcome.failed {
        return Ok(print_failure(&pieces));
    }
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    match (pieces.is_empty(), structured) {
        (true, Some(value)) if args.output.is_none() => result_output::print_json(&mut out, value)?,
        (true, Some(value)) => {
            let pieces = [result_output::ResultBlock::Other(value.clone())];
            result_output::print(
                &mut out,
                &pieces,
                &Destination { file: args.output.as_deref(), raw_bytes: false },
            )?;
        }
        (true, None) => print_note("the tool returned no content"),
        (false, _) => {
            result_output::print(
                &mut out,
                &pieces,
                &Destination { file: args.output.as_deref(), raw_bytes: false },
            )?;
        }
    }
    out.flush()?;
    Ok(Exit::Success)
}

/// Reads a file that an argument names.
pub(super) fn read_file(file: &str) -> Result<String, CommandError> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = match file {
        "-" => std::io::stdin().lock().take(LARGEST).read_to_end(&mut bytes),
        file => std::fs::File::open(file).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes)),
    };
    let name = if file == "-" { "standard input" } else { file };
    read.map_err(|error| CommandError::usage(format!("cannot read {name}: {error}")))?;
    String::from_utf8(bytes).map_err(|_| CommandError::usage(format!("cannot read {name}: not valid UTF-8")))
}
