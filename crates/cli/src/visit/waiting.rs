//! How long a command waits for servers that are still starting. All of them count, but a bare name that somebody has is
//! not kept waiting by a server that did not have it the last time.

use std::time::Duration;

use toolyard_hub::Lookup;
use toolyard_upstream::Lists;

use super::{Need, Visit, Wish};
use crate::known::Memory;
use crate::terminal::{make_room, note, note_more};

/// Who waits for longer than this is told what for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Every server has a limit of its own that is shorter.
const LONGEST: Duration = Duration::from_secs(3600);

/// Waits until everything has started or failed to, or is not needed.
pub(super) async fn wait(visit: &Visit, wish: &Wish<'_>, memory: &Memory) {
    let Need::Named(name) = wish.need else { return visit.yard.settle(LONGEST).await };
    let sought = Sought { visit, name, lists: wish.lists, memory };
    let settled = visit.yard.settle_unless(LONGEST, || sought.is_enough(Doubt::Waits));
    if tokio::time::timeout(PATIENCE, settled).await.is_ok() {
        return;
    }
    match sought.is_enough(Doubt::GoesOn) {
        true => sought.tell_left(),
        false => sought.tell(),
    }
    visit.yard.settle_unless(LONGEST, || sought.is_enough(Doubt::GoesOn)).await;
}

/// What is done about a server of which nobody knows what it offers, because it could not be used the last time either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    Waits,
    GoesOn,
}

/// A name that is looked for.
struct Sought<'a> {
    visit: &'a Visit,
    name: &'a str,
    lists: &'a [Lists],
    memory: &'a Memory,
}

impl Sought<'_> {
    fn is_enough(&self, doubt: Doubt) -> bool {
        match self.found() {
            Found::Several => true,
            Found::Nothing => false,
            Found::One(_) => self.visit.late().all(|source| {
                let server = source.name().as_str();
                self.memory.lacks(server, self.name, self.lists)
                    || (doubt == Doubt::GoesOn && self.memory.was_absent(server))
            }),
        }
    }

    /// What those that are ready have under this name.
    fn found(&self) -> Found {
        let catalog = self.visit.yard.catalog();
        let tool = match self.lists.contains(&Lists::Tools) {
            true => Found::from(catalog.tool(self.name)),
            false => Found::Nothing,
        };
        match tool {
            Found::Nothing if self.lists.contains(&Lists::Prompts) => catalog.prompt(self.name).into(),
            found => found,
        }
    }

    /// Those that are not there yet.
    fn late(&self) -> String {
        let late: Vec<&str> = self.visit.late().map(|source| source.name().as_str()).collect();
        late.join(", ")
    }

    /// Tells who is not waited for any longer.
    fn tell_left(&self) {
        make_room();
        note(&format!(
            "{} has not started, and could not be used the last time either: going on without",
            self.late()
        ));
    }

    /// Tells who is waited for.
    fn tell(&self) {
        let (late, name) = (self.late(), self.name);
        // Whoever named the server, or has only one, knows what is waited for.
        if late.is_empty() || self.visit.sources().count() < 2 {
            return;
        }
        make_room();
        let found = self.found();
        let why = match &found {
            Found::One(_) => format!("which may have {name} too"),
            Found::Several | Found::Nothing => format!("which may have {name}"),
        };
        note(&format!("waiting for {late} to start, {why}"));
        note_more(&match found {
            Found::One(full) => format!("{full}, or --server NAME, does not wait for other servers"),
            Found::Several | Found::Nothing => {
                "a full name, or --server NAME, does not wait for other servers".to_owned()
            }
        });
    }
}

enum Found {
    /// Its full name.
    One(String),
    Several,
    Nothing,
}

impl<T: toolyard_hub::Bare> From<Lookup<T>> for Found {
    fn from(lookup: Lookup<T>) -> Self {
        match lookup {
            Lookup::Found(thing) => Self::One(thing.full_name().to_string()),
            Lookup::Ambiguous(_) => Self::Several,
            Lookup::Unknown => Self::Nothing,
        }
    }
}
