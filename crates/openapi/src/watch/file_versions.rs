//! Detects changes in a set of files.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileVersions(Vec<(PathBuf, FileVersion)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileVersion {
    Absent,
    Present { inode: u64, size: u64, seconds: i64, nanoseconds: i64 },
}

impl FileVersion {
    fn from_path(path: &Path) -> Self {
        std::fs::metadata(path).map_or(Self::Absent, |file| Self::Present {
            inode: file.ino(),
            size: file.size(),
            seconds: file.mtime(),
            nanoseconds: file.mtime_nsec(),
        })
    }
}

impl FileVersions {
    pub(super) fn read(files: &[PathBuf]) -> Self {
        Self(files.iter().map(|path| (path.clone(), FileVersion::from_path(path))).collect())
    }

    /// Returns the current versions of the same files.
    pub(super) fn reread(&self) -> Self {
        Self(self.0.iter().map(|(path, _)| (path.clone(), FileVersion::from_path(path))).collect())
    }

    /// Replaces the versions of files that are also in `earlier` with the earlier ones.
    pub(super) fn restore_earlier(&mut self, earlier: Self) {
        for (path, stamp) in earlier.0 {
            let same = path.canonicalize().unwrap_or(path);
            if let Some((_, now)) = self.0.iter_mut().find(|(other, _)| *other == same) {
                *now = stamp;
            }
        }
    }
}
