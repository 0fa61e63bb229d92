//! `toolyard diff`: compares what two servers, versions or saved lists offer, or the servers of the
//! configuration with the lock file.

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use toolyard_definitions::ServerOffer;
use toolyard_definitions::compare::{
    ChangeClass, OfferChange, compare_named_offers, compare_offers, render_changes_as_markdown,
    render_changes_as_text,
};

use super::{lock, offer_operand};
use crate::Exit;
use crate::args::{DiffArgs, ServerSelectionArgs};
use crate::error::CommandError;
use crate::one_shot::collect_offers;
use crate::terminal::StdoutWriter;

pub(crate) async fn run(args: DiffArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    let changes = match (&args.old, &args.new) {
        (Some(old), Some(new)) => {
            // Both are understood before a server is started.
            let usual = selection(&args);
            let (old, new) = (offer_operand::parse(old, &usual)?, offer_operand::parse(new, &usual)?);
            let old = old.read(&usual, &stop).await?;
            let new = new.read(&usual, &stop).await?;
            compare_offers(&old, &new)
        }
        _ => compare_with_lock(&args, &stop).await?,
    };
    show(&args, &changes)?;
    let least = args.fail_on.map(ChangeClass::from).or(args.locked.then_some(ChangeClass::Wording));
    let counts = changes.iter().any(|change| least.is_some_and(|least| change.class >= least));
    Ok(if counts { Exit::Different } else { Exit::Success })
}

async fn compare_with_lock(
    args: &DiffArgs,
    stop: &CancellationToken,
) -> Result<Vec<OfferChange>, CommandError> {
    let path = lock::lock_path(args.lock_file.as_deref(), &args.config);
    let locked = lock::read(&path)?;
    let running = collect_offers(&selection(args), stop).await?;
    let is_selected = |offer: &ServerOffer| args.server.as_ref().is_none_or(|name| *name == offer.name);
    let locked: Vec<ServerOffer> = locked.into_offers().into_iter().filter(is_selected).collect();
    Ok(compare_named_offers(&locked, &running))
}

/// The servers of the configuration that the command uses.
fn selection(args: &DiffArgs) -> ServerSelectionArgs {
    ServerSelectionArgs {
        config: args.config.clone(),
        server: args.server.clone(),
        start_timeout: args.start_timeout,
        ..ServerSelectionArgs::default()
    }
}

#[derive(Serialize)]
struct DiffReport<'a> {
    breaking: usize,
    compatible: usize,
    wording: usize,
    changes: &'a [OfferChange],
}

fn show(args: &DiffArgs, changes: &[OfferChange]) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    if args.json {
        let count = |class: ChangeClass| changes.iter().filter(|change| change.class == class).count();
        let report = DiffReport {
            breaking: count(ChangeClass::Breaking),
            compatible: count(ChangeClass::Compatible),
            wording: count(ChangeClass::Wording),
            changes,
        };
        out.write_line(&serde_json::to_string(&report).map_err(std::io::Error::from)?)?;
    } else if args.markdown {
        out.write_bytes(render_changes_as_markdown(changes).as_bytes())?;
    } else {
        let style = |class: ChangeClass, word: &str| {
            let color = match class {
                ChangeClass::Breaking => AnsiColor::Red,
                ChangeClass::Compatible => AnsiColor::Green,
                ChangeClass::Wording => AnsiColor::Blue,
            };
            out.styled(Style::new().fg_color(Some(color.into())), word)
        };
        let text = render_changes_as_text(changes, &style);
        out.write_bytes(text.as_bytes())?;
    }
    Ok(out.flush()?)
}
