//! A database that is damaged: moving it out of the way so that a new one can be started. Nothing is ever deleted here.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use toolyard_hub::Timestamp;

use super::open::HistoryStoreError;

/// How long another process may take to open or move the same database.
const WAIT: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(50);
/// What SQLite keeps beside a database; without these files a damaged one cannot be repaired.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// What happens to a damaged history at start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HistoryDamagePolicy {
    /// The start fails, and the error says how to move the file.
    #[default]
    Fail,
    /// The file is renamed to `FILE.damaged-TIME`, and a new history is started.
    MoveAside,
}

/// Opens the database; a damaged one is renamed first. Processes that start at the same time take turns from the first
/// look on: none of them moves the new file that another has just made, and none has the damaged file open while it is
/// moved, because SQLite would then delete what belongs to the new one when it closes the old one.
pub(super) fn open_or_move_aside<T>(
    file: &Path,
    open: impl Fn() -> Result<T, HistoryStoreError>,
) -> Result<T, HistoryStoreError> {
    let failed = |source| HistoryStoreError::MoveAside { file: file.to_owned(), source };
    let _turn =
        lock_directory(file).map_err(|source| HistoryStoreError::File { file: file.to_owned(), source })?;
    match open() {
        Err(HistoryStoreError::Damaged { source, .. }) => {
            let moved_to = move_aside(file, SystemTime::now()).map_err(failed)?;
            tracing::warn!(
                file = %file.display(),
                moved_to = %moved_to.display(),
                error = %source,
                "the history is damaged and was moved aside; a new one is started"
            );
            open()
        }
        opened => opened,
    }
}

/// Renames the database and what SQLite keeps beside it; says where it is now.
pub(super) fn move_aside(file: &Path, now: SystemTime) -> io::Result<PathBuf> {
    let target = unused_aside_path(file, now);
    std::fs::rename(file, &target)?;
    for suffix in BESIDE {
        match std::fs::rename(with_suffix(file, suffix), with_suffix(&target, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(target)
}

/// A name beside the file that no file has yet.
pub(super) fn unused_aside_path(file: &Path, now: SystemTime) -> PathBuf {
    let time: String = Timestamp(now).to_string().chars().filter(|c| !matches!(c, '-' | ':')).collect();
    // Without the milliseconds.
    let time = time.split_once('.').map_or(time.as_str(), |(seconds, _)| seconds);
    let first = with_suffix(file, &format!(".damaged-{time}Z"));
    let more = (2_u32..).map(|number| with_suffix(&first, &format!("-{number}")));
    let free = std::iter::once(first.clone()).chain(more).find(|path| !path.exists());
    free.unwrap_or(first)
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Locks the folder of the database. The lock is gone when the file is closed, also when the process is killed.
fn lock_directory(file: &Path) -> io::Result<File> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let folder = File::open(folder)?;
    let limit = Instant::now() + WAIT;
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() < limit => {
                std::thread::park_timeout(AGAIN)
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "another process holds its folder locked",
                ));
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}
