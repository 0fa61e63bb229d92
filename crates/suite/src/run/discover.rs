//! Finds test files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The end of the names of test files.
const ENDINGS: [&str; 3] = [".mcp.yaml", ".mcp.yml", ".mcp.json"];
/// Folders that are never searched.
const SKIPPED: [&str; 4] = ["node_modules", "target", "__snapshots__", "__pycache__"];
const DEEPEST: usize = 32;
const MOST: usize = 10_000;

/// Why no test files were found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    #[error("cannot read {path}: {reason}")]
    Unreadable { path: PathBuf, reason: String },
    #[error("there are no test files (*.mcp.yaml) in {}", .0.display())]
    Empty(PathBuf),
    #[error("there are more than {MOST} test files in {}", .0.display())]
    TooMany(PathBuf),
}

/// Returns the test files of the given paths: files as they are, folders with everything below
/// them. The order is that of the paths, and by name in folders.
pub fn discover(paths: &[PathBuf]) -> Result<Vec<PathBuf>, DiscoveryError> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for path in paths {
        let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        let mut files = Vec::new();
        match metadata.is_dir() {
            true => collect(path, 0, &mut files)?,
            false => files.push(path.clone()),
        }
        if files.is_empty() {
            return Err(DiscoveryError::Empty(path.clone()));
        }
        files.sort();
        found.extend(files.into_iter().filter(|file| seen.insert(file.clone())));
        if found.len() > MOST {
            return Err(DiscoveryError::TooMany(path.clone()));
        }
    }
    Ok(found)
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), DiscoveryError> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(folder, &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Links to folders are not followed, because they can lead back.
        let kind = entry.file_type().map_err(|error| unreadable(&entry.path(), &error))?;
        if kind.is_dir() {
            if depth < DEEPEST && !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                collect(&entry.path(), depth + 1, files)?;
            }
        } else if ENDINGS.iter().any(|ending| name.ends_with(ending)) && !name.starts_with('.') {
            files.push(entry.path());
        }
        if files.len() > MOST {
            return Err(DiscoveryError::TooMany(folder.to_owned()));
        }
    }
    Ok(())
}

fn unreadable(path: &Path, error: &std::io::Error) -> DiscoveryError {
    DiscoveryError::Unreadable { path: path.to_owned(), reason: error.to_string() }
}
