//! Opening the database: ownership check, schema version and migrations.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::ffi::SQLITE_CORRUPT;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::damage::unused_aside_path;

/// The SQLite application ID of a Toolyard history: `TYHI`.
const OURS: i32 = 0x5459_4849;
/// The beginning of an SQLite file, the offset of the application ID, and the size of the header.
const MAGIC: &[u8] = b"SQLite format 3\0";
const OURS_AT: usize = 68;
const HEAD: usize = 100;
/// How long to wait while another process writes.
const BUSY: Duration = Duration::from_secs(5);

/// The migrations, starting with the creation of version 1. Existing ones must not be changed.
pub(super) const STEPS: [&str; 3] = [
    "CREATE TABLE calls (
         number INTEGER PRIMARY KEY,
         id TEXT NOT NULL UNIQUE,
         at INTEGER NOT NULL,
         duration INTEGER NOT NULL,
         thing TEXT NOT NULL,
         subject TEXT NOT NULL,
         source TEXT,
         principal TEXT NOT NULL,
         session_id TEXT,
         user_id TEXT,
         ended TEXT NOT NULL,
         kind TEXT,
         standing TEXT NOT NULL,
         error TEXT
     ) STRICT",
    "CREATE INDEX calls_by_time ON calls (at, id);
     CREATE INDEX calls_by_principal ON calls (principal, at, id)",
    // `ended` duplicated the combination of `standing` and `kind`.
    "ALTER TABLE calls DROP COLUMN ended;
     ALTER TABLE calls RENAME COLUMN standing TO status",
];

/// Why the history cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryStoreError {
    #[error("cannot open the history database {}: {source}", file.display())]
    File { file: PathBuf, source: io::Error },
    #[error("{} is not a Toolyard history database; it was left unchanged", file.display())]
    Foreign { file: PathBuf },
    #[error(
        "the history database {} was created by a newer Toolyard (schema version {found}, supported up to {})",
        file.display(),
        STEPS.len()
    )]
    Newer { file: PathBuf, found: i64 },
    #[error("the history database {} is damaged: {source}", file.display())]
    Damaged { file: PathBuf, source: rusqlite::Error },
    #[error("cannot use the history database {}: {source}", file.display())]
    Database { file: PathBuf, source: rusqlite::Error },
    #[error("the history database {} is damaged and cannot be moved aside: {source}", file.display())]
    MoveAside { file: PathBuf, source: io::Error },
}

impl HistoryStoreError {
    /// Returns what the user can do about it, if anything. Commands can be pasted into a shell.
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::Damaged { file, .. } => Some(format!(
                "to keep the damaged file and start a new history, run: {}\n\
                 to do this automatically at startup, set on_damage = \"move-aside\" under [history]; to use another \
                 file, set file = \"…\"",
                move_command(file)
            )),
            Self::Foreign { file } => Some(format!(
                "set another file with file = \"…\" under [history]; if this file is a damaged history, move it aside: {}",
                move_command(file)
            )),
            Self::Newer { .. } => Some(
                "use the newer Toolyard, or set another file with file = \"…\" under [history]".to_owned(),
            ),
            Self::MoveAside { file, .. } => {
                Some(format!("make its directory writable, or move it manually: {}", move_command(file)))
            }
            Self::File { .. } | Self::Database { .. } => None,
        }
    }
}

/// Returns a shell command that moves the database and the files next to it.
fn move_command(file: &Path) -> String {
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let target = unused_aside_path(file, SystemTime::now());
    // SQLite finds these files by the name of the database, so they are renamed with it.
    format!(
        "f={} t={}; for s in '' -wal -shm -journal; do [ -e \"$f$s\" ] && mv -n \"$f$s\" \"$t$s\"; done",
        quoted(file),
        quoted(&target)
    )
}

/// Opens a connection for the writer.
pub(super) fn open_writer(file: &Path) -> Result<Connection, HistoryStoreError> {
    claim(file)?;
    let opened = || {
        let mut database = connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // Takes effect only on an empty database. It allows space to be released incrementally.
        database.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        let migrated = migrate(&mut database)?;
        if migrated.is_ok() {
            // Readers and writers do not block each other, and a commit does not wait for the disk.
            database.pragma_update(None, "journal_mode", "WAL")?;
            database.pragma_update(None, "synchronous", "NORMAL")?;
            database.pragma_update(None, "journal_size_limit", 16 << 20)?;
            check(&database)?;
        }
        Ok(migrated.map(|()| database))
    };
    let newer = |found| HistoryStoreError::Newer { file: file.to_owned(), found };
    opened().map_err(|source| explain(file, source))?.map_err(newer)
}

/// Opens a connection for readers.
pub(super) fn open_reader(file: &Path) -> Result<Connection, HistoryStoreError> {
    connect(file, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|source| explain(file, source))
}

/// Creates a missing file, readable only by its owner. Checks an existing one before SQLite
/// modifies it.
fn claim(file: &Path) -> Result<(), HistoryStoreError> {
    let failed = |source| HistoryStoreError::File { file: file.to_owned(), source };
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(error)),
    }
    let existing = File::open(file).map_err(failed)?;
    if !existing.metadata().map_err(failed)?.is_file() {
        return Err(HistoryStoreError::Foreign { file: file.to_owned() });
    }
    let mut head = Vec::new();
    existing.take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
    let is_ours = head.starts_with(MAGIC) && head.get(OURS_AT..OURS_AT + 4) == Some(&OURS.to_be_bytes());
    // A process that is killed before its first write leaves an empty file.
    if is_ours || head.is_empty() {
        Ok(())
    } else {
        Err(HistoryStoreError::Foreign { file: file.to_owned() })
    }
}

fn connect(file: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let database = Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    database.busy_timeout(BUSY)?;
    Ok(database)
}

/// Migrates the database to the current version. The inner error is a version that is too new.
fn migrate(database: &mut Connection) -> rusqlite::Result<Result<(), i64>> {
    // Other processes wait for this transaction and then find the database migrated.
    let change = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let Some(steps) = usize::try_from(version).ok().and_then(|version| STEPS.get(version..)) else {
        return Ok(Err(version));
    };
    if version > 0 && !has_calls(&change)? {
        let message = Some("the table `calls` is missing".to_owned());
        return Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(SQLITE_CORRUPT), message));
    }
    if !steps.is_empty() {
        for step in steps {
            change.execute_batch(step)?;
        }
        change.pragma_update(None, "application_id", OURS)?;
        change.pragma_update(None, "user_version", STEPS.len() as i64)?;
    }
    change.commit()?;
    Ok(Ok(()))
}

/// Queries the schema, because the cached schema of the connection may be older than the table.
fn has_calls(database: &Connection) -> rusqlite::Result<bool> {
    let query = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'calls'";
    database.query_row(query, [], |row| row.get(0))
}

/// Checks the newest entries in the table and in its indexes. A full check would take too long.
fn check(database: &Connection) -> rusqlite::Result<()> {
    let newest = "SELECT count(*) FROM (SELECT * FROM calls ORDER BY at DESC, id DESC LIMIT 100)";
    database.query_row(newest, [], |row| row.get::<_, i64>(0))?;
    database.query_row("SELECT count(*) FROM calls", [], |row| row.get::<_, i64>(0)).map(drop)
}

fn explain(file: &Path, source: rusqlite::Error) -> HistoryStoreError {
    let file = file.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            HistoryStoreError::Damaged { file, source }
        }
        _ => HistoryStoreError::Database { file, source },
    }
}
