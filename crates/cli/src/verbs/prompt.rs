//! `toolyard prompt`

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{What, json};
use toolyard_upstream::Lists;

use super::answer::{Destination, pieces, print};
use super::call::read_file;
use super::perform::{Order, perform};
use crate::Exit;
use crate::args::PromptArgs;
use crate::arguments::texts;
use crate::clean::clean_line;
use crate::fault::Fault;
use crate::terminal::Out;
use crate::visit::{Need, Visit, Wish};

pub(crate) async fn run(args: PromptArgs, stop: CancellationToken) -> Result<Exit, Fault> {
    let arguments = json::to_raw(&texts(&args.arguments, &read_file)?);
    let visit =
        Visit::open(&args.which, Wish::new(Need::Named(&args.name), &[Lists::Prompts]), &stop).await?;
    let what = What::Prompt { name: args.name.clone(), arguments: Some(arguments) };
    let performed = perform(&visit, Order::new(what), &stop).await.map_err(|error| visit.explain(error));
    let done = performed.and_then(|performed| show(&args, performed.outcome.body.get()));
    visit.close().await;
    done.map(|()| Exit::Fine)
}

/// Every message: who says it, on a line of its own, then what.
fn show(args: &PromptArgs, body: &str) -> Result<(), Fault> {
    let mut out = Out::new();
    if args.json {
        out.line(body)?;
        return Ok(out.flush()?);
    }
    let result: Value = serde_json::from_str(body).unwrap_or_default();
    let messages = result.get("messages").and_then(Value::as_array).into_iter().flatten();
    for (index, message) in messages.enumerate() {
        if index > 0 {
            out.line("")?;
        }
        let role = message.get("role").and_then(Value::as_str).unwrap_or("somebody");
        out.line(&format!("{}:", clean_line(role)))?;
        let content = message.get("content").unwrap_or(message);
        let pieces = match content {
            Value::Array(blocks) => pieces(blocks.iter()),
            block => pieces(std::iter::once(block)),
        };
        print(&mut out, &pieces, &Destination { file: None, raw_bytes: false })?;
    }
    Ok(out.flush()?)
}
