//! Replays the corpus of the fuzz targets: inputs that once broke something, and seeds of every
//! kind. `fuzz/README.md` explains how to create new ones.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A fuzz target: its name, and the function that it calls.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 10] = [
    ("config", toolyard_config::fuzzing::config),
    ("frame", toolyard_program::fuzzing::frames),
    ("head", toolyard_serve::fuzzing::head),
    ("jwt", toolyard_serve::fuzzing::jwt),
    ("message", toolyard_wire::fuzzing::message),
    ("mirrored_headers", toolyard_wire::fuzzing::mirrored_headers),
    ("openapi", toolyard_openapi::fuzzing::document),
    ("printable", toolyard_hub::fuzzing::printable),
    ("sse", toolyard_wire::fuzzing::events),
    ("uri_template", toolyard_hub::fuzzing::uri_template),
];

fn fuzz(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(path)
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_input_of_the_corpus_keeps_the_invariants() {
    let mut bytes_of_all = 0;
    for (target, check) in TARGETS {
        let folder = fuzz("corpus").join(target);
        let inputs = names(&folder);
        assert!(!inputs.is_empty(), "{target} has no corpus");
        for name in inputs {
            let bytes = std::fs::read(folder.join(&name)).unwrap();
            bytes_of_all += bytes.len();
            let checked = std::panic::catch_unwind(|| check(&bytes));
            assert!(checked.is_ok(), "fuzz/corpus/{target}/{name} breaks an invariant");
        }
    }
    assert!(bytes_of_all < 500_000, "the corpus has {bytes_of_all} bytes; keep it small");
}

#[test]
fn every_fuzz_target_is_replayed() {
    let known: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&fuzz("corpus")), known);
    let sources: BTreeSet<String> = known.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names(&fuzz("targets")), sources);
    let manifest = std::fs::read_to_string(fuzz("Cargo.toml")).unwrap();
    for name in &known {
        assert!(
            manifest.contains(&format!("path = \"targets/{name}.rs\"")),
            "{name} is not in fuzz/Cargo.toml"
        );
    }
}
