//! `toolyard read`

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolyard_hub::CallTarget;
use toolyard_upstream::ServerListKind;

use super::execute::{CommandCall, execute};
use super::result_output::{Destination, print, result_blocks};
use crate::Exit;
use crate::args::ReadArgs;
use crate::error::CommandError;
use crate::one_shot::{OneShotOptions, OneShotYard, ServerSelection};
use crate::terminal::{StdoutWriter, print_note};

pub(crate) async fn run(args: ReadArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    let wish = OneShotOptions::new(
        ServerSelection::Named(&args.uri),
        &[ServerListKind::Resources, ServerListKind::Templates],
    );
    let visit = OneShotYard::open(&args.which, wish, &stop).await?;
    let target = CallTarget::Resource { uri: args.uri.clone() };
    let performed =
        execute(&visit, CommandCall::new(target), &stop).await.map_err(|error| visit.explain(error));
    let done = performed.and_then(|performed| show(&args, performed.outcome.body.get()));
    visit.close().await;
    done.map(|()| Exit::Success)
}

fn show(args: &ReadArgs, body: &str) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    if args.json {
        out.write_line(body)?;
    } else {
        let result: Value = serde_json::from_str(body).unwrap_or_default();
        let contents = result.get("contents").and_then(Value::as_array).into_iter().flatten();
        let pieces = result_blocks(contents);
        if pieces.is_empty() {
            print_note("the resource is empty");
        }
        print(&mut out, &pieces, &Destination { file: args.output.as_deref(), raw_bytes: true })?;
    }
    Ok(out.flush()?)
}
