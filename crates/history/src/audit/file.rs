//! The file of the audit: whole lines only, put aside when it is large or old, shared with other processes that write to
//! the same. All that is done to it is done under its lock, which the kernel takes back from a process that dies.

use std::borrow::Cow;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use toolyard_hub::Timestamp;

use super::{AuditFlush, AuditSettings};
use crate::audit_line::BEGINNING;

/// How long another process may hold the lock. It does so for one write at a time.
const LOCK_TIME: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_micros(200);
/// How far back the beginning of a torn line is looked for.
const LONGEST_LINE: u64 = 1 << 20;
/// A file is put aside because of its age this often at most.
const SHORTEST_TURN: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(super) struct AuditFile {
    path: PathBuf,
    flush: AuditFlush,
    rotate_bytes: u64,
    keep_files: usize,
    keep_for: Option<Duration>,
    open: OpenFile,
    /// That old files could not be moved was told.
    rotation_error_logged: bool,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    kind: FileKind,
}

#[derive(Debug)]
enum FileKind {
    Plain {
        /// Where our last line ended. Beyond that somebody else wrote.
        end: u64,
        /// When its first line was written.
        since: SystemTime,
    },
    /// A pipe or a device: there is nothing to lock, to mend or to put aside.
    Other,
}

impl AuditFile {
    pub(super) fn open(settings: &AuditSettings) -> io::Result<Self> {
        let mut file = Self {
            path: settings.file.clone(),
            flush: settings.flush,
            rotate_bytes: settings.rotate_bytes.max(1),
            keep_files: settings.keep_files.max(1),
            keep_for: settings.keep_for,
            open: OpenFile::open(&settings.file)?,
            rotation_error_logged: false,
        };
        file.sync_directory()?;
        file.rotate_and_prune();
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes lines, all of them or none.
    pub(super) fn append(&mut self, text: &[u8]) -> io::Result<()> {
        if let FileKind::Other = self.open.kind {
            return self.open.file.write_all(text);
        }
        self.lock()?;
        let done = self.append_locked(text);
        // It goes with the process if not with this; and somebody else may have been waiting.
        let _ = self.open.file.unlock();
        done
    }

    fn append_locked(&mut self, text: &[u8]) -> io::Result<()> {
        let mut size = self.open.truncate_torn_line()?;
        if size.end > 0 && self.needs_rotation(size.end + text.len() as u64) {
            match self.rotate() {
                Ok(()) => size = self.open.truncate_torn_line()?,
                // A file that is too large is better than a line that is lost.
                Err(error) if !self.rotation_error_logged => {
                    self.rotation_error_logged = true;
                    tracing::error!(file = %self.path.display(), %error, "cannot put the audit aside");
                }
                Err(_) => {}
            }
        }
        let text = match size.tail {
            FileTail::Complete => Cow::Borrowed(text),
            FileTail::TornForeign => Cow::Owned([b"\n", text].concat()),
        };
        let written = self.open.file.write_all(&text).and_then(|()| match self.flush {
            AuditFlush::Kernel => Ok(()),
            AuditFlush::Disk => self.open.file.sync_data(),
        });
        if written.is_err() {
            // Half of a line is worse than none.
            let _ = self.open.file.set_len(size.end);
        } else if let FileKind::Plain { end, since } = &mut self.open.kind {
            if size.end == 0 {
                *since = SystemTime::now();
            }
            *end = size.end + text.len() as u64;
        }
        written
    }

    /// Locks the file that is at the path now: another process may have put ours aside meanwhile.
    fn lock(&mut self) -> io::Result<()> {
        let began = Instant::now();
        loop {
            match self.open.file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if began.elapsed() > LOCK_TIME => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds its lock"));
                }
                Err(TryLockError::WouldBlock) => {
                    std::thread::park_timeout(LOCK_PAUSE);
                    continue;
                }
                // There are file systems without locks; then nobody else is known to write here.
                Err(TryLockError::Error(_)) => {}
            }
            let ours = self.open.file.metadata()?;
            match std::fs::metadata(&self.path) {
                Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            // The lock of the old one goes when it is closed.
            self.open = OpenFile::open(&self.path)?;
        }
    }

    /// That there is a file of this name must survive a power cut where its lines are to.
    fn sync_directory(&self) -> io::Result<()> {
        match (self.flush, folder(&self.path)) {
            (AuditFlush::Disk, Some(folder)) => File::open(folder)?.sync_all(),
            _ => Ok(()),
        }
    }

    /// Whether the file is to be put aside before it has this size.
    fn needs_rotation(&self, size: u64) -> bool {
        let FileKind::Plain { since, .. } = self.open.kind else { return false };
        let turn = self.keep_for.map(|time| rotation_interval(time, self.keep_files));
        let old = turn.is_some_and(|turn| since.elapsed().is_ok_and(|age| age > turn));
        size > self.rotate_bytes || old
    }

