//! How long a command waits for servers that are still starting. It waits for all of them, with one
//! exception: once a server offers the requested bare name, servers that did not have it in the
//! last run no longer delay the command.

use std::time::Duration;

use toolyard_hub::Lookup;
use toolyard_upstream::ServerListKind;

use super::{OneShotOptions, OneShotYard, ServerSelection};
use crate::name_cache::NameCache;
use crate::terminal::{clear_line, print_hint, print_note, print_warning};

/// After this time, the command prints what it waits for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Every server has its own, shorter limit.
const LONGEST: Duration = Duration::from_secs(3600);

/// Waits until every server has started, has failed, or is not needed.
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

/// What to do about a server that is still starting, was unavailable in the last run, and may
/// therefore offer anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AbsentServerPolicy {
    Wait,
    Skip,
}

/// The name that a command looks for.
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

    /// Returns what the ready servers offer under this name.
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
            matched => matched,
        }
    }

    /// Returns the names of the servers that are still starting.
    fn starting_names(&self) -> String {
        let late: Vec<&str> = self.visit.starting_sources().map(|source| source.name().as_str()).collect();
        late.join(", ")
    }

    /// Prints which servers the command no longer waits for.
    fn report_skipped(&self) {
        clear_line();
        print_warning(&format!(
            "continuing without {}, which has not started and was unavailable in the last run",
            self.starting_names()
        ));
    }

    /// Prints which servers the command waits for.
    fn report_waiting(&self) {
        let (late, name) = (self.starting_names(), self.name);
        // If the user named the server or has only one, the note is not needed.
        if late.is_empty() || self.visit.sources().count() < 2 {
            return;
        }
        clear_line();
        let matched = self.find_match();
        let why = match &matched {
            NameMatch::One(_) => format!("which may also offer `{name}`"),
            NameMatch::Several | NameMatch::Nothing => format!("which may offer `{name}`"),
        };
        print_note(&format!("waiting for {late} to start, {why}"));
        print_hint(&match matched {
            NameMatch::One(full) => {
                format!("use `{full}` or --server NAME to avoid waiting for other servers")
            }
            NameMatch::Several | NameMatch::Nothing => {
                "use a full name or --server NAME to avoid waiting for other servers".to_owned()
            }
        });
    }
}

enum NameMatch {
    /// The full name.
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
