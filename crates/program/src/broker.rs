//! Answers what programs ask. Everything that comes in was written by the program and is checked again; every call goes
//! down the same corridor as any other, for the same principal.

mod call;

use std::sync::Arc;

use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    CallContext, Catalog, Client, Deadline, Error, Kind, Principal, Priority, Progress, Raw, SourceName, Yard,
};

use crate::fault::{LIMIT, failure, of_error};
use crate::find::Seen;
use crate::inspect;
use crate::meter::Meter;
use crate::program::{Asked, Data, Face, Question, Reply};
use crate::python::words_of;
use crate::search::{Indexes, Wanted, close};

/// The longest name that is looked up.
const LONGEST_NAME: usize = 256;
/// Questions that are no calls, for every call that is allowed.
const LOOKS_PER_CALL: usize = 10;

/// What a program is run for.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) principal: Principal,
    /// As the program's own call has it.
    pub(crate) context: CallContext,
    pub(crate) deadline: Deadline,
    pub(crate) priority: Priority,
    pub(crate) cancel: CancellationToken,
    pub(crate) meta: Option<Raw>,
    pub(crate) client: Client,
}

/// The tools of the yard, for one program.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) yard: Arc<Yard>,
    pub(crate) indexes: Arc<Indexes>,
    /// The source of the three tools, which no program can call.
    pub(crate) own: SourceName,
    pub(crate) caller: Caller,
    /// How many calls it may make, and how many at once.
    pub(crate) calls: usize,
    pub(crate) parallel: usize,
    pub(crate) meter: Meter,
    /// The program is over: what it still says is heard, but no call is made for it any more.
    pub(crate) ended: CancellationToken,
}

impl Broker {
    /// What the program will find under the names that it mentions.
    pub(crate) fn faces(&self, code: &str) -> Vec<Face> {
        let catalog = self.yard.catalog();
        let seen = self.seen(&catalog);
        let spellings = seen.spellings();
        let mut faces: Vec<Face> = Vec::new();
        for word in words_of(code) {
            // A bare name counts only where the program would have it as a function.
            let named =
                seen.tool(word).filter(|tool| tool.full_name.as_str() == word || seen.name(tool) == word);
            let Some(tool) = named.or_else(|| spellings.get(word).cloned()) else { continue };
            if faces.iter().all(|face| face.full_name != tool.full_name.as_str()) {
                faces.push(seen.face(&tool, &spellings));
            }
        }
        faces
    }

    /// Answers until the program asks no more. Dropping the future cancels every call that is under way.
    pub(crate) async fn serve(self: Arc<Self>, mut asked: mpsc::Receiver<Asked>) {
        let places = Arc::new(Semaphore::new(self.parallel.max(1)));
        let (mut calls, mut looks) = (0_usize, 0_usize);
        let mut running = JoinSet::new();
        loop {
            let next = tokio::select! {
                biased;
                next = asked.recv() => next,
                () = self.ended.cancelled() => None,
            };
            let Some(Asked { question, mut reply }) = next else { break };
            while running.try_join_next().is_some() {}
            let Question::Call { tool, arguments } = question else {
                looks += usize::from(!matches!(question, Question::Progress { .. }));
                let most = self.calls.saturating_mul(LOOKS_PER_CALL);
                let answer = if looks > most {
                    Reply::Failed(too_many("", "questions", most))
                } else {
                    self.look(question).await
                };
                let _ = reply.send(answer);
                continue;
            };
            if self.ended.is_cancelled() {
                continue;
            }
            calls += 1;
            if calls > self.calls {
                let _ = reply.send(Reply::Failed(too_many(&tool, "calls", self.calls)));
                continue;
            }
            // Nothing more is read from the program until there is a place: what waits, waits on its side.
            let place = tokio::select! {
                place = Arc::clone(&places).acquire_owned() => place,
                () = self.ended.cancelled() => continue,
            };
            let Ok(place) = place else { break };
            let broker = Arc::clone(&self);
            running.spawn(async move {
                let number = calls;
                tokio::select! {
                    answer = broker.call(number, &tool, arguments) => drop(reply.send(answer)),
                    // Who asked does not wait any more.
                    () = reply.closed() => {}
                }
                drop(place);
            });
        }
        running.shutdown().await;
    }

    /// Everything that is no call.
    async fn look(&self, question: Question) -> Reply {
        let catalog = self.yard.catalog();
        match question {
            Question::Call { .. } => Reply::Failed(failure("", LIMIT, "calls are made elsewhere", None)),
            Question::Face { tool } => {
                let face = {
                    let (seen, name) = (self.seen(&catalog), short(&tool));
                    let spellings = seen.spellings();
                    let found = seen.tool(name).or_else(|| spellings.get(name).cloned());
                    found.map(|found| seen.face(&found, &spellings))
                };
                match face {
                    Some(face) => Reply::Face(face),
                    None => Reply::Failed(of_error(&tool, &self.unknown(&catalog, &tool).await)),
                }
            }
            Question::Inspect { tool } => self.inspect(&catalog, &tool).await,
            Question::Search { query, server, limit } => {
                self.search(&catalog, Wanted { query, server, limit, cursor: None }).await
            }
            Question::Progress { progress, total, message } => {
                let message = message.map(|text| text.chars().take(1_000).collect());
                self.meter.own(&self.caller.client, Progress { progress, total, message });
                Reply::Data(Data::Json(to_raw(&())))
            }
        }
    }

    async fn inspect(&self, catalog: &Arc<Catalog>, name: &str) -> Reply {
        match self.seen(catalog).tool(short(name)) {
            Some(tool) => Reply::Data(Data::Json(inspect::data(&tool))),
            None => Reply::Failed(of_error(name, &self.unknown(catalog, name).await)),
        }
    }

    async fn search(&self, catalog: &Arc<Catalog>, mut wanted: Wanted) -> Reply {
        if wanted.is_list() && wanted.limit.is_none() {
            wanted.limit = Some(u64::MAX);
        }
        let index = self.indexes.of(catalog).await;
        let seen = self.seen(catalog);
        match wanted.find(&seen, &index) {
            Ok(found) => Reply::Data(Data::Json(to_raw(&Wanted::data(&seen, &found)))),
            Err(error) => Reply::Failed(of_error("search_tools", &error)),
        }
    }

    /// Why there is nothing under this name, with what is close to it.
    async fn unknown(&self, catalog: &Arc<Catalog>, name: &str) -> Error {
        let index = self.indexes.of(catalog).await;
        let close = close(&self.seen(catalog), &index, short(name));
        let error = Error::new(Kind::UnknownTool, format!("there is no tool {}", short(name)));
        match close.as_slice() {
            [] => error.suggest("search_tools finds tools by what they do"),
            some => error
                .suggest(format!("did you mean {}?", some.join(", ")))
                .with_details(json!({"close": some})),
        }
    }

    fn seen<'a>(&'a self, catalog: &'a Catalog) -> Seen<'a> {
        Seen { catalog, principal: &self.caller.principal, own: &self.own }
    }
}

fn too_many(tool: &str, what: &str, most: usize) -> crate::program::Failure {
    failure(tool, LIMIT, &format!("a program may make {most} {what}, and this one has made them"), None)
}

/// As much of a name as is worth looking at.
fn short(name: &str) -> &str {
    &name[..name.floor_char_boundary(LONGEST_NAME)]
}

#[cfg(test)]
mod tests;
