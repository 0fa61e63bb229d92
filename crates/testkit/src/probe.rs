//! A yard for tests of the wire, with one tool for each thing that can go wrong between a client
//! and a tool. Its definitions are unusual on purpose; encoding them is the job of the front.

use std::sync::Arc;

use toolyard_hub::{Source, Yard};
use toolyard_sdk::{NativeSource, Prompt, Resource};

mod lists;
mod odd;
mod people;
mod time;

pub use odd::{DEFINITION as ODD_DEFINITION, RESULT as ODD_RESULT};

/// The resource that `touch` announces as changed.
pub const NOTE: &str = "probe://note";

/// Creates a new probe.
pub fn yard() -> Arc<Yard> {
    Yard::with_sources([source()])
}

/// Returns the probe as a source.
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
