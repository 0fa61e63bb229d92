//! How long a command waits for servers that are still starting. All of them count, but a bare name that somebody has is
//! not kept waiting by a server that did not have it the last time.

use std::time::Duration;

use toolyard_hub::Lookup;
use toolyard_upstream::ServerListKind;

use super::{OneShotOptions, OneShotYard, ServerSelection};
use crate::name_cache::NameCache;
use crate::terminal::{clear_line, note, note_detail};

/// Who waits for longer than this is told what for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Every server has a limit of its own that is shorter.
const LONGEST: Duration = Duration::from_secs(3600);

/// Waits until everything has started or failed to, or is not needed.
pub(super) async fn wait_until_ready(visit: &OneShotYard, wish: &OneShotOptions<'_>, memory: &NameCache) {
    let ServerSelection::Named(name) = wish.selection else {
        return visit.yard.wait_for_startup(LONGEST).await;
    };
    let sought = NameSearch { visit, name, lists: wish.lists, memory };
    let settled =
        visit.yard.wait_for_startup_or(LONGEST, || sought.can_stop_waiting(AbsentServerPolicy::Wait));
    if tokio::time::timeout(PATIENCE, settled).await.is_ok() {
        return;
    }
    match sought.can_stop_waiting(AbsentServerPolicy::Skip) {
        true => sought.report_skipped(),
        false => sought.report_waiting(),
    }
    visit.yard.wait_for_startup_or(LONGEST, || sought.can_stop_waiting(AbsentServerPolicy::Skip)).await;
}

/// What is done about a server of which nobody knows what it offers, because it could not be used the last time either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AbsentServerPolicy {
    Wait,
    Skip,
}

/// A name that is looked for.
struct NameSearch<'a> {
    visit: &'a OneShotYard,
    name: &'a str,
    lists: &'a [ServerListKind],
    memory: &'a NameCache,
}

impl NameSearch<'_> {
    fn can_stop_waiting(&self, doubt: AbsentServerPolicy) -> bool {
        match self.find_match() {
            NameMatch::Several => true,
            NameMatch::Nothing => false,
            NameMatch::One(_) => self.visit.starting_sources().all(|source| {
                let server = source.name().as_str();
                self.memory.lacks(server, self.name, self.lists)
                    || (doubt == AbsentServerPolicy::Skip && self.memory.was_unavailable(server))
            }),
        }
    }

    /// What those that are ready have under this name.
    fn find_match(&self) -> NameMatch {
        let catalog = self.visit.yard.catalog();
        let tool = match self.lists.contains(&ServerListKind::Tools) {
            true => NameMatch::from(catalog.tool(self.name)),
            false => NameMatch::Nothing,
        };
        match tool {
            NameMatch::Nothing if self.lists.contains(&ServerListKind::Prompts) => {
                catalog.prompt(self.name).into()
            }
            found => found,
        }
    }

    /// Those that are not there yet.
    fn starting_names(&self) -> String {
        let late: Vec<&str> = self.visit.starting_sources().map(|source| source.name().as_str()).collect();
        late.join(", ")
    }

    /// Tells who is not waited for any longer.
    fn report_skipped(&self) {
        clear_line();
        note(&format!(
            "{} has not started, and could not be used the last time either: going on without",
            self.starting_names()
        ));
    }

    /// Tells who is waited for.
    fn report_waiting(&self) {
        let (late, name) = (self.starting_names(), self.name);
        // Whoever named the server, or has only one, knows what is waited for.
        if late.is_empty() || self.visit.sources().count() < 2 {
            return;
        }
        clear_line();
        let found = self.find_match();
        let why = match &found {
            NameMatch::One(_) => format!("which may have {name} too"),
            NameMatch::Several | NameMatch::Nothing => format!("which may have {name}"),
        };
        note(&format!("waiting for {late} to start, {why}"));
        note_detail(&match found {
            NameMatch::One(full) => format!("{full}, or --server NAME, does not wait for other servers"),
            NameMatch::Several | NameMatch::Nothing => {
                "a full name, or --server NAME, does not wait for other servers".to_owned()
            }
        });
    }
}

enum NameMatch {
    /// Its full name.
    One(String),
    Several,
    Nothing,
}

impl<T: toolyard_hub::NamedEntry> From<Lookup<T>> for NameMatch {
    fn from(lookup: Lookup<T>) -> Self {
        match lookup {
            Lookup::Found(thing) => Self::One(thing.full_name().to_string()),
            Lookup::Ambiguous(_) => Self::Several,
            Lookup::Unknown => Self::Nothing,
        }
    }
}
