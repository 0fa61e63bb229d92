//! Names that are known without contacting a server. Servers come from the configuration, and the
//! names of tools, resources and prompts from a small cache file that the commands update. Shell
//! completion uses it because it must be fast, and commands use it to avoid waiting for a server
//! that never had the requested name.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use serde::{Deserialize, Serialize};
use toolyard_config::{Config, Environment};
use toolyard_hub::{SourceState, Yard};
use toolyard_upstream::ServerListKind;

use crate::configuration::process_environment;

/// Limit on the names stored per server, because longer lists do not help in completion.
const MOST_NAMES: usize = 2_000;
/// Limit on the configurations in the cache.
const MOST_CONFIGS: usize = 50;

/// By path of the configuration, then by server.
type CachedNames = BTreeMap<String, BTreeMap<String, ServerNames>>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct ServerNames {
    /// `None` if the server was never asked for them.
    tools: Option<Vec<String>>,
    prompts: Option<Vec<String>>,
    /// Whether the server was unavailable in the last run.
    absent: bool,
}

/// What the servers of one configuration offered when they were last asked.
#[derive(Debug, Default)]
pub(crate) struct NameCache(BTreeMap<String, ServerNames>);

impl NameCache {
    /// Loads the entry of the default configuration.
    pub(crate) fn load() -> Self {
        let around = process_environment();
        Self(read(&around).and_then(|mut cache| cache.remove(&key(&around))).unwrap_or_default())
    }

    /// Whether this server was asked before and had no item of this name.
    pub(crate) fn lacks(&self, server: &str, name: &str, lists: &[ServerListKind]) -> bool {
        let Some(names) = self.0.get(server) else { return false };
        let without = |list: &ServerListKind| match list {
            ServerListKind::Tools => is_missing_from(names.tools.as_deref(), name),
            ServerListKind::Prompts => is_missing_from(names.prompts.as_deref(), name),
            ServerListKind::Resources | ServerListKind::Templates => false,
        };
        lists.iter().all(without)
    }

    /// Whether this server was unavailable in the last run.
    pub(crate) fn was_unavailable(&self, server: &str) -> bool {
        self.0.get(server).is_some_and(|names| names.absent)
    }
}

fn is_missing_from(known: Option<&[String]>, name: &str) -> bool {
    // The cache does not contain every name of a server with a very long list.
    known.is_some_and(|known| {
        known.len() < MOST_NAMES && is_shell_safe(name) && !known.iter().any(|one| one == name)
    })
}

pub(crate) fn server_completer() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let around = process_environment();
        let config = Config::load(&[], &around).ok();
        let names = config.iter().flat_map(Config::servers).map(|entry| entry.name().to_string());
        complete_prefix(typed, names)
    })
}

pub(crate) fn tool_completer() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        complete_prefix(typed, unique_cached_names(|names| names.tools.unwrap_or_default()))
    })
}

pub(crate) fn prompt_completer() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        complete_prefix(typed, unique_cached_names(|names| names.prompts.unwrap_or_default()))
    })
}

fn complete_prefix(typed: &OsStr, names: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    names.into_iter().filter(|name| name.starts_with(typed)).map(CompletionCandidate::new).collect()
}

fn unique_cached_names(pick: impl Fn(ServerNames) -> Vec<String>) -> Vec<String> {
    let mut names: Vec<String> = NameCache::load().0.into_values().flat_map(pick).collect();
    names.sort();
    // A bare name that two servers share is ambiguous.
    let mut once = Vec::with_capacity(names.len());
    for group in names.chunk_by(|one, other| one == other) {
        if let [only] = group {
            once.push(only.clone());
        }
    }
    once
}

/// Stores what the servers offer now. Failures are ignored because the cache is optional.
pub(crate) fn store_names(yard: &Yard, lists: &[ServerListKind]) {
    let around = process_environment();
    let Some(file) = file(&around) else { return };
    let mut cache = read(&around).unwrap_or_default();
    let before = cache.get(&key(&around)).cloned().unwrap_or_default();
    let mut servers = before.clone();
    let catalog = yard.catalog();
    for (source, status) in yard.statuses() {
        // The server is still starting, so its outcome is unknown.
        if !status.startup_complete {
            continue;
        }
        let names = servers.entry(source.to_string()).or_default();
        names.absent = status.state != SourceState::Ready;
        if names.absent {
            continue;
        }
        if lists.contains(&ServerListKind::Tools) {
            let own = catalog.tools().iter().filter(|tool| tool.source == source);
            names.tools = Some(full_and_bare_names(
                own.map(|tool| (tool.full_name.to_string(), tool.raw_name.clone())),
            ));
        }
        if lists.contains(&ServerListKind::Prompts) {
            let own = catalog.prompts().iter().filter(|prompt| prompt.source == source);
            names.prompts = Some(full_and_bare_names(
                own.map(|prompt| (prompt.full_name.to_string(), prompt.raw_name.clone())),
            ));
        }
    }
    if servers == before {
        return;
    }
    if cache.len() >= MOST_CONFIGS {
        cache.clear();
    }
    cache.insert(key(&around), servers);
    if let Ok(text) = serde_json::to_vec(&cache)
        && file.parent().is_some_and(|folder| std::fs::create_dir_all(folder).is_ok())
    {
        let _ = toolyard_config::write_atomically(&file, &text);
    }
}

/// Full and bare names, without those that are unsafe in a shell.
fn full_and_bare_names(names: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (full, raw) in names.take(MOST_NAMES) {
        if raw != full && is_shell_safe(&raw) {
            all.push(raw);
        }
        all.push(full);
    }
    all
}

fn is_shell_safe(name: &str) -> bool {
    name.len() < 200 && name.chars().all(|c| c.is_ascii_graphic() && !"'\"\\`$".contains(c))
}

fn read(around: &Environment) -> Option<CachedNames> {
    serde_json::from_slice(&std::fs::read(file(around)?).ok()?).ok()
}

fn key(around: &Environment) -> String {
    toolyard_config::default_config_file(around).map(|path| path.display().to_string()).unwrap_or_default()
}

fn file(around: &Environment) -> Option<PathBuf> {
    Some(around.cache_home()?.join("toolyard/names.json"))
}
