//! A temporary folder with a copy of the fixtures, removed at the end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toolyard_hub::ExecutionId;

/// How many files and folders fixtures may have, and how deep they may be.
const MOST: usize = 100_000;
const DEEPEST: usize = 64;

/// A folder that is removed when dropped.
#[derive(Debug)]
pub(crate) struct FixtureCopy {
    folder: PathBuf,
}

impl FixtureCopy {
    /// Creates a folder in `temporary` and copies the fixtures: the content of a single one, or
    /// each under its own name.
    pub(crate) fn create(temporary: &Path, fixtures: &[PathBuf]) -> io::Result<Self> {
        let unique = ExecutionId::generate().map_err(io::Error::other)?;
        let folder = temporary.join(format!("toolyard-test-{unique}"));
        fs::create_dir_all(temporary)?;
        // Fails if it exists, so that two runs never share a folder.
        fs::create_dir(&folder)?;
        let copy = Self { folder: fs::canonicalize(&folder)? };
        let mut left = MOST;
        for fixture in fixtures {
            let metadata = fs::metadata(fixture).map_err(|error| in_path(fixture, &error))?;
            let target = match (fixtures.len(), metadata.is_dir(), fixture.file_name()) {
                (1, true, _) | (_, _, None) => copy.folder.clone(),
                (_, _, Some(name)) => copy.folder.join(name),
            };
            copy_tree(fixture, &target, 0, &mut left)?;
        }
        Ok(copy)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for FixtureCopy {
    fn drop(&mut self) {
        // A server that is still writing may recreate files, and the system cleans up the rest.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn in_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn copy_tree(from: &Path, to: &Path, depth: usize, left: &mut usize) -> io::Result<()> {
    let exceeded = |what: String| Err(io::Error::other(format!("{}: {what}", from.display())));
    if depth > DEEPEST {
        return exceeded(format!("the nesting exceeds the limit of {DEEPEST} levels"));
    }
    *left = match left.checked_sub(1) {
        Some(left) => left,
        None => return exceeded(format!("the fixtures exceed the limit of {MOST} files")),
    };
    // The fixture itself may be a link. Links inside are copied as links.
    let metadata = if depth == 0 { fs::metadata(from) } else { fs::symlink_metadata(from) };
    let metadata = metadata.map_err(|error| in_path(from, &error))?;
    if metadata.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from).map_err(|error| in_path(from, &error))? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()), depth + 1, left)?;
        }
    } else if metadata.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
    } else if metadata.is_file() {
        fs::copy(from, to).map_err(|error| in_path(from, &error))?;
    } else {
        return exceeded("it is neither a file nor a folder".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::FixtureCopy;

    #[test]
    fn each_copy_is_fresh_and_removed() {
        let source = FixtureCopy::create(&std::env::temp_dir(), &[]).unwrap();
        fs::create_dir(source.folder().join("a")).unwrap();
        fs::write(source.folder().join("a/b.txt"), "b").unwrap();
        std::os::unix::fs::symlink("a/b.txt", source.folder().join("link")).unwrap();

        let fixtures = [source.folder().to_owned()];
        let first = FixtureCopy::create(&std::env::temp_dir(), &fixtures).unwrap();
        fs::write(first.folder().join("a/b.txt"), "changed").unwrap();
        let second = FixtureCopy::create(&std::env::temp_dir(), &fixtures).unwrap();
        assert_eq!(fs::read_to_string(second.folder().join("link")).unwrap(), "b");
        assert_ne!(first.folder(), second.folder());

        let several = [source.folder().join("a"), source.folder().join("a/b.txt")];
        let third = FixtureCopy::create(&std::env::temp_dir(), &several).unwrap();
        assert!(third.folder().join("a/b.txt").exists() && third.folder().join("b.txt").exists());
        let folder = first.folder().to_owned();
        drop(first);
        assert!(!folder.exists());
        let missing = FixtureCopy::create(&std::env::temp_dir(), &["no/such/folder".into()]).unwrap_err();
        assert!(missing.to_string().starts_with("no/such/folder: "), "{missing}");
    }
}
