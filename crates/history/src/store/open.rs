//! Opening the database: whose it is, which version it has, and what leads from one version to the next.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::ffi::SQLITE_CORRUPT;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::damage::unused_aside_path;

/// Stands in the head of the file and says that it is ours: `TYHI`.
const OURS: i32 = 0x5459_4849;
/// Where SQLite writes that, in a file that begins with these words.
const MAGIC: &[u8] = b"SQLite format 3\0";
const OURS_AT: usize = 68;
const HEAD: usize = 100;
/// How long another process may be writing.
const BUSY: Duration = Duration::from_secs(5);

/// What leads from each version to the next; the first leads from nothing to version 1. None is ever changed.
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
    // `ended` said in words of its own what `standing` and `kind` say together.
    "ALTER TABLE calls DROP COLUMN ended;
     ALTER TABLE calls RENAME COLUMN standing TO status",
];

/// The history cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryStoreError {
    #[error("cannot open the history {}: {source}", file.display())]
    File { file: PathBuf, source: io::Error },
    #[error("{} is not a history of Toolyard, and stays as it is", file.display())]
    Foreign { file: PathBuf },
    #[error("the history {} was made by a newer Toolyard (version {found}, this one knows {})", file.display(), STEPS.len())]
    Newer { file: PathBuf, found: i64 },
    #[error("the history {} is damaged: {source}", file.display())]
    Damaged { file: PathBuf, source: rusqlite::Error },
    #[error("cannot use the history {}: {source}", file.display())]
    Database { file: PathBuf, source: rusqlite::Error },
    #[error("the history {} is damaged and cannot be moved aside: {source}", file.display())]
    MoveAside { file: PathBuf, source: io::Error },
}

impl HistoryStoreError {
    /// What a person can do about it. Commands are complete, so that they can be pasted into a shell.
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::Damaged { file, .. } => Some(format!(
                "to keep the damaged file and start a new history, run: {}\n\
                 on_damage = \"move-aside\" under [history] does that at every start; file = \"…\" names another file",
                move_command(file)
            )),
            Self::Foreign { file } => Some(format!(
                "name another file with file = \"…\" under [history]; if it was a history once, this moves it aside: {}",
                move_command(file)
            )),
            Self::Newer { .. } => Some(
                "start the newer Toolyard, or name another file with file = \"…\" under [history]".to_owned(),
            ),
            Self::MoveAside { file, .. } => {
                Some(format!("make its folder writable, or move it yourself: {}", move_command(file)))
            }
            Self::File { .. } | Self::Database { .. } => None,
        }
    }
}

/// Moves the database and what SQLite keeps beside it, for people to run.
fn move_command(file: &Path) -> String {
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let target = unused_aside_path(file, SystemTime::now());
    // SQLite finds the files beside a database by its name, so that they are renamed along with it.
    format!(
        "f={} t={}; for s in '' -wal -shm -journal; do [ -e \"$f$s\" ] && mv -n \"$f$s\" \"$t$s\"; done",
        quoted(file),
        quoted(&target)
    )
}

/// For the one who writes.
pub(super) fn open_writer(file: &Path) -> Result<Connection, HistoryStoreError> {
    claim(file)?;
    let opened = || {
        let mut database = connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // Only has an effect as long as nothing is in it; afterwards room can be given back bit by bit.
        database.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        let found = migrate(&mut database)?;
        if found.is_ok() {
            // Readers and writers do not wait for each other then, and a commit does not wait for the disk.
            database.pragma_update(None, "journal_mode", "WAL")?;
            database.pragma_update(None, "synchronous", "NORMAL")?;
            database.pragma_update(None, "journal_size_limit", 16 << 20)?;
            check(&database)?;
        }
        Ok(found.map(|()| database))
    };
    let newer = |found| HistoryStoreError::Newer { file: file.to_owned(), found };
    opened().map_err(|source| explain(file, source))?.map_err(newer)
}

/// For those who read, beside a writer.
pub(super) fn open_reader(file: &Path) -> Result<Connection, HistoryStoreError> {
    connect(file, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|source| explain(file, source))
}

/// Makes the file if there is none, for its owner alone, and looks whose it is before SQLite touches it.
fn claim(file: &Path) -> Result<(), HistoryStoreError> {
    let cannot = |source| HistoryStoreError::File { file: file.to_owned(), source };
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(cannot(error)),
    }
    let there = File::open(file).map_err(cannot)?;
    if !there.metadata().map_err(cannot)?.is_file() {
        return Err(HistoryStoreError::Foreign { file: file.to_owned() });
    }
    let mut head = Vec::new();
    there.take(HEAD as u64).read_to_end(&mut head).map_err(cannot)?;
    let ours = head.starts_with(MAGIC) && head.get(OURS_AT..OURS_AT + 4) == Some(&OURS.to_be_bytes());
    // Empty is what a process leaves behind that was killed before it wrote anything.
    if ours || head.is_empty() { Ok(()) } else { Err(HistoryStoreError::Foreign { file: file.to_owned() }) }
}

fn connect(file: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let database = Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    database.busy_timeout(BUSY)?;
    Ok(database)
}

/// Brings the database to the version of today; says which one it has if that is newer.
fn migrate(database: &mut Connection) -> rusqlite::Result<Result<(), i64>> {
    // Everybody else waits meanwhile, and then finds it done.
    let change = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let Some(left) = usize::try_from(found).ok().and_then(|found| STEPS.get(found..)) else {
        return Ok(Err(found));
    };
    if found > 0 && !has_calls(&change)? {
        // What was there once is not there any more.
        let lost = Some("the table of calls is missing".to_owned());
        return Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(SQLITE_CORRUPT), lost));
    }
    if !left.is_empty() {
        for step in left {
            change.execute_batch(step)?;
        }
        change.pragma_update(None, "application_id", OURS)?;
        change.pragma_update(None, "user_version", STEPS.len() as i64)?;
    }
    change.commit()?;
    Ok(Ok(()))
}

/// Asked in SQL: what the connection remembers of the tables may be from before another process made them.
fn has_calls(database: &Connection) -> rusqlite::Result<bool> {
    let named = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'calls'";
    database.query_row(named, [], |row| row.get(0))
}

/// A look at the newest entries, by the table and by its indexes. All of it would take too long.
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
