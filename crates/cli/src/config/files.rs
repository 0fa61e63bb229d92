//! The files that a configuration was read from, each with what it looked like then.

use std::cell::RefCell;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file that was looked for, and what it looked like just before it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenFile {
    pub(crate) path: PathBuf,
    pub(crate) stamp: Stamp,
}

/// Tells one version of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    Absent,
    Present { inode: u64, size: u64, seconds: i64, nanoseconds: i64 },
}

impl Stamp {
    pub(crate) fn of(path: &Path) -> Self {
        std::fs::metadata(path).map_or(Self::Absent, |file| Self::Present {
            inode: file.ino(),
            size: file.size(),
            seconds: file.mtime(),
            nanoseconds: file.mtime_nsec(),
        })
    }
}

/// Reads files and remembers them.
#[derive(Default)]
pub(super) struct Files(RefCell<Vec<SeenFile>>);

impl Files {
    pub(super) fn read(&self, path: &Path) -> std::io::Result<String> {
        // Looked at before it is read: a change in between is then seen as one, never missed.
        let stamp = Stamp::of(path);
        let mut seen = self.0.borrow_mut();
        if seen.iter().all(|file| file.path != path) {
            seen.push(SeenFile { path: path.to_owned(), stamp });
        }
        if std::fs::metadata(path)?.len() > LARGEST {
            return Err(std::io::Error::other("it is too large for a configuration"));
        }
        let bytes = std::fs::read(path)?;
        String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is not UTF-8"))
    }

    pub(super) fn into_seen(self) -> Vec<SeenFile> {
        self.0.into_inner()
    }
}

/// Some assistants keep their whole history in the file that names their servers.
const LARGEST: u64 = 256 * 1024 * 1024;
