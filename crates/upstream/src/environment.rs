//! The environment variables of a server process. By default, a server inherits only variables on
//! an allow list, which contains no secrets: the environment of a yard often holds the tokens of
//! many servers, and each token is meant for one of them.

mod allow_list;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::settings::{CommandSettings, EnvInheritance};
use allow_list::{has_credentials, is_allowed, is_basic, is_package_index};

/// How many withheld variables an error names.
const MOST_NAMES: usize = 10;
/// Variables that no server needs, so errors do not mention them.
const UNINTERESTING: [&str; 6] = ["_", "LS_COLORS", "OLDPWD", "PWD", "SHLVL", "TOOLYARD_TOKEN"];

/// The environment variables of this process, and which of them the configuration uses as secrets.
/// Clones share both.
#[derive(Clone, Default)]
pub struct ProcessEnvironment(Arc<Inner>);

#[derive(Default)]
struct Inner {
    variables: BTreeMap<OsString, OsString>,
    secrets: ArcSwap<BTreeSet<String>>,
}

impl ProcessEnvironment {
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let variables = variables.into_iter().collect();
        Self(Arc::new(Inner { variables, secrets: ArcSwap::default() }))
    }

    /// Sets the variables that the configuration uses as secrets. Such a variable is passed only to
    /// a server whose own `env` sets it, even if it is on the allow list. Replaces the previous
    /// set.
    pub fn set_secrets(&self, names: BTreeSet<String>) {
        self.0.secrets.store(Arc::new(names));
    }

    pub(crate) fn path(&self) -> Option<&OsStr> {
        self.0.variables.get(OsStr::new("PATH")).map(OsString::as_os_str)
    }

    /// Returns the complete environment of a server process.
    pub(crate) fn for_server(&self, settings: &CommandSettings) -> BTreeMap<OsString, OsString> {
        let secrets = self.0.secrets.load();
        let inherited = self.0.variables.iter().filter(|(name, value)| match settings.inherit {
            EnvInheritance::Everything => true,
            EnvInheritance::AllowList => is_inheritable(name, value, &secrets),
        });
        let mut all: BTreeMap<OsString, OsString> =
            inherited.map(|(name, value)| (name.clone(), value.clone())).collect();
        let own = settings.env.iter().map(|(name, value)| (name.into(), value.reveal().into()));
        all.extend(own);
        all
    }

    /// Returns a note about withheld variables for the error of a server that exited at startup, or
    /// `None` if no variable was withheld. Variables that the server mentions on standard error
    /// come first.
    pub(crate) fn withheld_note(&self, settings: &CommandSettings, stderr: &[String]) -> Option<String> {
        let passed = self.for_server(settings);
        let withheld = self.0.variables.keys().filter(|name| !passed.contains_key(*name));
        let mut names: Vec<&str> = withheld.filter_map(|name| name.to_str()).collect();
        names.retain(|name| !UNINTERESTING.contains(name));
        if names.is_empty() {
            return None;
        }
        let is_mentioned = |name: &str| stderr.iter().any(|line| mentions(line, name));
        names.sort_by_key(|name| (!is_mentioned(name), *name));
        let more = match names.len().saturating_sub(MOST_NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let shown: Vec<String> =
            names.iter().take(MOST_NAMES).map(|name| name.chars().take(80).collect()).collect();
        Some(format!(
            "withheld environment variables: {}{more}; pass the required ones with `env`, or all of them with \
             `inherit_env = true`",
            shown.join(", ")
        ))
    }
}

/// Returns whether a server that does not inherit everything gets this variable.
fn is_inheritable(name: &OsStr, value: &OsStr, secrets: &BTreeSet<String>) -> bool {
    let Some(name) = name.to_str() else { return false };
    // An exported shell function is code that is useful only to that shell.
    let value = value.to_string_lossy();
    if value.starts_with("()") {
        return false;
    }
    // A basic variable such as HOME is not a secret, even if the configuration uses it in a header.
    if is_basic(name) {
        return true;
    }
    !secrets.contains(name) && (is_allowed(name) || is_package_index(name) && !has_credentials(&value))
}

/// Returns whether a line contains the name as a separate word.
fn mentions(line: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(name)
        .any(|(at, name)| !line[..at].ends_with(part) && !line[at + name.len()..].starts_with(part))
}

impl PartialEq for ProcessEnvironment {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ProcessEnvironment {}

/// Names and values may be secrets.
impl fmt::Debug for ProcessEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessEnvironment")
            .field("variables", &self.0.variables.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
