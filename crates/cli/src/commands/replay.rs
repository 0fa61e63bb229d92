//! `toolyard replay`: serves a recording in place of the server.

use std::path::Path;

use tokio_util::sync::CancellationToken;
use toolyard_cassette::{
    BoundFront, Cassette, CassetteError, Replay, ReplayTiming, replay_http, replay_stdio,
};

use super::record::front_error;
use crate::Exit;
use crate::args::ReplayArgs;
use crate::error::CommandError;
use crate::terminal::{self, print_warning};

pub(crate) async fn run(args: ReplayArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    let cassette = open_cassette(&args.cassette)?;
    let timing = if args.timing { ReplayTiming::Recorded } else { ReplayTiming::Immediate };
    let replay = Replay::new(&cassette, timing);
    let Some(address) = args.listen else {
        let streams = (tokio::io::stdin(), tokio::io::stdout());
        replay_stdio(replay, streams, stop).await.map_err(anyhow::Error::new)?;
        return Ok(Exit::Success);
    };
    let front = BoundFront::bind(address).await.map_err(|error| front_error(&error))?;
    terminal::print(&format!("http://{}/mcp\n", front.address()))?;
    replay_http(replay, front, stop).await;
    Ok(Exit::Success)
}

/// Reads a recording. Warns if it is not complete.
fn open_cassette(path: &Path) -> Result<Cassette, CommandError> {
    let cassette = Cassette::open(path).map_err(|error| cassette_error(path, &error))?;
    for note in &cassette.notes {
        print_warning(&format!("{}: {note}", path.display()));
    }
    Ok(cassette)
}

/// Returns the error for a recording that cannot be read or written.
pub(super) fn cassette_error(path: &Path, error: &CassetteError) -> CommandError {
    CommandError::usage(format!("{}: {error}", path.display())).suggest(error.suggestion())
}
