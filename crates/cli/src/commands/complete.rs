//! `toolyard complete`

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{CallTarget, CompletionReference, json};
use toolyard_upstream::ServerListKind;

use super::call::read_file;
use super::execute::{CommandCall, execute};
use crate::Exit;
use crate::args::{CompleteArgs, CompletionTarget};
use crate::error::CommandError;
use crate::one_shot::{OneShotOptions, OneShotYard, ServerSelection};
use crate::terminal::{StdoutWriter, print_hint, print_note};
use crate::tool_arguments::parse_text_arguments;

pub(crate) async fn run(args: CompleteArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    let others = parse_text_arguments(&args.others, &read_file)?;
    let context =
        if others.is_empty() { None } else { Some(json::to_raw(&serde_json::json!({"arguments": others}))) };
    let (lists, reference): (&[ServerListKind], _) = match args.of {
        CompletionTarget::Prompt => {
            (&[ServerListKind::Prompts], CompletionReference::Prompt(args.name.clone()))
        }
        CompletionTarget::Template => (
            &[ServerListKind::Resources, ServerListKind::Templates],
            CompletionReference::Template(args.name.clone()),
        ),
    };
    let visit =
        OneShotYard::open(&args.which, OneShotOptions::new(ServerSelection::Named(&args.name), lists), &stop)
            .await?;
    let (argument, value) = (args.argument.clone(), args.value.clone());
    let target = CallTarget::Completion { reference, argument, value, context };
    let performed =
        execute(&visit, CommandCall::new(target), &stop).await.map_err(|error| visit.explain(error));
    let done = performed.and_then(|performed| show(&args, performed.outcome.body.get()));
    visit.close().await;
    done.map(|()| Exit::Success)
}

fn show(args: &CompleteArgs, body: &str) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    if args.json {
        out.write_line(body)?;
        return Ok(out.flush()?);
    }
    let result: Value = serde_json::from_str(body).unwrap_or_default();
    let completion = result.get("completion");
    let values =
        completion.and_then(|value| value.get("values")).and_then(Value::as_array).into_iter().flatten();
    for value in values.filter_map(Value::as_str) {
        out.write_text(value)?;
    }
    if completion.and_then(|value| value.get("hasMore")).and_then(Value::as_bool) == Some(true) {
        print_note("more values are available");
        print_hint("type more of the value to narrow them down");
    }
    Ok(out.flush()?)
}
