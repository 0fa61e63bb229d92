//! Complete documents: those of the repository, and those of any folder that
//! TOOLYARD_OPENAPI_CORPUS names.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use toolyard_openapi::{ConvertSettings, DiagnosticSeverity, DocumentLocation, LoadSettings, convert, load};

use super::soundness;

const METHODS: [&str; 9] = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];

/// Files with these extensions, in all folders below.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|end| ["json", "yaml", "yml"].iter().any(|known| end == *known))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The number of operations of a document, counted without the converter. `None` if its paths are
/// in other files.
fn counted(document: &Value) -> Option<usize> {
    let paths = document.get("paths")?.as_object()?;
    let mut count = 0;
    for (path, item) in paths.iter().filter(|(path, _)| !path.starts_with("x-")) {
        let _ = path;
        let item = item.as_object()?;
        if item.contains_key("$ref") {
            return None;
        }
        count +=
            item.iter().filter(|(key, value)| METHODS.contains(&key.as_str()) && value.is_object()).count();
        count += item.get("additionalOperations").and_then(Value::as_object).map_or(0, |more| more.len());
    }
    Some(count)
}

struct Tally {
    documents: usize,
    operations: usize,
    refused: Vec<String>,
    faults: Vec<String>,
    warnings: usize,
    slowest: (Duration, String),
}

fn run(folder: &Path) -> Tally {
    let mut tally = Tally {
        documents: 0,
        operations: 0,
        refused: Vec::new(),
        faults: Vec::new(),
        warnings: 0,
        slowest: (Duration::ZERO, String::new()),
    };
    for path in documents(folder) {
        let name = path.strip_prefix(folder).unwrap().display().to_string();
        let began = Instant::now();
        let document = match load(&DocumentLocation::File(path), &LoadSettings::default()) {
            Ok(document) => document,
            Err(error) => {
                tally.refused.push(error.to_string());
                continue;
            }
        };
        let conversion = convert(&document, &ConvertSettings::default());
        let took = began.elapsed();
        if took > tally.slowest.0 {
            tally.slowest = (took, name.clone());
        }
        tally.documents += 1;
        tally.operations += conversion.operations.len();
        tally.warnings +=
            conversion.diagnostics.iter().filter(|found| found.severity > DiagnosticSeverity::Note).count();
        if let Err(fault) = soundness::check(&conversion) {
            tally.faults.push(format!("{name}: {fault}"));
        }
        let expected = counted(&document.value());
        if expected.is_some_and(|expected| expected != conversion.operations.len()) {
            tally
                .faults
                .push(format!("{name}: {expected:?} operations, {} tools", conversion.operations.len()));
        }
    }
    tally
}

/// Converts the documents of the folder in TOOLYARD_OPENAPI_CORPUS, if it is set.
#[allow(clippy::disallowed_methods, reason = "the environment selects the documents to test")]
#[test]
fn every_operation_of_the_documents_here_has_a_sound_tool() {
    let ours = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/openapi");
    let folder = std::env::var_os("TOOLYARD_OPENAPI_CORPUS").map_or_else(ours, Into::into);
    let tally = run(&folder);
    println!("{} documents, {} operations, {} warnings", tally.documents, tally.operations, tally.warnings);
    println!("slowest: {:?} {}", tally.slowest.0, tally.slowest.1);
    assert_eq!(tally.faults, Vec::<String>::new());
    assert_eq!(tally.refused, Vec::<String>::new());
    assert!(tally.documents >= 12 && tally.operations > 500, "{} {}", tally.documents, tally.operations);
}