    /// Puts the file aside as number 1, and each that was put aside before one number further.
    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..=self.keep_files).rev() {
            let from = self.rotated_path(number);
            if number == self.keep_files {
                ignore_not_found(std::fs::remove_file(from))?;
            } else {
                ignore_not_found(std::fs::rename(from, self.rotated_path(number + 1)))?;
            }
        }
        std::fs::rename(&self.path, self.rotated_path(1))?;
        // Nothing is at the path any more, so this makes a new one, or takes the one that somebody else has made.
        self.lock()?;
        self.sync_directory()?;
        self.remove_expired();
        Ok(())
    }

    /// Removes what was put aside and is too old, or one too many, and puts the file itself aside if it is old.
    pub(super) fn rotate_and_prune(&mut self) {
        if let FileKind::Other = self.open.kind {
            return;
        }
        if self.needs_rotation(0) && self.lock().is_ok() {
            // Somebody else may have done it.
            if self.needs_rotation(0) && self.open.truncate_torn_line().is_ok_and(|size| size.end > 0) {
                let _ = self.rotate();
            }
            let _ = self.open.file.unlock();
        }
        self.remove_expired();
    }

    fn remove_expired(&self) {
        let (Some(folder), Some(name)) = (folder(&self.path), self.path.file_name()) else { return };
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        let prefix = format!("{}.", name.to_string_lossy());
        for entry in entries.flatten() {
            let number = entry.file_name().to_str().and_then(|name| digits(name.strip_prefix(&prefix)?));
            let Some(number) = number else { continue };
            let written = entry.metadata().and_then(|about| about.modified()).ok();
            let age = written.and_then(|written| written.elapsed().ok()).unwrap_or_default();
            if number > self.keep_files || self.keep_for.is_some_and(|time| age > time) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    fn rotated_path(&self, number: usize) -> PathBuf {
        with_extra_extension(&self.path, &number.to_string())
    }
}

/// Where a file ends, and in what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileEnd {
    end: u64,
    tail: FileTail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileTail {
    Complete,
    /// The last line has no end and is none of ours, so it is left as it is.
    TornForeign,
}

impl OpenFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = options().create(true).open(path)?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Ok(Self { file, kind: FileKind::Other });
        }
        let mut beginning = [0; 64];
        let read = file.read_at(&mut beginning, 0)?;
        let since = parse_line_time(&beginning[..read]).or_else(|| about.modified().ok());
        // Nothing in it is known to be ours yet, so its end is looked at before the first write.
        let kind = FileKind::Plain { end: 0, since: since.unwrap_or_else(SystemTime::now) };
        Ok(Self { file, kind })
    }

    /// Takes away half a line that a process left behind when it was killed in the middle of a write. Its call was not
    /// answered.
    fn truncate_torn_line(&mut self) -> io::Result<FileEnd> {
        let size = self.file.metadata()?.len();
        let FileKind::Plain { end, .. } = self.kind else {
            return Ok(FileEnd { end: size, tail: FileTail::Complete });
        };
        if size == end || size == 0 {
            return Ok(FileEnd { end: size, tail: FileTail::Complete });
        }
        let start = size.saturating_sub(LONGEST_LINE);
        let mut last = [0];
        self.file.read_exact_at(&mut last, size - 1)?;
        if last == *b"\n" {
            return Ok(FileEnd { end: size, tail: FileTail::Complete });
        }
        let mut tail = vec![0; usize::try_from(size - start).unwrap_or_default()];
        self.file.read_exact_at(&mut tail, start)?;
        let line = match memchr::memrchr(b'\n', &tail) {
            Some(at) => at + 1,
            None if start == 0 => 0,
            None => return Ok(FileEnd { end: size, tail: FileTail::TornForeign }),
        };
        let (tail, ours) = (&tail[line..], BEGINNING.as_bytes());
        if !tail.starts_with(&ours[..ours.len().min(tail.len())]) {
            return Ok(FileEnd { end: size, tail: FileTail::TornForeign });
        }
        let end = start + line as u64;
        self.file.set_len(end)?;
        Ok(FileEnd { end, tail: FileTail::Complete })
    }
}

/// For reading, and for writing at the end only; nobody but its owner may read a file that we make.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(0o600);
    options
}

/// How long one file is written to before it is put aside because of its age: so that all that are kept together reach as
/// far back as lines are kept.
fn rotation_interval(keep_for: Duration, keep_files: usize) -> Duration {
    let files = u32::try_from(keep_files).unwrap_or(u32::MAX).max(1);
    (keep_for / files).max(SHORTEST_TURN.min(keep_for))
}

/// The time at the beginning of a line of ours.
fn parse_line_time(line: &[u8]) -> Option<SystemTime> {
    let rest = line.strip_prefix(BEGINNING.as_bytes())?;
    let end = memchr::memchr(b'"', rest)?;
    let time: Timestamp = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    Some(time.0)
}

fn with_extra_extension(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn folder(path: &Path) -> Option<&Path> {
    path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
}

/// A number as we write it: no sign, no zero in front.
fn digits(text: &str) -> Option<usize> {
    text.parse().ok().filter(|number: &usize| number.to_string() == text && *number > 0)
}

fn ignore_not_found(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
