//! The environment variables and the folder that this process was started with, as a value: the one place where the
//! configuration meets the process, so that a test brings its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// No `Debug`: half of all secrets are environment variables.
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
    folder: PathBuf,
}

impl Environment {
    pub(crate) fn from_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            variables: std::env::vars_os().filter_map(text).collect(),
            folder: std::env::current_dir().unwrap_or_default(),
        }
    }

    pub(crate) fn new(folder: &Path, variables: &[(&str, &str)]) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self { variables: variables.iter().map(own).collect(), folder: folder.to_owned() }
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The folder that this process was started in.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn home(&self) -> Option<&Path> {
        self.variable("HOME").filter(|home| !home.is_empty()).map(Path::new)
    }

    /// Where people keep their configurations.
    pub(crate) fn config_home(&self) -> Option<PathBuf> {
        let said = self.variable("XDG_CONFIG_HOME").map(Path::new).filter(|path| path.is_absolute());
        said.map(Path::to_owned).or_else(|| self.home().map(|home| home.join(".config")))
    }

    /// Where people's programs keep what they could make again.
    pub(crate) fn cache_home(&self) -> Option<PathBuf> {
        let said = self.variable("XDG_CACHE_HOME").map(Path::new).filter(|path| path.is_absolute());
        said.map(Path::to_owned).or_else(|| self.home().map(|home| home.join(".cache")))
    }

    /// Where people's programs keep what is not configuration.
    pub(crate) fn data_home(&self) -> Option<PathBuf> {
        let said = self.variable("XDG_DATA_HOME").map(Path::new).filter(|path| path.is_absolute());
        said.map(Path::to_owned).or_else(|| self.home().map(|home| home.join(".local/share")))
    }

    /// A path as it was written, with `~` for the home folder, seen from a folder.
    pub(crate) fn resolve(&self, path: &str, from: &Path) -> PathBuf {
        let rest = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match (rest, self.home()) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            _ => from.join(path),
        }
    }

    /// Variables whose names are near this one.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }
}
