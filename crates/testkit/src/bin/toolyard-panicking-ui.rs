//! Runs the terminal UI over a server that panics on a reconnect command, in the UI's own thread. A
//! test checks that the terminal is restored even then.
#![allow(clippy::print_stderr, reason = "the caller reads why the UI cannot start")]

use std::process::ExitCode;
use std::sync::Arc;

use toolyard_hub::{
    BoxFuture, HubError, ManageError, Outcome, Principal, Source, SourceCall, SourceCommand, SourceName,
    SourceOffer, Yard,
};
use toolyard_tui::UiSettings;

struct Fuse(SourceName);

impl Source for Fuse {
    fn name(&self) -> &SourceName {
        &self.0
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::default()
    }

    #[expect(clippy::panic, reason = "the purpose of this program")]
    fn manage(&self, _order: SourceCommand) -> Result<(), ManageError> {
        panic!("intentional panic");
    }

    fn call<'a>(&'a self, _call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(async { Ok(Outcome::success(toolyard_hub::json::empty_object())) })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    toolyard_tui::restore_on_panic(|| {});
    let yard = Yard::with_sources([Arc::new(Fuse(SourceName::new("fuse"))) as Arc<dyn Source>]);
    let (_told, messages) = tokio::sync::mpsc::channel(1);
    let stop = tokio_util::sync::CancellationToken::new();
    match toolyard_tui::run(yard, Principal::owner(), UiSettings::default(), messages, stop).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toolyard-panicking-ui: {error}");
            ExitCode::FAILURE
        }
    }
}
