//! Moving a damaged database aside so that a new one can be created. Nothing is deleted here.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use toolyard_hub::Timestamp;

use super::open::HistoryStoreError;

/// How long to wait while another process opens or moves the same database.
const WAIT: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(50);
/// The files that SQLite keeps next to a database. Without them a damaged one cannot be repaired.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// What happens if the history is damaged at startup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HistoryDamagePolicy {
    /// Startup fails, and the error explains how to move the file.
    #[default]
    Fail,
    /// The file is renamed to `FILE.damaged-TIME`, and a new history is created.
    MoveAside,
}

/// Opens the database, and renames a damaged one first. The caller has its turn, so that no process
/// moves the new file of another. None has the damaged file open while it is moved either, because
/// closing it would make SQLite delete files that belong to the new one.
pub(super) fn open_or_move_aside<T>(
    file: &Path,
    open: impl Fn() -> Result<T, HistoryStoreError>,
) -> Result<T, HistoryStoreError> {
    let failed = |source| HistoryStoreError::MoveAside { file: file.to_owned(), source };
    match open() {
        Err(HistoryStoreError::Damaged { source, .. }) => {
            let moved_to = move_aside(file, SystemTime::now()).map_err(failed)?;
            tracing::warn!(
                file = %file.display(),
                moved_to = %moved_to.display(),
                error = %source,
                "damaged history moved aside; creating a new one"
            );
            open()
        }
        opened => opened,
    }
}

/// Renames the database and the files next to it, and returns the new path.
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

/// Returns an unused path next to the file.
pub(super) fn unused_aside_path(file: &Path, now: SystemTime) -> PathBuf {
    let time: String = Timestamp(now).to_string().chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let time = time.split_once('.').map_or(time.as_str(), |(seconds, _)| seconds);
    let first = with_suffix(file, &format!(".damaged-{time}Z"));
    let more = (2_u32..).map(|number| with_suffix(&first, &format!("-{number}")));
    let unused = std::iter::once(first.clone()).chain(more).find(|path| !path.exists());
    unused.unwrap_or(first)
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Locks the directory of the database. The lock is released when the returned file is closed or
/// the process is killed.
pub(super) fn lock_directory(file: &Path) -> io::Result<File> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let directory = File::open(directory)?;
    let limit = Instant::now() + WAIT;
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(directory),
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() < limit => {
                std::thread::park_timeout(AGAIN)
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "another process holds the lock on its directory",
                ));
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}
