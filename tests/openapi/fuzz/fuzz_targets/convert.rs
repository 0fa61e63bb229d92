//! Any bytes at all are read and converted; the seeds are in tests/data/openapi.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_openapi::{ConvertSettings, LoadSettings, Location, convert, load};

fuzz_target!(|bytes: &[u8]| {
    let location = Location::Text { text: String::from_utf8_lossy(bytes).into_owned(), folder: None };
    if let Ok(document) = load(&location, &LoadSettings::default()) {
        for operation in convert(&document, &ConvertSettings::default()).operations {
            assert!(operation.name.len() <= 60);
            serde_json::from_str::<serde_json::Value>(operation.definition.get()).expect("a definition is JSON");
        }
    }
});
