//! Which environment variables a server that we start is given. By default that is a list of names that do not hold
//! secrets: a yard is often started with the tokens of many servers in its environment, and each is for one of them.

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
/// Variables of a shell about itself, which no server misses.
const UNINTERESTING: [&str; 6] = ["_", "LS_COLORS", "OLDPWD", "PWD", "SHLVL", "TOOLYARD_TOKEN"];

/// The environment variables of this process, and which of them are secrets of the configuration. Clones share both.
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

    /// The variables that the configuration takes secrets from. Only a server whose own `env` names one is given it,
    /// even if it is on the list. Replaces what was said before.
    pub fn set_secrets(&self, names: BTreeSet<String>) {
        self.0.secrets.store(Arc::new(names));
    }

    pub(crate) fn path(&self) -> Option<&OsStr> {
        self.0.variables.get(OsStr::new("PATH")).map(OsString::as_os_str)
    }

    /// The whole environment of a server's process.
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

    /// What an error about a server that died at its start says about variables that it was not given; nothing if it
    /// was given all. Those that the server mentions itself come first.
    pub(crate) fn withheld_note(&self, settings: &CommandSettings, stderr: &[String]) -> Option<String> {
        let given = self.for_server(settings);
        let withheld = self.0.variables.keys().filter(|name| !given.contains_key(*name));
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
            "environment variables that it was not given: {}{more}; pass the ones it needs with `env`, or all of \
             them with `inherit_env = true`",
            shown.join(", ")
        ))
    }
}

/// Whether a server that does not inherit everything is given this variable.
fn is_inheritable(name: &OsStr, value: &OsStr, secrets: &BTreeSet<String>) -> bool {
    let Some(name) = name.to_str() else { return false };
    // A function that a shell exports is code, and no program but that shell has a use for it.
    let value = value.to_string_lossy();
    if value.starts_with("()") {
        return false;
    }
    // A configuration that says ${HOME} in a header does not make HOME a secret.
    if is_basic(name) {
        return true;
    }
    !secrets.contains(name) && (is_allowed(name) || is_package_index(name) && !has_credentials(&value))
}

/// Whether a line has the name as a word of its own.
fn mentions(line: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(name)
        .any(|(at, found)| !line[..at].ends_with(part) && !line[at + found.len()..].starts_with(part))
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
