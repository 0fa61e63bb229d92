//! What is known without asking any server: servers are read out of the configuration, and the names of what they offer
//! are those of the last time that a verb asked them, kept in a small file among people's caches. The shell completes from
//! it, because completing must be quick; and a verb need not wait for a server that never had what it looks for.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use serde::{Deserialize, Serialize};
use toolyard_config::{Config, Environment};
use toolyard_hub::{SourceState, Yard};
use toolyard_upstream::ServerListKind;

use crate::configuration::process_environment;

/// More names of one server than that help nobody who types.
const MOST_NAMES: usize = 2_000;
/// Of how many configurations names are kept.
const MOST_CONFIGS: usize = 50;

/// By the path of the configuration, then by server.
type CachedNames = BTreeMap<String, BTreeMap<String, ServerNames>>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct ServerNames {
    /// Nothing if it was never asked for them.
    tools: Option<Vec<String>>,
    prompts: Option<Vec<String>>,
    /// It could not be used the last time.
    absent: bool,
}

/// What the servers of one configuration offered the last time that they were asked.
#[derive(Debug, Default)]
pub(crate) struct NameCache(BTreeMap<String, ServerNames>);

impl NameCache {
    /// What is remembered of the configuration that is used where none is named.
    pub(crate) fn load() -> Self {
        let around = process_environment();
        Self(read(&around).and_then(|mut kept| kept.remove(&key(&around))).unwrap_or_default())
    }

    /// Whether this server was asked before, and had nothing of this name.
    pub(crate) fn lacks(&self, server: &str, name: &str, lists: &[ServerListKind]) -> bool {
        let Some(names) = self.0.get(server) else { return false };
        let without = |list: &ServerListKind| match list {
            ServerListKind::Tools => is_missing_from(names.tools.as_deref(), name),
            ServerListKind::Prompts => is_missing_from(names.prompts.as_deref(), name),
            ServerListKind::Resources | ServerListKind::Templates => false,
        };
        lists.iter().all(without)
    }

    /// Whether this server could not be used the last time.
    pub(crate) fn was_unavailable(&self, server: &str) -> bool {
        self.0.get(server).is_some_and(|names| names.absent)
    }
}

fn is_missing_from(known: Option<&[String]>, name: &str) -> bool {
    // Of a server that offers very much not everything is kept, nor is every name.
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
    // A bare name that two servers have is of no use.
    let mut once = Vec::with_capacity(names.len());
    for group in names.chunk_by(|one, other| one == other) {
        if let [only] = group {
            once.push(only.clone());
        }
    }
    once
}

/// Keeps what the servers offer now for later. That this fails is no reason to say a word.
pub(crate) fn store_names(yard: &Yard, lists: &[ServerListKind]) {
    let around = process_environment();
    let Some(file) = file(&around) else { return };
    let mut kept = read(&around).unwrap_or_default();
    let before = kept.get(&key(&around)).cloned().unwrap_or_default();
    let mut servers = before.clone();
    let catalog = yard.catalog();
    for (source, status) in yard.statuses() {
        // Nobody knows yet what becomes of it.
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
    if kept.len() >= MOST_CONFIGS {
        kept.clear();
    }
    kept.insert(key(&around), servers);
    if let Ok(text) = serde_json::to_vec(&kept)
        && file.parent().is_some_and(|folder| std::fs::create_dir_all(folder).is_ok())
    {
        let _ = toolyard_config::write_atomically(&file, &text);
    }
}

/// Full names and bare ones, without those that no shell should be given.
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
