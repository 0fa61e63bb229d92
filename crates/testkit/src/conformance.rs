//! The yard that the official conformance suite runs against. Names, keys and texts are the suite's
//! own; encoding them for the wire is the job of the front.

use std::sync::Arc;

use toolyard_hub::Yard;
use toolyard_sdk::NativeSource;

mod content;
mod elicitation;
mod input_required;
mod prompts;
mod protocol;
mod resources;

/// A one-pixel image.
const PNG: &[u8] = b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\
    \x00\x1f\x15\xc4\x89\x00\x00\x00\x0dIDATx\xdac\xfc\xcf\xc0\xf0\x1f\x00\x05\x05\x02\x00_\xc8\xf1\xd2\x00\x00\
    \x00\x00IEND\xaeB`\x82";

/// A sound without samples.
const WAV: &[u8] =
    b"RIFF&\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00\x00}\x00\x00\x02\x00\
    \x10\x00data\x02\x00\x00\x00";

/// Creates a new fixture, so that runs of the suite do not see each other's changes.
pub fn yard() -> Arc<Yard> {
    // The suite calls the first tool of the list without arguments, so the first tool must not
    // require any.
    let native = NativeSource::new("conformance")
        .tools(content::tools())
        .tools(protocol::tools())
        .tools(elicitation::tools())
        .tools(input_required::tools());
    let native = resources::register(native);
    let native = prompts::register(native);
    Yard::with_sources([native.into_source()])
}

#[cfg(test)]
mod tests;
