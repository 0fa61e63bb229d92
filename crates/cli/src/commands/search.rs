//! `toolyard search`

use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolyard_hub::ToolEntry;
use toolyard_program::rank_tools;
use toolyard_upstream::ServerListKind;

use crate::Exit;
use crate::args::SearchArgs;
use crate::clean::clean_line;
use crate::error::CommandError;
use crate::one_shot::{OneShotOptions, OneShotYard, ServerSelection};
use crate::terminal::{StdoutWriter, print_note};

pub(crate) async fn run(args: SearchArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    let visit = OneShotYard::open_and_report(
        &args.which,
        OneShotOptions::new(ServerSelection::All, &[ServerListKind::Tools]),
        &stop,
    )
    .await?;
    let mut hits = rank_tools(&visit.yard.catalog(), &args.words.join(" "));
    hits.retain(|tool| tool.is_listed_for(&visit.principal));
    hits.truncate(args.limit);
    let done = show(&args, &hits);
    visit.close().await;
    done.map(|()| Exit::Success)
}

fn show(args: &SearchArgs, hits: &[Arc<ToolEntry>]) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    let description = |tool: &ToolEntry| clean_line(tool.description.as_deref().unwrap_or_default());
    if args.json {
        let one = |tool: &Arc<ToolEntry>| {
            json!({
                "server": tool.source.as_str(), "name": tool.full_name.as_str(), "rawName": tool.raw_name,
                "title": tool.title, "description": tool.description,
            })
        };
        let all: Vec<_> = hits.iter().map(one).collect();
        out.write_line(&json!(all).to_string())?;
    } else if hits.is_empty() {
        print_note("no matching tools");
    } else {
        let rows: Vec<Vec<String>> =
            hits.iter().map(|tool| vec![tool.full_name.to_string(), description(tool)]).collect();
        out.write_table(&["tool", "description"], &rows)?;
    }
    Ok(out.flush()?)
}
