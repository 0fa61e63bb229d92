//! `toolyard test --watch`: runs again whenever a file changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;

use super::{files, run_once};
use crate::Exit;
use crate::args::TestArgs;
use crate::error::CommandError;
use crate::terminal::print_note;

/// How often files are examined.
const INTERVAL: Duration = Duration::from_millis(300);
/// How many files are watched.
const MOST: usize = 20_000;
const SKIPPED: [&str; 4] = ["node_modules", "target", "__pycache__", "__snapshots__"];

/// When each file was last written, and its size.
type FileStates = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// Runs until Ctrl-C.
pub(super) async fn run(args: &TestArgs, stop: &CancellationToken) -> Result<Exit, CommandError> {
    loop {
        let before = examine(args).await;
        // A run that is interrupted by a change is not supported: servers would not be stopped in
        // order.
        match Box::pin(run_once(args, stop)).await {
            Ok(_) => {}
            // A mistake in a file can be corrected while this runs.
            Err(error) => drop(error.report()),
        }
        if stop.is_cancelled() {
            return Ok(Exit::Interrupted);
        }
        print_note("waiting for changes; press Ctrl-C to stop");
        // Servers may write beside the test files while they run. That is no reason to run again.
        let mut baseline = examine(args).await;
        for (path, state) in before.into_iter().filter(|(path, _)| is_test_file(path)) {
            baseline.insert(path, state);
        }
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = stop.cancelled() => return Ok(Exit::Interrupted),
            }
            if examine(args).await != baseline {
                break;
            }
        }
    }
}

fn is_test_file(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json")
}

/// Examines the folders of all test files, which contain their fixtures too.
async fn examine(args: &TestArgs) -> FileStates {
    let mut roots = Vec::new();
    for path in files::find(args).unwrap_or_else(|_| args.paths.clone()) {
        let folder = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        roots.push(folder.unwrap_or(Path::new(".")).to_owned());
    }
    if roots.is_empty() {
        roots.push(PathBuf::from("tests"));
    }
    roots.extend(args.fixture.clone());
    roots.sort();
    roots.dedup();
    let scan = move || {
        let mut states = FileStates::new();
        roots.iter().for_each(|root| collect(root, 0, &mut states));
        states
    };
    tokio::task::spawn_blocking(scan).await.unwrap_or_default()
}

fn collect(folder: &Path, depth: usize, states: &mut FileStates) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(metadata) = entry.metadata() else { continue };
        if states.len() >= MOST || name.starts_with('.') || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        match metadata.is_dir() {
            true if depth < 16 => collect(&entry.path(), depth + 1, states),
            true => {}
            false => drop(states.insert(entry.path(), (metadata.modified().ok(), metadata.len()))),
        }
    }
}
