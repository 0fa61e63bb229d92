//! Stored results beside a test file, in `__snapshots__/`, and what is replaced before values are
//! compared.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde_json::Value;
use toolyard_hub::ExecutionId;

use crate::expect::AssertionFailure;
use crate::expect::diff::{diff, shorten};
use crate::expect::matcher::compile;
use crate::expect::path::replace;
use crate::file::{FilePosition, RedactionTarget, Redactor};

pub(crate) mod render;

use render::render_snapshot;
pub(crate) use render::render_value;

/// The folder beside a test file.
const FOLDER: &str = "__snapshots__";
/// The longest readable part of a file name, in characters.
const LONGEST_SLUG: usize = 80;
/// Larger snapshots are not stored.
const LARGEST: usize = 16 << 20;

/// A comparison with a stored result.
#[derive(Debug, Clone)]
pub struct SnapshotRequest {
    pub at: FilePosition,
    /// `None` uses the name of the test.
    pub name: Option<String>,
    pub redact: Vec<Redactor>,
}

/// What happens if a stored result differs or is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SnapshotMode {
    /// Missing ones are written. Different ones fail.
    #[default]
    WriteMissing,
    /// Missing and different ones are written, obsolete ones are removed.
    Update,
    /// Nothing is written: missing ones fail.
    ReadOnly,
}

/// The snapshots of one test file. Runs in several eras share it.
#[derive(Debug)]
pub(crate) struct SnapshotFolder {
    folder: PathBuf,
    mode: SnapshotMode,
    state: Mutex<SnapshotState>,
}

#[derive(Debug, Default)]
struct SnapshotState {
    /// The file names that were compared or written.
    used: BTreeSet<String>,
    /// Those of them that this run has written. They are not written again, so that two eras with
    /// different answers do not both pass.
    written: BTreeSet<String>,
}

impl SnapshotFolder {
    pub(crate) fn new(test_file: &Path, mode: SnapshotMode) -> Self {
        let stem = test_file.file_name().unwrap_or_default().to_string_lossy();
        let stem = stem.split('.').next().unwrap_or_default();
        let folder = test_file.parent().unwrap_or(Path::new("")).join(FOLDER).join(stem);
        Self { folder, mode, state: Mutex::default() }
    }

    /// Compares a value with the stored one, or stores it.
    pub(crate) fn check(&self, at: FilePosition, name: &str, value: &Value) -> Result<(), AssertionFailure> {
        let text = render_snapshot(name, value);
        let fail = |message: String| AssertionFailure::new(at, message);
        if text.len() > LARGEST {
            return Err(fail(format!("the snapshot exceeds the limit of {LARGEST} bytes")));
        }
        let file_name = snapshot_file_name(name);
        let path = self.folder.join(&file_name);
        // The lock is held while files are accessed: two eras may compare the same snapshot.
        let mut state = self.state.lock();
        state.used.insert(file_name.clone());
        let stored = match fs::read_to_string(&path) {
            Ok(stored) => Some(stored.replace("\r\n", "\n")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fail(format!("cannot read the snapshot {}: {error}", path.display()))),
        };
        let may_write = match (&stored, self.mode) {
            (Some(stored), _) if *stored == text => return Ok(()),
            (Some(_), SnapshotMode::Update) => !state.written.contains(&file_name),
            (None, SnapshotMode::Update | SnapshotMode::WriteMissing) => true,
            (Some(_), _) | (None, SnapshotMode::ReadOnly) => false,
        };
        if may_write {
            write_file(&self.folder, &file_name, &text)
                .map_err(|error| fail(format!("cannot write the snapshot {}: {error}", path.display())))?;
            state.written.insert(file_name);
            return Ok(());
        }
        Err(match stored {
            Some(stored) => AssertionFailure {
                diff: diff(&stored, &text).or_else(|| Some("the texts differ in their line ends".to_owned())),
                ..fail(format!("the result differs from the snapshot {}", path.display()))
            },
            None => AssertionFailure {
                actual: Some(shorten(&text)),
                ..fail(format!("there is no snapshot {}, and CI does not write one", path.display()))
            },
        })
    }

    pub(crate) fn written_count(&self) -> usize {
        self.state.lock().written.len()
    }

    /// Returns the snapshots that no test has used. Removes them in update mode. Call this only
    /// after all tests of the file have run.
    pub(crate) fn obsolete(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let state = self.state.lock();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut obsolete: Vec<PathBuf> = names
            .filter(|name| name.ends_with(".snap.yaml") && !state.used.contains(name))
            .map(|name| self.folder.join(name))
            .collect();
        obsolete.sort();
        if self.mode == SnapshotMode::Update {
            obsolete.retain(|path| fs::remove_file(path).is_ok());
        }
        obsolete
    }
}

/// Writes a file whole, so that a run that is killed leaves no half of one.
fn write_file(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let unique = ExecutionId::generate().map_err(io::Error::other)?.to_string();
    let temporary = folder.join(format!(".{unique}.tmp"));
    let written = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, folder.join(name)));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Returns a file name for any name of a snapshot. Different names get different files, also where
