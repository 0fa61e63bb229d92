//! Executions that are only in the history: filters and descriptions.

use std::time::SystemTime;

use serde_json::{Map, Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    CallEndReason, CallStatus, EntryKind, ErrorKind, ExecutionId, HistoryCursor, HistoryError, HistoryQuery,
    HubError, OBSERVE, PastCall, Principal, Raw, Timestamp, Visibility,
};

use super::RestFront;
use super::errors::RestError;
use super::executions::Execution;
use super::query::{Query, parse_page_size};
use super::response::execution_name;

/// Default page size.
const USUAL: usize = 100;
const LONGEST_TEXT: usize = 200;

/// The filters of an execution list.
#[derive(Debug)]
pub(super) struct ExecutionFilter {
    pub(super) limit: usize,
    after: Option<HistoryCursor>,
    state: Option<CallStatus>,
    tool: Option<String>,
    principal: Option<String>,
    since: Option<SystemTime>,
    until: Option<SystemTime>,
    /// In lowercase.
    text: Option<String>,
}

impl ExecutionFilter {
    pub(super) fn read(query: &mut Query) -> Self {
        let time = |text: &str| text.parse().map(|Timestamp(at)| at).map_err(|error| error.to_string());
        let short = |text: &str| {
            let fine = text.chars().count() <= LONGEST_TEXT;
            fine.then(|| text.to_ascii_lowercase()).ok_or_else(|| "must not exceed 200 characters".to_owned())
        };
        Self {
            limit: query.read_one("limit", parse_page_size).unwrap_or(USUAL),
            after: query
                .read_one("cursor", |text| text.parse::<HistoryCursor>().map_err(|error| error.to_string())),
            state: query.take_keyword("state", &CallStatus::ALL.map(|status| (status.as_str(), status))),
            tool: query.one("tool"),
            principal: query.one("principal"),
            since: query.read_one("since", time),
            until: query.read_one("until", time),
            text: query.read_one("q", short),
        }
    }

    /// Returns whether an execution in memory matches the filters.
    pub(super) fn fits(&self, execution: &Execution) -> bool {
        let about = &execution.info;
        let state = execution.outcome().map_or(CallStatus::Running, |ending| ending.state());
        let contains = |text: &str| {
            let error = execution.outcome().and_then(|ending| ending.answer.as_ref().err());
            let fields = [
                Some(about.tool.as_str()),
                about.server.as_deref(),
                about.session_id.as_deref(),
                about.user_id.as_deref(),
                error.map(|error| error.message()),
            ];
            fields.into_iter().flatten().any(|field| field.to_ascii_lowercase().contains(text))
        };
        self.after.is_none_or(|after| cursor(execution) < after)
            && self.state.is_none_or(|required| required == state)
            && self.tool.as_deref().is_none_or(|tool| tool == about.tool)
            && self.principal.as_deref().is_none_or(|id| id == about.principal.id())
            && self.since.is_none_or(|since| about.began.at >= since)
            && self.until.is_none_or(|until| about.began.at < until)
            && self.text.as_deref().is_none_or(contains)
    }

    /// Converts the filters into a history query with `more` additional results. Returns `None` if
    /// the history cannot contain a match.
    fn to_history_query(&self, more: usize) -> Option<HistoryQuery> {
        if self.state == Some(CallStatus::Running) {
            return None;
        }
        Some(HistoryQuery {
            limit: self.limit + more,
            after: self.after,
            kind: Some(EntryKind::Tool),
            principal: self.principal.clone(),
            subject: self.tool.clone(),
            status: self.state,
            since: self.since,
            until: self.until,
            text: self.text.clone(),
        })
    }
}

/// Returns the position of an execution in the list.
pub(super) fn cursor(execution: &Execution) -> HistoryCursor {
    HistoryCursor::new(execution.info.began.at, execution.info.call)
}

/// Returns matching executions that the caller may see and that are not in memory: up to one more
/// than the page size.
pub(super) async fn recent(
    rest: &RestFront,
    filter: &ExecutionFilter,
    visibility: &Visibility,
    in_memory: &[ExecutionId],
) -> Result<Vec<PastCall>, RestError> {
    let Some(history) = rest.yard.history() else { return Ok(Vec::new()) };
    let Some(query) = filter.to_history_query(in_memory.len() + 1) else { return Ok(Vec::new()) };
    let calls = visibility.recent_calls(&**history, query).await;
    let mut calls = calls.map_err(|error| history_error(&error))?;
    calls.retain(|call| !in_memory.contains(&call.id));
    Ok(calls)
}

/// Returns the execution with this ID, if the caller may see it.
pub(super) async fn find(
    rest: &RestFront,
    id: &str,
    visibility: &Visibility,
) -> Result<Option<PastCall>, RestError> {
    let id = id.strip_prefix("exec-").and_then(|id| id.parse().ok());
    let (Some(history), Some(id)) = (rest.yard.history(), id) else { return Ok(None) };
    let found = history.find(id).await.map_err(|error| history_error(&error))?;
    Ok(found.filter(|call| call.kind == EntryKind::Tool && visibility.sees_call(&call.into())))
}

/// Describes a past call like an execution in memory. The history does not store outcomes.
pub(super) fn describe(call: &PastCall, caller: &Principal) -> Raw {
    let id = execution_name(call.id);
    let mut members = Map::new();
    let mut put = |key: &str, value: Value| members.insert(key.to_owned(), value);
    put("executionId", id.as_str().into());
    put("tool", call.subject.as_str().into());
    if let Some(server) = &call.source {
        put("server", server.as_str().into());
    }
    put("state", CallStatus::from(call.ended).as_str().into());
    put("timestamp", Timestamp(call.at).to_string().into());
    put("duration", u64::try_from(call.duration.as_millis()).unwrap_or(u64::MAX).into());
    if caller.has_permission(OBSERVE) {
        put("principal", call.principal.as_str().into());
    }
    if let Some(session) = &call.session_id {
        put("sessionId", session.as_str().into());
    }
    if let Some(user) = &call.user_id {
        put("userId", user.as_str().into());
    }
    put("outcomeKept", false.into());
    if let (CallEndReason::Error(kind), Some(message)) = (call.ended, &call.error) {
        let failure = match kind {
            ErrorKind::Bug => RestError::from_kind(kind, "internal error"),
            kind => RestError::from_hub_error(&HubError::new(kind, message.as_str()), &id),
        };
        put("error", json!({"code": failure.code, "message": failure.message}));
    }
    to_raw(&members)
}

fn history_error(error: &HistoryError) -> RestError {
    tracing::error!(%error, "cannot read the history");
    RestError::from_kind(ErrorKind::Bug, "cannot read the history")
}
