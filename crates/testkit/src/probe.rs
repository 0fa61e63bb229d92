//! A yard for tests of the wire: one tool per thing that can go wrong between a client and a tool. What it says
//! about itself is odd on purpose; how that travels is the front's business.

use std::sync::Arc;

use toolyard_hub::{Source, Yard};
use toolyard_sdk::{NativeSource, Prompt, Resource};

mod lists;
mod odd;
mod people;
mod time;

pub use odd::{DEFINITION as ODD_DEFINITION, RESULT as ODD_RESULT};

/// The resource that `touch` says has changed.
pub const NOTE: &str = "probe://note";

/// The probe, fresh.
pub fn yard() -> Arc<Yard> {
    Yard::with_sources([source()])
}

/// What the probe offers, as a source.
pub fn source() -> Arc<dyn Source> {
    let native = NativeSource::new("probe")
        .tools(odd::tools())
        .tools(time::tools())
        .tools(people::tools())
        .tools(lists::tools())
        .resource(Resource::text(NOTE, "note", "what the note says"))
        .resource(Resource::text("probe://other", "other", "what the other says"))
        .prompt(Prompt::new("greet", |_, _| async { Ok("Say hello.") }).description("Greets."));
    native.into_source()
}
