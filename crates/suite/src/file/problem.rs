//! Mistakes in a test file, each with its position and an excerpt.

use std::fmt;
use std::path::{Path, PathBuf};

use super::yaml::FilePosition;

/// How much of a long line an excerpt shows, in characters.
const EXCERPT: usize = 160;

/// A mistake in a test file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestFileProblem {
    pub path: PathBuf,
    /// `None` if the file cannot be read.
    pub at: Option<FilePosition>,
    pub message: String,
    pub suggestion: Option<String>,
    /// The line of the mistake.
    pub excerpt: Option<String>,
}

impl TestFileProblem {
    /// Creates a problem of the file as a whole.
    pub fn for_file(path: &Path, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { path: path.to_owned(), at: None, message, suggestion: None, excerpt: None }
    }

    pub(crate) fn at(path: &Path, text: &str, at: FilePosition, message: impl Into<String>) -> Self {
        let line = text.lines().nth(at.line.saturating_sub(1)).unwrap_or_default();
        let excerpt = line.chars().count() <= EXCERPT && at.column <= EXCERPT;
        let excerpt = excerpt.then(|| line.trim_end().to_owned());
        Self { at: Some(at), excerpt, ..Self::for_file(path, message) }
    }
}

/// `path:line:column: message`, then the line with a caret.
impl fmt::Display for TestFileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(at) = self.at else {
            return write!(f, "{}: {}", self.path.display(), self.message);
        };
        write!(f, "{}:{}:{}: {}", self.path.display(), at.line, at.column, self.message)?;
        if let Some(line) = &self.excerpt {
            let number = at.line.to_string();
            let margin = " ".repeat(number.len());
            let indent: String = line
                .chars()
                .take(at.column.saturating_sub(1))
                .map(|letter| if letter == '\t' { '\t' } else { ' ' })
                .collect();
            write!(f, "\n {margin} |\n {number} | {line}\n {margin} | {indent}^")?;
        }
        Ok(())
    }
}
