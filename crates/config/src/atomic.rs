//! Atomic file writes, and a lock for read-modify-write changes to a file.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces the content of a file atomically. Symbolic links are followed, and the permissions of
/// the file are kept.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let allowed: Option<Permissions> = fs::metadata(&path).ok().map(|file| file.permissions());
    if allowed.as_ref().is_some_and(Permissions::readonly) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = folder(&path).join(format!(".{name}.{}.new", std::process::id()));
    let written = (|| {
        let mut file = File::create_new(&new)?;
        if let Some(allowed) = allowed {
            file.set_permissions(allowed)?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, &path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

/// Locks the directory of a file, so that other processes that change the file wait. Dropping the
/// returned file, or ending the process, releases the lock.
pub fn lock_folder(path: &Path) -> io::Result<File> {
    let folder = File::open(folder(path))?;
    folder.lock()?;
    Ok(folder)
}

fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
