//! The audit log file: complete lines only, rotated by size and age, and shared with other
//! processes that write to it. All changes are made under its lock, which the kernel releases when
//! a process dies.

use std::borrow::Cow;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use toolyard_hub::Timestamp;

use super::{AuditFlush, AuditSettings};
use crate::audit_line::BEGINNING;

/// How long to wait for the lock. Other processes hold it for one write at a time.
const LOCK_TIME: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_micros(200);
/// How far back to search for the beginning of a torn line.
const LONGEST_LINE: u64 = 1 << 20;
/// The minimum interval between rotations by age.
const SHORTEST_TURN: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(super) struct AuditFile {
    path: PathBuf,
    flush: AuditFlush,
    rotate_bytes: u64,
    keep_files: usize,
    keep_for: Option<Duration>,
    open: OpenFile,
    /// Whether a failed rotation has already been logged.
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
        /// The end of the last line that this process wrote. Other processes wrote what follows.
        end: u64,
        /// When the first line was written.
        since: SystemTime,
    },
    /// A pipe or a device, which is neither locked nor repaired nor rotated.
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

    /// Appends lines: all of them, or none.
    pub(super) fn append(&mut self, text: &[u8]) -> io::Result<()> {
        if let FileKind::Other = self.open.kind {
            return self.open.file.write_all(text);
        }
        self.lock()?;
        let result = self.append_locked(text);
        // If this fails, the lock is released when the process ends.
        let _ = self.open.file.unlock();
        result
    }

    fn append_locked(&mut self, text: &[u8]) -> io::Result<()> {
        let mut size = self.open.truncate_torn_line()?;
        if size.end > 0 && self.needs_rotation(size.end + text.len() as u64) {
            match self.rotate() {
                Ok(()) => size = self.open.truncate_torn_line()?,
                // An oversized file is better than a lost line.
                Err(error) if !self.rotation_error_logged => {
                    self.rotation_error_logged = true;
                    tracing::error!(file = %self.path.display(), %error, "cannot rotate the audit log");
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
            // Removes a partially written line.
            let _ = self.open.file.set_len(size.end);
        } else if let FileKind::Plain { end, since } = &mut self.open.kind {
            if size.end == 0 {
                *since = SystemTime::now();
            }
            *end = size.end + text.len() as u64;
        }
        written
    }

    /// Locks the file that is currently at the path. Another process may have rotated the open one.
    fn lock(&mut self) -> io::Result<()> {
        let started = Instant::now();
        loop {
            match self.open.file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if started.elapsed() > LOCK_TIME => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds the lock"));
                }
                Err(TryLockError::WouldBlock) => {
                    std::thread::park_timeout(LOCK_PAUSE);
                    continue;
                }
                // Some file systems do not support locks. Other writers are then not detected.
                Err(TryLockError::Error(_)) => {}
            }
            let open = self.open.file.metadata()?;
            match std::fs::metadata(&self.path) {
                Ok(current) if (current.dev(), current.ino()) == (open.dev(), open.ino()) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            // Closing the old file releases its lock.
            self.open = OpenFile::open(&self.path)?;
        }
    }

    /// Syncs the directory, so that the file itself survives a power failure if its lines must.
    fn sync_directory(&self) -> io::Result<()> {
        match (self.flush, parent_directory(&self.path)) {
            (AuditFlush::Disk, Some(directory)) => File::open(directory)?.sync_all(),
            _ => Ok(()),
        }
    }

    /// Returns whether the file must be rotated before it reaches this size.
    fn needs_rotation(&self, size: u64) -> bool {
        let FileKind::Plain { since, .. } = self.open.kind else { return false };
        let interval = self.keep_for.map(|time| rotation_interval(time, self.keep_files));
        let is_old = interval.is_some_and(|interval| since.elapsed().is_ok_and(|age| age > interval));
        size > self.rotate_bytes || is_old
    }

    /// Renames the file to number 1, and increments the numbers of older files.
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
        // The path is free now, so this creates a new file or opens the one that another process
        // has created.
        self.lock()?;
        self.sync_directory()?;
        self.remove_expired();
        Ok(())
    }

    /// Rotates the file if it is too old, and removes expired or excess rotated files.
    pub(super) fn rotate_and_prune(&mut self) {
        if let FileKind::Other = self.open.kind {
            return;
        }
        if self.needs_rotation(0) && self.lock().is_ok() {
            // Another process may have rotated it in the meantime.
            if self.needs_rotation(0) && self.open.truncate_torn_line().is_ok_and(|size| size.end > 0) {
                let _ = self.rotate();
            }
            let _ = self.open.file.unlock();
        }
        self.remove_expired();
    }

    fn remove_expired(&self) {
        let (Some(directory), Some(name)) = (parent_directory(&self.path), self.path.file_name()) else {
            return;
        };
        let Ok(entries) = std::fs::read_dir(directory) else { return };
        let prefix = format!("{}.", name.to_string_lossy());
        for entry in entries.flatten() {
            let number = entry.file_name().to_str().and_then(|name| digits(name.strip_prefix(&prefix)?));
            let Some(number) = number else { continue };
            let written = entry.metadata().and_then(|metadata| metadata.modified()).ok();
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

/// The end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileEnd {
    end: u64,
    tail: FileTail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileTail {
    Complete,
    /// The last line is incomplete and was not written by Toolyard, so it is left unchanged.
    TornForeign,
}

impl OpenFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = options().create(true).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(Self { file, kind: FileKind::Other });
        }
        let mut beginning = [0; 64];
        let read = file.read_at(&mut beginning, 0)?;
        let since = parse_line_time(&beginning[..read]).or_else(|| metadata.modified().ok());
        // With `end` at 0, the end of the file is checked before the first write.
        let kind = FileKind::Plain { end: 0, since: since.unwrap_or_else(SystemTime::now) };
        Ok(Self { file, kind })
    }

    /// Removes the incomplete line of a process that was killed during a write. Its call was not
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
        let (tail, prefix) = (&tail[line..], BEGINNING.as_bytes());
        if !tail.starts_with(&prefix[..prefix.len().min(tail.len())]) {
            return Ok(FileEnd { end: size, tail: FileTail::TornForeign });
        }
        let end = start + line as u64;
        self.file.set_len(end)?;
        Ok(FileEnd { end, tail: FileTail::Complete })
    }
}

/// Returns options for reading and appending. New files are readable only by their owner.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(0o600);
    options
}

/// Returns the age at which a file is rotated, so that the kept files together cover the retention
/// time.
fn rotation_interval(keep_for: Duration, keep_files: usize) -> Duration {
    let files = u32::try_from(keep_files).unwrap_or(u32::MAX).max(1);
    (keep_for / files).max(SHORTEST_TURN.min(keep_for))
}

/// Parses the time at the beginning of an audit line.
fn parse_line_time(line: &[u8]) -> Option<SystemTime> {
    let rest = line.strip_prefix(BEGINNING.as_bytes())?;
    let end = memchr::memchr(b'"', rest)?;
    let time: Timestamp = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    Some(time.0)
}

fn with_extra_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

fn parent_directory(path: &Path) -> Option<&Path> {
    path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

/// Parses the number of a rotated file, which has no sign and no leading zero.
fn digits(text: &str) -> Option<usize> {
    text.parse().ok().filter(|number: &usize| number.to_string() == text && *number > 0)
}

fn ignore_not_found(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
