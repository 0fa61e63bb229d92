//! The files that a configuration was read from, each with what it looked like then.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file that was looked for, and what it looked like just before it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileSnapshot {
    pub(crate) path: PathBuf,
    pub(crate) stamp: FileStamp,
}

/// Tells one version of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileStamp {
    Absent,
    Present { inode: u64, size: u64, seconds: i64, nanoseconds: i64 },
}

impl FileStamp {
    pub(crate) fn read(path: &Path) -> Self {
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
pub(super) struct ConfigFileReader {
    snapshots: RefCell<Vec<FileSnapshot>>,
    /// The only files there are, where the disk is not to be read.
    in_memory: Option<BTreeMap<PathBuf, String>>,
}

impl ConfigFileReader {
    /// These files and no others: fuzz targets must not read what a file names.
    pub(super) fn in_memory(files: BTreeMap<PathBuf, String>) -> Self {
        Self { in_memory: Some(files), ..Self::default() }
    }

    pub(super) fn read(&self, path: &Path) -> std::io::Result<String> {
        if let Some(held) = &self.in_memory {
            return held.get(path).cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into());
        }
        // Looked at before it is read: a change in between is then seen as one, never missed.
        let stamp = FileStamp::read(path);
        let mut seen = self.snapshots.borrow_mut();
        if seen.iter().all(|file| file.path != path) {
            seen.push(FileSnapshot { path: path.to_owned(), stamp });
        }
        // Read no further than allowed: the size of a device or a pipe says nothing about what comes out of it.
        let mut bytes = Vec::new();
        File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Err(std::io::Error::other("it is too large for a configuration"));
        }
        String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is not UTF-8"))
    }

    pub(super) fn into_snapshots(self) -> Vec<FileSnapshot> {
        self.snapshots.into_inner()
    }
}

/// Some assistants keep their whole history in the file that names their servers.
const LARGEST: u64 = 256 * 1024 * 1024;
