//! Names for the shell to complete. Completing must be quick, so no server is started for it: servers are read out of
//! the configuration, and the names of what they offer are those of the last time that a verb asked them, kept in a
//! small file among people's caches.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use serde::{Deserialize, Serialize};
use toolyard_hub::{State, Yard};
use toolyard_upstream::Lists;

use crate::atomic;
use crate::config::{self, Config, Surroundings};

/// More names of one server than that help nobody who types.
const MOST_NAMES: usize = 2_000;
/// Of how many configurations names are kept.
const MOST_CONFIGS: usize = 50;

/// By the path of the configuration, then by server.
type Kept = BTreeMap<String, BTreeMap<String, Names>>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Names {
    tools: Vec<String>,
    prompts: Vec<String>,
}

pub(crate) fn servers() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let around = Surroundings::of_process();
        let config = Config::load(&[], &around).ok();
        let names = config.iter().flat_map(Config::servers).map(|entry| entry.name().to_string());
        beginning(typed, names)
    })
}

pub(crate) fn tools() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| beginning(typed, of_this_config(|names| names.tools)))
}

pub(crate) fn prompts() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| beginning(typed, of_this_config(|names| names.prompts)))
}

fn beginning(typed: &OsStr, names: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    names.into_iter().filter(|name| name.starts_with(typed)).map(CompletionCandidate::new).collect()
}

fn of_this_config(pick: impl Fn(Names) -> Vec<String>) -> Vec<String> {
    let around = Surroundings::of_process();
    let Some(servers) = read(&around).and_then(|mut kept| kept.remove(&key(&around))) else {
        return Vec::new();
    };
    let mut names: Vec<String> = servers.into_values().flat_map(pick).collect();
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
pub(crate) fn remember(yard: &Yard, lists: &[Lists]) {
    let around = Surroundings::of_process();
    let Some(file) = file(&around) else { return };
    let mut kept = read(&around).unwrap_or_default();
    let before = kept.get(&key(&around)).cloned().unwrap_or_default();
    let mut servers = before.clone();
    let catalog = yard.catalog();
    for (source, status) in yard.statuses() {
        if status.state != State::Ready {
            continue;
        }
        let names = servers.entry(source.to_string()).or_default();
        if lists.contains(&Lists::Tools) {
            let own = catalog.tools().iter().filter(|tool| tool.source == source);
            names.tools = both(own.map(|tool| (tool.full_name.to_string(), tool.raw_name.clone())));
        }
        if lists.contains(&Lists::Prompts) {
            let own = catalog.prompts().iter().filter(|prompt| prompt.source == source);
            names.prompts = both(own.map(|prompt| (prompt.full_name.to_string(), prompt.raw_name.clone())));
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
        let _ = atomic::write(&file, &text);
    }
}

/// Full names and bare ones, without those that no shell should be given.
fn both(names: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let plain =
        |name: &str| name.len() < 200 && name.chars().all(|c| c.is_ascii_graphic() && !"'\"\\`$".contains(c));
    let mut all: Vec<String> = Vec::new();
    for (full, raw) in names.take(MOST_NAMES) {
        if raw != full && plain(&raw) {
            all.push(raw);
        }
        all.push(full);
    }
    all
}

fn read(around: &Surroundings) -> Option<Kept> {
    serde_json::from_slice(&std::fs::read(file(around)?).ok()?).ok()
}

fn key(around: &Surroundings) -> String {
    config::usual_file(around).map(|path| path.display().to_string()).unwrap_or_default()
}

fn file(around: &Surroundings) -> Option<PathBuf> {
    Some(around.cache_home()?.join("toolyard/names.json"))
}
