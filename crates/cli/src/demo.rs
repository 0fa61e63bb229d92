//! The demo yard: a few tools, resources and prompts to try everything with, in the binary itself.

use std::sync::Arc;

use toolyard_hub::Source;
use toolyard_sdk::Native;

mod library;
mod numbers;
mod people;
mod png;
mod swatch;
mod words;

/// The demo tools, as a source.
pub(crate) fn source() -> Arc<dyn Source> {
    let native = Native::new("demo").tools([
        numbers::add(),
        numbers::convert_temperature(),
        words::count_down(),
        words::stream_words(),
        words::stream_words_without_streaming(),
        swatch::draw_swatch(),
        words::fail(),
        people::admin_report(),
        people::ask_name(),
    ]);
    library::offer(native).into_source()
}

#[cfg(test)]
mod tests;
