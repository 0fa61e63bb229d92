//! The terminal UI over a server that panics when it is told to reconnect, in the UI's own thread: for the test that the
//! terminal is given back also then.
#![allow(clippy::print_stderr, reason = "the caller reads why it cannot start")]

use std::process::ExitCode;
use std::sync::Arc;

use toolyard_hub::{
    BoxFuture, Call, Error, ManageError, Offer, Order, Outcome, Principal, Source, SourceName, Yard,
};
use toolyard_tui::Settings;

struct Fuse(SourceName);

impl Source for Fuse {
    fn name(&self) -> &SourceName {
        &self.0
    }

    fn offer(&self) -> Arc<Offer> {
        Arc::default()
    }

    #[expect(clippy::panic, reason = "it is what this is for")]
    fn manage(&self, _order: Order) -> Result<(), ManageError> {
        panic!("this panic was wanted");
    }

    fn call<'a>(&'a self, _call: Call) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async { Ok(Outcome::success(toolyard_hub::json::empty_object())) })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    toolyard_tui::restore_before_panics(|| {});
    let yard = Yard::of([Arc::new(Fuse(SourceName::new("fuse"))) as Arc<dyn Source>]);
    let (_told, messages) = tokio::sync::mpsc::channel(1);
    let stop = tokio_util::sync::CancellationToken::new();
    match toolyard_tui::run(yard, Principal::owner(), Settings::default(), messages, stop).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toolyard-panicking-ui: {error}");
            ExitCode::FAILURE
        }
    }
}
