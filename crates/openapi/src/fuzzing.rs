//! Entry points of the fuzz targets in `fuzz/` and of the test that replays their corpus. Nothing
//! else calls them. Each accepts any bytes and panics if an invariant does not hold.

use crate::{ConvertSettings, DocumentLocation, LoadSettings, convert, load};

/// OpenAPI documents: every readable document becomes tools with short, unique names and
/// definitions that are valid JSON.
pub fn document(bytes: &[u8]) {
    let location = DocumentLocation::Text { text: String::from_utf8_lossy(bytes).into_owned(), folder: None };
    let Ok(document) = load(&location, &LoadSettings::default()) else { return };
    let settings = ConvertSettings::default();
    let converted = convert(&document, &settings);
    let mut names = std::collections::BTreeSet::new();
    for operation in &converted.operations {
        assert!(operation.name.len() <= 60, "a name of {} bytes", operation.name.len());
        assert!(names.insert(operation.name.as_str()), "two tools are called {:?}", operation.name);
        let definition = operation.definition.get();
        assert!(serde_json::from_str::<serde_json::Value>(definition).is_ok(), "not JSON: {definition:?}");
    }
    // The conversion is deterministic.
    let again = convert(&document, &settings);
    let definitions = |conversion: &crate::Conversion| -> Vec<String> {
        conversion.operations.iter().map(|operation| operation.definition.get().to_owned()).collect()
    };
    assert_eq!(definitions(&converted), definitions(&again), "converting twice gives different tools");
}
