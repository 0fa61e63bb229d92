//! Environment variables and the current directory as a value, so that tests can provide their own.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The environment in which a configuration is read: the variables that it can refer to, and the
/// current directory.
pub struct Environment {
    variables: BTreeMap<String, String>,
    folder: PathBuf,
}

/// Omits the variables because they can contain secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({})", self.folder.display())
    }
}

impl Environment {
    pub fn new<T: Into<String>>(folder: &Path, variables: impl IntoIterator<Item = (T, T)>) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self { variables: variables.collect(), folder: folder.to_owned() }
    }

    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Returns the directory that relative paths start from.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn home(&self) -> Option<&Path> {
        self.variable("HOME").filter(|home| !home.is_empty()).map(Path::new)
    }

    /// Returns `$XDG_CONFIG_HOME`, or `~/.config`.
    pub fn config_home(&self) -> Option<PathBuf> {
        let directory = self.variable("XDG_CONFIG_HOME").map(Path::new).filter(|path| path.is_absolute());
        directory.map(Path::to_owned).or_else(|| self.home().map(|home| home.join(".config")))
    }

    /// Returns `$XDG_CACHE_HOME`, or `~/.cache`.
    pub fn cache_home(&self) -> Option<PathBuf> {
        let directory = self.variable("XDG_CACHE_HOME").map(Path::new).filter(|path| path.is_absolute());
        directory.map(Path::to_owned).or_else(|| self.home().map(|home| home.join(".cache")))
    }

    /// Returns `$XDG_DATA_HOME`, or `~/.local/share`.
    pub fn data_home(&self) -> Option<PathBuf> {
        let directory = self.variable("XDG_DATA_HOME").map(Path::new).filter(|path| path.is_absolute());
        directory.map(Path::to_owned).or_else(|| self.home().map(|home| home.join(".local/share")))
    }

    /// Resolves a path relative to `from` and expands a leading `~`.
    pub fn resolve(&self, path: &str, from: &Path) -> PathBuf {
        let rest = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match (rest, self.home()) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            _ => from.join(path),
        }
    }

    /// Returns the names of all variables, for suggestions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }
}
