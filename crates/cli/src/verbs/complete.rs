//! `toolyard complete`

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{Reference, What, json};
use toolyard_upstream::Lists;

use super::call::read_file;
use super::perform::{Order, perform};
use crate::Exit;
use crate::args::{CompleteArgs, Completed};
use crate::arguments::texts;
use crate::fault::Fault;
use crate::terminal::{Out, note};
use crate::visit::{Need, Visit, Wish};

pub(crate) async fn run(args: CompleteArgs, stop: CancellationToken) -> Result<Exit, Fault> {
    let others = texts(&args.others, &read_file)?;
    let context =
        if others.is_empty() { None } else { Some(json::to_raw(&serde_json::json!({"arguments": others}))) };
    let (lists, reference): (&[Lists], _) = match args.of {
        Completed::Prompt => (&[Lists::Prompts], Reference::Prompt(args.name.clone())),
        Completed::Template => {
            (&[Lists::Resources, Lists::Templates], Reference::Template(args.name.clone()))
        }
    };
    let visit = Visit::open(&args.which, Wish::new(Need::Named(&args.name), lists), &stop).await?;
    let (argument, value) = (args.argument.clone(), args.value.clone());
    let what = What::Completion { reference, argument, value, context };
    let performed = perform(&visit, Order::new(what), &stop).await.map_err(|error| visit.explain(error));
    let done = performed.and_then(|performed| show(&args, performed.outcome.body.get()));
    visit.close().await;
    done.map(|()| Exit::Fine)
}

fn show(args: &CompleteArgs, body: &str) -> Result<(), Fault> {
    let mut out = Out::new();
    if args.json {
        out.line(body)?;
        return Ok(out.flush()?);
    }
    let result: Value = serde_json::from_str(body).unwrap_or_default();
    let completion = result.get("completion");
    let values = completion.and_then(|it| it.get("values")).and_then(Value::as_array).into_iter().flatten();
    for value in values.filter_map(Value::as_str) {
        out.text(value)?;
    }
    if completion.and_then(|it| it.get("hasMore")).and_then(Value::as_bool) == Some(true) {
        note("there are more; say more of the value");
    }
    Ok(out.flush()?)
}
