//! Problems of a configuration as data: file, line, column, excerpt, message and suggestion.

use std::fmt;
use std::path::PathBuf;

use toolyard_hub::nearest;
use toolyard_hub::printable::clean_name;
use unicode_width::UnicodeWidthChar;

/// An error or a warning about a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    pub severity: ProblemSeverity,
    pub file: Option<PathBuf>,
    pub location: Option<ConfigLocation>,
    /// The server that the problem is about. Other servers are not affected.
    pub server: Option<String>,
    pub message: String,
    pub suggestion: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemSeverity {
    Error,
    /// The configuration works, but maybe not as intended.
    Warning,
}

/// A location in a file. Lines and columns start at 1 and columns count characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigLocation {
    pub line: usize,
    pub column: usize,
    /// The line, with everything hidden that could be a secret.
    pub excerpt: String,
    /// The first character of the excerpt to mark with carets, and the number of characters.
    pub caret: (usize, usize),
}

/// All problems of a configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblems(pub Vec<ConfigProblem>);

impl ConfigProblem {
    /// Creates a problem with a file as a whole.
    pub fn for_file(severity: ProblemSeverity, file: PathBuf, message: impl Into<String>) -> Self {
        Self {
            severity,
            file: Some(file),
            location: None,
            server: None,
            message: message.into(),
            suggestion: None,
        }
    }

    pub fn with_suggestion(self, suggestion: Option<String>) -> Self {
        Self { suggestion, ..self }
    }

    pub fn with_server(self, server: &str) -> Self {
        Self { server: Some(server.to_owned()), ..self }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.severity {
            ProblemSeverity::Error => "error: ",
            ProblemSeverity::Warning => "warning: ",
        })?;
        if let Some(file) = &self.file {
            write!(f, "{}:", clean_name(&file.display().to_string()))?;
            if let Some(place) = &self.location {
                write!(f, "{}:{}:", place.line, place.column)?;
            }
            f.write_str(" ")?;
        }
        if let Some(server) = &self.server {
            write!(f, "server `{}`: ", clean_name(server))?;
        }
        f.write_str(&clean_name(&self.message))?;
        if let Some(place) = &self.location {
            let number = place.line.to_string();
            let margin = " ".repeat(number.len());
            let (start, width) = place.caret;
            let columns = |skipped: usize, taken: usize| -> usize {
                let letters = place.excerpt.chars().skip(skipped).take(taken);
                letters.filter_map(UnicodeWidthChar::width).sum()
            };
            let carets = "^".repeat(columns(start, width).max(1));
            write!(f, "\n {margin} |\n {number} | {}", place.excerpt)?;
            write!(f, "\n {margin} | {}{carets}", " ".repeat(columns(0, start)))?;
        }
        if let Some(suggestion) = &self.suggestion {
            write!(f, "\n  hint: {}", clean_name(suggestion))?;
        }
        Ok(())
    }
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n" };
            write!(f, "{gap}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigProblems {}

/// Suggests the most similar known name, if one is similar enough.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(name, known).map(|close| format!("did you mean `{close}`?"))
}
