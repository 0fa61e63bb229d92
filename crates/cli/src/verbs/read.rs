//! `toolyard read`

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolyard_hub::What;
use toolyard_upstream::Lists;

use super::answer::{Destination, pieces, print};
use super::perform::{Order, perform};
use crate::Exit;
use crate::args::ReadArgs;
use crate::fault::Fault;
use crate::terminal::{Out, note};
use crate::visit::{Need, Visit, Wish};

pub(crate) async fn run(args: ReadArgs, stop: CancellationToken) -> Result<Exit, Fault> {
    let wish = Wish::new(Need::Named(&args.uri), &[Lists::Resources, Lists::Templates]);
    let visit = Visit::open(&args.which, wish, &stop).await?;
    let what = What::Resource { uri: args.uri.clone() };
    let performed = perform(&visit, Order::new(what), &stop).await.map_err(|error| visit.explain(error));
    let done = performed.and_then(|performed| show(&args, performed.outcome.body.get()));
    visit.close().await;
    done.map(|()| Exit::Fine)
}

fn show(args: &ReadArgs, body: &str) -> Result<(), Fault> {
    let mut out = Out::new();
    if args.json {
        out.line(body)?;
    } else {
        let result: Value = serde_json::from_str(body).unwrap_or_default();
        let contents = result.get("contents").and_then(Value::as_array).into_iter().flatten();
        let pieces = pieces(contents);
        if pieces.is_empty() {
            note("the resource is empty");
        }
        print(&mut out, &pieces, &Destination { file: args.output.as_deref(), raw_bytes: true })?;
    }
    Ok(out.flush()?)
}
