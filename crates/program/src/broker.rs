//! Handles the requests of programs. A program controls every byte of its requests, so the broker
//! checks them again. Every call takes the same path as any other call, with the principal of the
//! program's caller.

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

/// The maximum length of a name in a lookup, in bytes. The rest is ignored.
const LONGEST_NAME: usize = 256;
/// The number of lookups that a program may make per allowed call.
const LOOKUPS_PER_CALL: usize = 10;

/// The `execute_program` call that a program runs for.
#[derive(Debug)]
pub(crate) struct ProgramCaller {
    /// The record of the `execute_program` call.
    pub(crate) record: Arc<CallRecord>,
    pub(crate) deadline: Deadline,
    pub(crate) cancel: CancellationToken,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) meta: Option<Raw>,
    pub(crate) client: CallerChannel,
}

/// Gives one program access to the tools of the yard.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) yard: Arc<Yard>,
    pub(crate) indexes: Arc<SearchIndexCache>,
    /// The source of the three program tools, which programs cannot call.
    pub(crate) own: SourceName,
    pub(crate) caller: ProgramCaller,
    /// The maximum number of calls in total.
    pub(crate) calls: usize,
    /// The maximum number of concurrent calls.
    pub(crate) parallel: usize,
    pub(crate) meter: ProgressMeter,
    /// Canceled when the program ends. Requests that are already queued are still read, but no
    /// further calls are made.
    pub(crate) ended: CancellationToken,
}

impl Broker {
    /// Returns the bindings of the tools whose names the code mentions.
    pub(crate) fn bindings(&self, code: &str) -> Vec<ToolBinding> {
        let catalog = self.yard.catalog();
        let visible = self.visible_tools(&catalog);
        let spellings = visible.spellings();
        let mut bindings: Vec<ToolBinding> = Vec::new();
        for word in identifiers_in(code) {
            // A bare name counts only if the program gets a function of that name.
            let named = visible
                .tool(word)
                .filter(|tool| tool.full_name.as_str() == word || visible.short_name(tool) == word);
            let Some(tool) = named.or_else(|| spellings.get(word).cloned()) else { continue };
            if bindings.iter().all(|binding| binding.full_name != tool.full_name.as_str()) {
                bindings.push(visible.binding(&tool, &spellings));
            }
        }
        bindings
    }

    /// Handles requests until the program ends. Dropping the future cancels all running calls.
    pub(crate) async fn serve(self: Arc<Self>, mut questions: mpsc::Receiver<PendingProgramQuestion>) {
        let permits = Arc::new(Semaphore::new(self.parallel.max(1)));
        let (mut calls, mut lookups) = (0_usize, 0_usize);
        let mut running = JoinSet::new();
        loop {
            let next = tokio::select! {
                biased;
                next = questions.recv() => next,
                () = self.ended.cancelled() => None,
            };
            let Some(PendingProgramQuestion { question, mut reply }) = next else { break };
            while running.try_join_next().is_some() {}
            let ProgramQuestion::Call { tool, arguments } = question else {
                lookups += usize::from(!matches!(question, ProgramQuestion::Progress { .. }));
                let limit = self.calls.saturating_mul(LOOKUPS_PER_CALL);
                let answer = if lookups > limit {
                    ProgramReply::Failed(limit_exceeded("", "lookups", limit))
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
            // Reading nothing more until a permit is free keeps the queue on the program's side.
            let permit = tokio::select! {
                permit = Arc::clone(&permits).acquire_owned() => permit,
                () = self.ended.cancelled() => continue,
            };
            let Ok(permit) = permit else { break };
            let broker = Arc::clone(&self);
            running.spawn(async move {
                let number = calls;
                tokio::select! {
                    answer = broker.call(number, &tool, arguments) => drop(reply.send(answer)),
                    // The program no longer waits for this call.
                    () = reply.closed() => {}
                }
                drop(permit);
            });
        }
        running.shutdown().await;
    }

    /// Answers every request except calls.
    async fn handle_question(&self, question: ProgramQuestion) -> ProgramReply {
        let catalog = self.yard.catalog();
        match question {
            ProgramQuestion::Call { .. } => {
                ProgramReply::Failed(failure("", LIMIT, "calls are handled separately", None))
            }
            ProgramQuestion::Binding { tool } => {
                let binding = {
                    let (visible, name) = (self.visible_tools(&catalog), truncate_name(&tool));
                    let spellings = visible.spellings();
                    let entry = visible.tool(name).or_else(|| spellings.get(name).cloned());
                    entry.map(|entry| visible.binding(&entry, &spellings))
                };
                match binding {
                    Some(binding) => ProgramReply::Binding(binding),
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

    async fn search(&self, catalog: &Arc<Catalog>, mut arguments: SearchArguments) -> ProgramReply {
        if arguments.is_list() && arguments.limit.is_none() {
            arguments.limit = Some(u64::MAX);
        }
        let index = self.indexes.get(catalog).await;
        let visible = self.visible_tools(catalog);
        match arguments.find(&visible, &index) {
            Ok(page) => {
                ProgramReply::Data(ProgramData::Json(to_raw(&SearchArguments::render_json(&visible, &page))))
            }
            Err(error) => ProgramReply::Failed(failure_from_error("search_tools", &error)),
        }
    }

    /// Returns the error for an unknown tool name. The suggestion lists similar names.
    async fn unknown_tool_error(&self, catalog: &Arc<Catalog>, name: &str) -> HubError {
        let index = self.indexes.get(catalog).await;
        let similar = similar_names(&self.visible_tools(catalog), &index, truncate_name(name));
        let error = HubError::new(ErrorKind::UnknownTool, format!("unknown tool `{}`", truncate_name(name)));
        match similar.as_slice() {
            [] => error.with_suggestion("use search_tools to find tools by what they do"),
            names => error
                .with_suggestion(format!("did you mean `{}`?", names.join("`, `")))
                .with_details(json!({"close": names})),
        }
    }

    fn visible_tools<'a>(&'a self, catalog: &'a Catalog) -> VisibleTools<'a> {
        VisibleTools { catalog, principal: &self.caller.record.principal, own: &self.own }
    }
}

fn limit_exceeded(tool: &str, unit: &str, limit: usize) -> crate::program::ToolFailure {
    failure(tool, LIMIT, &format!("the program has reached its limit of {limit} {unit}"), None)
}

/// Cuts a name to the length that lookups consider.
fn truncate_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(LONGEST_NAME)]
}

#[cfg(test)]
mod tests;