/// case does not matter.
fn snapshot_file_name(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars() {
        match letter {
            'a'..='z' | '0'..='9' | '_' | '-' => slug.push(letter),
            'A'..='Z' => slug.push(letter.to_ascii_lowercase()),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    let slug: String = slug.trim_end_matches('-').chars().take(LONGEST_SLUG).collect();
    match slug == name {
        true => format!("{slug}.snap.yaml"),
        // Names that differ only in other characters would collide otherwise.
        false => format!("{slug}-{:08x}.snap.yaml", fnv1a(name)),
    }
}

fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Applies redactions in order.
pub(crate) fn redact<'r>(
    mut value: Value,
    redactors: impl IntoIterator<Item = &'r Redactor>,
) -> Result<Value, String> {
    for redactor in redactors {
        match &redactor.target {
            RedactionTarget::Path(path) => {
                replace(path, &mut value, &Value::String(redactor.replacement.clone()))?;
            }
            RedactionTarget::Pattern(pattern) => {
                let pattern = compile(pattern)?;
                replace_in_texts(&mut value, &|text| {
                    pattern.replace_all(text, redactor.replacement.as_str()).into_owned()
                });
            }
        }
    }
    Ok(value)
}

/// Replaces the path of the temporary folder, which differs from run to run.
pub(crate) fn hide_folder(mut value: Value, folder: &Path) -> Value {
    let folder = folder.to_string_lossy();
    replace_in_texts(&mut value, &|text| text.replace(folder.as_ref(), "${FIXTURES}"));
    value
}

fn replace_in_texts(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_in_texts(item, change)),
        Value::Object(members) => members.values_mut().for_each(|member| replace_in_texts(member, change)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use serde_json::json;
    use toolyard_hub::ExecutionId;

    use super::{SnapshotFolder, SnapshotMode, redact, snapshot_file_name};
    use crate::file::{FilePosition, RedactionTarget, Redactor};

    fn scratch() -> PathBuf {
        let folder = std::env::temp_dir().join(ExecutionId::generate().unwrap().to_string());
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn each_mode_writes_what_it_may() {
        let folder = scratch();
        let file = folder.join("calls.mcp.yaml");
        let at = FilePosition { line: 3, column: 5 };
        let open = |mode| SnapshotFolder::new(&file, mode);

        let read_only = open(SnapshotMode::ReadOnly);
        let missing = read_only.check(at, "adds", &json!({"a": 1})).unwrap_err();
        assert!(missing.message.ends_with("adds.snap.yaml, and CI does not write one"), "{missing:?}");
        assert!(!folder.join("__snapshots__").exists());

        let writing = open(SnapshotMode::WriteMissing);
        writing.check(at, "adds", &json!({"a": 1})).unwrap();
        writing.check(at, "adds", &json!({"a": 1})).unwrap();
        let differs = writing.check(at, "adds", &json!({"a": 2})).unwrap_err();
        assert_eq!(differs.diff.as_deref(), Some("  # Snapshot of: adds\n- a: 1\n+ a: 2"));
        assert_eq!(writing.written_count(), 1);

        let updating = open(SnapshotMode::Update);
        updating.check(at, "adds", &json!({"a": 2})).unwrap();
        updating.check(at, "adds", &json!({"a": 3})).unwrap_err();
        updating.check(at, "other", &json!(1)).unwrap();

        let later = open(SnapshotMode::WriteMissing);
        later.check(at, "adds", &json!({"a": 2})).unwrap();
        let obsolete = later.obsolete();
        assert_eq!(obsolete.len(), 1);
        assert!(obsolete[0].ends_with("__snapshots__/calls/other.snap.yaml") && obsolete[0].exists());
        let removing = open(SnapshotMode::Update);
        removing.check(at, "adds", &json!({"a": 2})).unwrap();
        assert_eq!(removing.obsolete(), obsolete);
        assert!(!obsolete[0].exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn different_names_have_different_files() {
        assert_eq!(snapshot_file_name("adds-two_numbers"), "adds-two_numbers.snap.yaml");
        let names = ["a b", "a/b", "A b", "../../a b", "ä", &"x".repeat(300)].map(snapshot_file_name);
        assert!(names.iter().all(|name| !name.contains('/') && name.len() < 110), "{names:?}");
        let unique: std::collections::HashSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
    }

    #[test]
    fn redactions_apply_to_paths_and_texts() {
        let redactors = [
            Redactor { target: RedactionTarget::Path("$..id".to_owned()), replacement: "<id>".to_owned() },
            Redactor {
                target: RedactionTarget::Pattern("[0-9]+ ms".to_owned()),
                replacement: "N ms".to_owned(),
            },
        ];
        let value = json!({"id": 5, "list": [{"id": "x", "text": "took 12 ms"}]});
        let expected = json!({"id": "<id>", "list": [{"id": "<id>", "text": "took N ms"}]});
        assert_eq!(redact(value, &redactors), Ok(expected));
    }
}
