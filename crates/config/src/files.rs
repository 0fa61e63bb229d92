//! Reads configuration files and records a snapshot of each, to detect later changes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// The path of a file and its state just before it was read. The file can be absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileSnapshot {
    pub(crate) path: PathBuf,
    pub(crate) stamp: FileStamp,
}

/// Identifies a version of a file.
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

/// Reads files and records their snapshots.
#[derive(Default)]
pub(super) struct ConfigFileReader {
    snapshots: RefCell<Vec<FileSnapshot>>,
    /// If set, the only files that exist. The disk is not read.
    in_memory: Option<BTreeMap<PathBuf, String>>,
    /// Of everything that was read from files.
    digest: RefCell<Sha256>,
}

impl ConfigFileReader {
    /// Creates a reader with a fixed set of files, for fuzz targets.
    pub(super) fn in_memory(files: BTreeMap<PathBuf, String>) -> Self {
        Self { in_memory: Some(files), ..Self::default() }
    }

    pub(super) fn read(&self, path: &Path) -> std::io::Result<String> {
        if let Some(held) = &self.in_memory {
            return held.get(path).cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into());
        }
        // The stamp is taken before reading, so that a concurrent change is detected later and
        // never missed.
        let stamp = FileStamp::read(path);
        let mut seen = self.snapshots.borrow_mut();
        if seen.iter().all(|file| file.path != path) {
            seen.push(FileSnapshot { path: path.to_owned(), stamp });
        }
        // The read is limited because the reported size of a device or a pipe is meaningless.
        let mut bytes = Vec::new();
        File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Err(std::io::Error::other("the file exceeds the limit of 256 MiB"));
        }
        let mut digest = self.digest.borrow_mut();
        digest.update(bytes.len().to_be_bytes());
        digest.update(&bytes);
        String::from_utf8(bytes).map_err(|_| std::io::Error::other("the file is not valid UTF-8"))
    }

    /// Returns a short digest of the files, by which replicas notice that theirs differ.
    pub(super) fn digest(&self) -> String {
        HEXLOWER.encode(&self.digest.borrow().clone().finalize()[..8])
    }

    pub(super) fn into_snapshots(self) -> Vec<FileSnapshot> {
        self.snapshots.into_inner()
    }
}

/// Large, because some assistants store their entire history in the file that lists their servers.
const LARGEST: u64 = 256 * 1024 * 1024;
