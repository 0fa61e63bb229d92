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
    CallRecord, CallerChannel, Catalog, Deadline, ErrorKind, HubError, Progress, Raw, SourceName, Yard,
};

use crate::inspect;
use crate::program::{PendingProgramQuestion, ProgramData, ProgramQuestion, ProgramReply, ToolBinding};
use crate::progress::ProgressMeter;
use crate::python_names::identifiers_in;
use crate::search::{SearchArguments, SearchIndexCache, similar_names};
use crate::tool_failure::{LIMIT, failure, failure_from_error};
use crate::visible_tools::VisibleTools;

/// The longest name that is looked up.
const LONGEST_NAME: usize = 256;
/// Questions that are no calls, for every call that is allowed.
const LOOKS_PER_CALL: usize = 10;

/// What a program is run for.
#[derive(Debug)]
pub(crate) struct ProgramCaller {
    /// Of the program's own call.
    pub(crate) record: Arc<CallRecord>,
    pub(crate) deadline: Deadline,
    pub(crate) cancel: CancellationToken,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) meta: Option<Raw>,
    pub(crate) client: CallerChannel,
}

/// The tools of the yard, for one program.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) yard: Arc<Yard>,
    pub(crate) indexes: Arc<SearchIndexCache>,
    /// The source of the three tools, which no program can call.
    pub(crate) own: SourceName,
    pub(crate) caller: ProgramCaller,
    /// How many calls it may make, and how many at once.
    pub(crate) calls: usize,
    pub(crate) parallel: usize,
    pub(crate) meter: ProgressMeter,
    /// The program is over: what it still says is heard, but no call is made for it any more.
    pub(crate) ended: CancellationToken,
}

impl Broker {
    /// What the program will find under the names that it mentions.
    pub(crate) fn bindings(&self, code: &str) -> Vec<ToolBinding> {
        let catalog = self.yard.catalog();
        let seen = self.visible_tools(&catalog);
        let spellings = seen.spellings();
        let mut faces: Vec<ToolBinding> = Vec::new();
        for word in identifiers_in(code) {
            // A bare name counts only where the program would have it as a function.
            let named = seen
                .tool(word)
                .filter(|tool| tool.full_name.as_str() == word || seen.short_name(tool) == word);
            let Some(tool) = named.or_else(|| spellings.get(word).cloned()) else { continue };
            if faces.iter().all(|face| face.full_name != tool.full_name.as_str()) {
                faces.push(seen.binding(&tool, &spellings));
            }
        }
        faces
    }

    /// Answers until the program asks no more. Dropping the future cancels every call that is under way.
    pub(crate) async fn serve(self: Arc<Self>, mut asked: mpsc::Receiver<PendingProgramQuestion>) {
        let places = Arc::new(Semaphore::new(self.parallel.max(1)));
        let (mut calls, mut looks) = (0_usize, 0_usize);
        let mut running = JoinSet::new();
        loop {
            let next = tokio::select! {
                biased;
                next = asked.recv() => next,
                () = self.ended.cancelled() => None,
            };
            let Some(PendingProgramQuestion { question, mut reply }) = next else { break };
            while running.try_join_next().is_some() {}
            let ProgramQuestion::Call { tool, arguments } = question else {
                looks += usize::from(!matches!(question, ProgramQuestion::Progress { .. }));
                let most = self.calls.saturating_mul(LOOKS_PER_CALL);
                let answer = if looks > most {
                    ProgramReply::Failed(limit_exceeded("", "questions", most))
                } else {
                    self.handle_question(question).await
                };
                let _ = reply.send(answer);
                continue;
            };
            if self.ended.is_cancelled() {
                continue;
            }
            calls += 1;
            if calls > self.calls {
                let _ = reply.send(ProgramReply::Failed(limit_exceeded(&tool, "calls", self.calls)));
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
    async fn handle_question(&self, question: ProgramQuestion) -> ProgramReply {
        let catalog = self.yard.catalog();
        match question {
            ProgramQuestion::Call { .. } => {
                ProgramReply::Failed(failure("", LIMIT, "calls are made elsewhere", None))
            }
            ProgramQuestion::Binding { tool } => {
                let face = {
                    let (seen, name) = (self.visible_tools(&catalog), truncate_name(&tool));
                    let spellings = seen.spellings();
                    let found = seen.tool(name).or_else(|| spellings.get(name).cloned());
                    found.map(|found| seen.binding(&found, &spellings))
                };
                match face {
                    Some(face) => ProgramReply::Binding(face),
                    None => ProgramReply::Failed(failure_from_error(
                        &tool,
                        &self.unknown_tool_error(&catalog, &tool).await,
                    )),
                }
            }
            ProgramQuestion::Inspect { tool } => self.inspect(&catalog, &tool).await,
            ProgramQuestion::Search { query, server, limit } => {
                self.search(&catalog, SearchArguments { query, server, limit, cursor: None }).await
            }
            ProgramQuestion::Progress { progress, total, message } => {
                let message = message.map(|text| text.chars().take(1_000).collect());
                self.meter.report_own(&self.caller.client, Progress { progress, total, message });
                ProgramReply::Data(ProgramData::Json(to_raw(&())))
            }
        }
    }

    async fn inspect(&self, catalog: &Arc<Catalog>, name: &str) -> ProgramReply {
        match self.visible_tools(catalog).tool(truncate_name(name)) {
            Some(tool) => ProgramReply::Data(ProgramData::Json(inspect::tool_json(&tool))),
            None => {
                ProgramReply::Failed(failure_from_error(name, &self.unknown_tool_error(catalog, name).await))
            }
        }
    }

    async fn search(&self, catalog: &Arc<Catalog>, mut wanted: SearchArguments) -> ProgramReply {
        if wanted.is_list() && wanted.limit.is_none() {
            wanted.limit = Some(u64::MAX);
        }
        let index = self.indexes.get(catalog).await;
        let seen = self.visible_tools(catalog);
        match wanted.find(&seen, &index) {
            Ok(found) => {
                ProgramReply::Data(ProgramData::Json(to_raw(&SearchArguments::render_json(&seen, &found))))
            }
            Err(error) => ProgramReply::Failed(failure_from_error("search_tools", &error)),
        }
    }

    /// Why there is nothing under this name, with what is close to it.
    async fn unknown_tool_error(&self, catalog: &Arc<Catalog>, name: &str) -> HubError {
        let index = self.indexes.get(catalog).await;
        let close = similar_names(&self.visible_tools(catalog), &index, truncate_name(name));
        let error =
            HubError::new(ErrorKind::UnknownTool, format!("there is no tool {}", truncate_name(name)));
        match close.as_slice() {
            [] => error.with_suggestion("search_tools finds tools by what they do"),
            some => error
                .with_suggestion(format!("did you mean {}?", some.join(", ")))
                .with_details(json!({"close": some})),
        }
    }

    fn visible_tools<'a>(&'a self, catalog: &'a Catalog) -> VisibleTools<'a> {
        VisibleTools { catalog, principal: &self.caller.record.principal, own: &self.own }
    }
}

fn limit_exceeded(tool: &str, what: &str, most: usize) -> crate::program::ToolFailure {
    failure(tool, LIMIT, &format!("a program may make {most} {what}, and this one has made them"), None)
}

/// As much of a name as is worth looking at.
fn truncate_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(LONGEST_NAME)]
}

#[cfg(test)]
mod tests;
