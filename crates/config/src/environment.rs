//! Environment variables and the current folder, as a value: the caller passes those of the process,
//! and a test its own.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a configuration is read: the variables that it may refer to, and the current folder.
pub struct Environment {
    variables: BTreeMap<String, String>,
    folder: PathBuf,
}

/// Without the variables, because half of all secrets are among them.
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

    /// The folder that relative paths start from.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn home(&self) -> Option<&Path> {
        self.variable("HOME").filter(|home| !home.is_empty()).map(Path::new)
    }

    /// Where people keep their configurations.
    pub fn config_home(&self) -> Option<PathBuf> {
        let said = self.variable("XDG_CONFIG_HOME").map(Path::new).filter(|path| path.is_absolute());
        said.map(Path::to_owned).or_else(|| self.home().map(|home| home.join(".config")))
    }

    /// Where people's programs keep what they could make again.
    pub fn cache_home(&self) -> Option<PathBuf> {
        let said = self.variable("XDG_CACHE_HOME").map(Path::new).filter(|path| path.is_absolute());
        said.map(Path::to_owned).or_else(|| self.home().map(|home| home.join(".cache")))
    }

    /// Where people's programs keep what is not configuration.
    pub fn data_home(&self) -> Option<PathBuf> {
        let said = self.variable("XDG_DATA_HOME").map(Path::new).filter(|path| path.is_absolute());
        said.map(Path::to_owned).or_else(|| self.home().map(|home| home.join(".local/share")))
    }

    /// A path as it was written, with `~` for the home folder, seen from a folder.
    pub fn resolve(&self, path: &str, from: &Path) -> PathBuf {
        let rest = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match (rest, self.home()) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            _ => from.join(path),
        }
    }

    /// Variables whose names are near this one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }
}
