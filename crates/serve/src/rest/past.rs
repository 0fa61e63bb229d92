//! Executions that only the history knows, beside those in memory: which are asked for, and how they are described.

use std::time::SystemTime;

use serde_json::{Map, Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    Ended, Error, ExecutionId, HistoryError, HistoryQuery, Kind, Mark, OBSERVE, PastCall, Principal, Raw,
    Standing, Thing, Timestamp, Visibility,
};

use super::Rest;
use super::answer::named;
use super::errors::Failure;
use super::executions::{Execution, State};
use super::query::{Query, page};

/// How many are shown to who does not say.
const USUAL: usize = 100;
const LONGEST_TEXT: usize = 200;

/// Which executions are asked for.
#[derive(Debug)]
pub(super) struct Filter {
    pub(super) limit: usize,
    after: Option<Mark>,
    state: Option<State>,
    tool: Option<String>,
    principal: Option<String>,
    since: Option<SystemTime>,
    until: Option<SystemTime>,
    /// In lower case.
    text: Option<String>,
}

impl Filter {
    pub(super) fn read(query: &mut Query) -> Self {
        let time = |text: &str| text.parse().map(|Timestamp(at)| at).map_err(|error| error.to_string());
        let short = |text: &str| {
            let fine = text.chars().count() <= LONGEST_TEXT;
            fine.then(|| text.to_ascii_lowercase()).ok_or_else(|| "must be at most 200 characters".to_owned())
        };
        Self {
            limit: query.read_one("limit", page).unwrap_or(USUAL),
            after: query.read_one("cursor", |text| text.parse::<Mark>().map_err(|error| error.to_string())),
            state: query.word("state", &State::WORDS),
            tool: query.one("tool"),
            principal: query.one("principal"),
            since: query.read_one("since", time),
            until: query.read_one("until", time),
            text: query.read_one("q", short),
        }
    }

    /// Whether one that is in memory is among them.
    pub(super) fn fits(&self, execution: &Execution) -> bool {
        let about = &execution.about;
        let state = execution.ending().map_or(State::Running, |ending| ending.state());
        let contains = |text: &str| {
            let error = execution.ending().and_then(|ending| ending.answer.as_ref().err());
            let said = [
                Some(about.tool.as_str()),
                about.server.as_deref(),
                about.session_id.as_deref(),
                about.user_id.as_deref(),
                error.map(|error| error.message()),
            ];
            said.into_iter().flatten().any(|said| said.to_ascii_lowercase().contains(text))
        };
        self.after.is_none_or(|after| mark(execution) < after)
            && self.state.is_none_or(|wanted| wanted == state)
            && self.tool.as_deref().is_none_or(|tool| tool == about.tool)
            && self.principal.as_deref().is_none_or(|id| id == about.principal.id())
            && self.since.is_none_or(|since| about.began.at >= since)
            && self.until.is_none_or(|until| about.began.at < until)
            && self.text.as_deref().is_none_or(contains)
    }

    /// The same question to the history, for `more` than are shown; nothing if it can know of none.
    fn to_history(&self, more: usize) -> Option<HistoryQuery> {
        let standing = match self.state {
            Some(State::Running) => return None,
            Some(State::Succeeded) => Some(Standing::Succeeded),
            Some(State::Failed) => Some(Standing::Failed),
            Some(State::Cancelled) => Some(Standing::Cancelled),
            None => None,
        };
        Some(HistoryQuery {
            limit: self.limit + more,
            after: self.after,
            thing: Some(Thing::Tool),
            principal: self.principal.clone(),
            subject: self.tool.clone(),
            standing,
            since: self.since,
            until: self.until,
            text: self.text.clone(),
        })
    }
}

/// The place of an execution among all others.
pub(super) fn mark(execution: &Execution) -> Mark {
    Mark::new(execution.about.began.at, execution.about.call)
}

/// Those that fit, that this caller may see, and that are not in memory: one more than are shown, if there are so many.
pub(super) async fn recent(
    rest: &Rest,
    filter: &Filter,
    visibility: &Visibility,
    in_memory: &[ExecutionId],
) -> Result<Vec<PastCall>, Failure> {
    let Some(history) = rest.yard.history() else { return Ok(Vec::new()) };
    let Some(query) = filter.to_history(in_memory.len() + 1) else { return Ok(Vec::new()) };
    let calls = visibility.recent_calls(&**history, query).await;
    let mut calls = calls.map_err(|error| unreadable(&error))?;
    calls.retain(|call| !in_memory.contains(&call.id));
    Ok(calls)
}

/// The one of this name, if this caller may see it.
pub(super) async fn find(
    rest: &Rest,
    id: &str,
    visibility: &Visibility,
) -> Result<Option<PastCall>, Failure> {
    let id = id.strip_prefix("exec-").and_then(|id| id.parse().ok());
    let (Some(history), Some(id)) = (rest.yard.history(), id) else { return Ok(None) };
    let found = history.find(id).await.map_err(|error| unreadable(&error))?;
    Ok(found.filter(|call| call.thing == Thing::Tool && visibility.sees_call(&call.into())))
}

/// In the words that executions in memory have. What came back is not kept.
pub(super) fn describe(call: &PastCall, caller: &Principal) -> Raw {
    let id = named(call.id);
    let mut members = Map::new();
    let mut put = |key: &str, value: Value| members.insert(key.to_owned(), value);
    put("executionId", id.as_str().into());
    put("tool", call.subject.as_str().into());
    if let Some(server) = &call.source {
        put("server", server.as_str().into());
    }
    let state = match Standing::from(call.ended) {
        Standing::Succeeded => State::Succeeded,
        Standing::Failed => State::Failed,
        Standing::Cancelled => State::Cancelled,
    };
    put("state", state.as_str().into());
    put("timestamp", Timestamp(call.at).to_string().into());
    put("duration", u64::try_from(call.duration.as_millis()).unwrap_or(u64::MAX).into());
    if caller.holds(OBSERVE) {
        put("principal", call.principal.as_str().into());
    }
    if let Some(session) = &call.session_id {
        put("sessionId", session.as_str().into());
    }
    if let Some(user) = &call.user_id {
        put("userId", user.as_str().into());
    }
    put("outcomeKept", false.into());
    if let (Ended::Error(kind), Some(message)) = (call.ended, &call.error) {
        let failure = match kind {
            Kind::Bug => Failure::of_kind(kind, "internal error"),
            kind => Failure::of(&Error::new(kind, message.as_str()), &id),
        };
        put("error", json!({"code": failure.code, "message": failure.message}));
    }
    to_raw(&members)
}

fn unreadable(error: &HistoryError) -> Failure {
    tracing::error!(%error, "an execution was asked for");
    Failure::of_kind(Kind::Bug, "the history cannot be read")
}
