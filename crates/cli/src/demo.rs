//! The built-in demo yard: a few tools, resources and prompts that show every feature.

use std::sync::Arc;

use toolyard_hub::Source;
use toolyard_sdk::NativeSource;

mod numbers;
mod people;
mod png;
mod resources;
mod streaming;
mod swatch;

/// The demo tools, as a source.
pub(crate) fn source() -> Arc<dyn Source> {
    let native = NativeSource::new("demo").tools([
        numbers::add(),
        numbers::convert_temperature(),
        streaming::count_down(),
        streaming::stream_words(),
        streaming::stream_words_without_streaming(),
        swatch::draw_swatch(),
        streaming::fail(),
        people::admin_report(),
        people::ask_name(),
    ]);
    resources::register(native).into_source()
}

#[cfg(test)]
mod tests;
