//! `mcp_history`: running and past calls, as far back as they are recorded.

use std::collections::HashSet;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use toolyard_hub::{CallStatus, ExecutionId, HistoryCursor, HistoryQuery, Principal, SourceName};

use super::errors::ControlError;
use super::journal::{EndCertainty, JournalCall};
use super::{ControlFront, render};

const USUAL: usize = 100;
const MOST: usize = 500;
const LONGEST_TEXT: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryParams {
    limit: Option<usize>,
    cursor: Option<String>,
    tool: Option<String>,
    #[serde(default, deserialize_with = "status")]
    status: Option<CallStatus>,
    text: Option<String>,
}

fn status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<CallStatus>, D::Error> {
    let Some(word) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let unknown = || {
        let all = CallStatus::ALL.map(CallStatus::as_str).join(", ");
        D::Error::custom(format!("status must be one of: {all}"))
    };
    CallStatus::from_word(&word).map(Some).ok_or_else(unknown)
}

impl ControlFront {
    pub(super) async fn history(
        &self,
        principal: &Principal,
        params: &HistoryParams,
    ) -> Result<String, ControlError> {
        let limit = params.limit.unwrap_or(USUAL);
        if !(1..=MOST).contains(&limit) {
            return Err(ControlError::invalid_at("limit", "must be between 1 and 500"));
        }
        if params.text.as_ref().is_some_and(|text| text.chars().count() > LONGEST_TEXT) {
            return Err(ControlError::invalid_at("text", "must be at most 200 characters"));
        }
        let after = params.cursor.as_deref().map(str::parse::<HistoryCursor>).transpose();
        let after = after.map_err(|error| ControlError::invalid_at("cursor", &error.to_string()))?;
        let history = self.yard.history();
        self.journal.flush().await;
        let visibility = self.yard.visibility(principal);
        let journal_calls = self.journal.calls();
        let matching = journal_calls.iter().filter(|call| {
            // If there is a history, it reports the finished calls. That of a replica may lack the
            // calls of the others, and does not contain where a call was made.
            (call.end.is_none() || history.is_none() || call.replica.is_some())
                && visibility.sees_call(&call.as_recorded_call())
                && params.fits(call, after)
        });
        let is_lost =
            |call: &JournalCall| call.end.as_ref().is_some_and(|end| end.certainty == EndCertainty::Unknown);
        let mut lost = HashSet::new();
        let mut calls_by_cursor: Vec<(HistoryCursor, Value)> = matching
            .inspect(|call| lost.extend(is_lost(call).then_some(call.record.id)))
            .map(|call| (HistoryCursor::new(call.record.accepted_at, call.record.id), render::call(call)))
            .collect();
        let known: HashSet<ExecutionId> = calls_by_cursor.iter().map(|(cursor, _)| cursor.id).collect();
        if let (Some(history), true) = (history, params.status != Some(CallStatus::Running)) {
            let query = HistoryQuery {
                limit: limit + known.len() + 1,
                after,
                subject: params.tool.clone(),
                status: params.status,
                text: params.text.as_deref().map(str::to_ascii_lowercase),
                ..HistoryQuery::default()
            };
            let past = visibility.recent_calls(&**history, query).await?;
            // The history may know how a call of a dead replica has ended.
            calls_by_cursor.retain(|(cursor, _)| {
                !lost.contains(&cursor.id) || past.iter().all(|call| call.id != cursor.id)
            });
            // A running call may have ended between the two queries.
            let past = past.iter().filter(|call| !known.contains(&call.id) || lost.contains(&call.id));
            calls_by_cursor.extend(past.map(|call| (call.cursor(), render::past_call(call))));
        }
        calls_by_cursor.sort_by_key(|(cursor, _)| std::cmp::Reverse(*cursor));
        let more = calls_by_cursor.len() > limit;
        calls_by_cursor.truncate(limit);
        let next = calls_by_cursor.last().filter(|_| more).map(|(cursor, _)| cursor.to_string());
        let calls: Vec<Value> = calls_by_cursor.into_iter().map(|(_, call)| call).collect();
        let mut response = json!({"calls": calls});
        if let Some(next) = next {
            response["nextCursor"] = next.into();
        }
        Ok(response.to_string())
    }
}

impl HistoryParams {
    fn fits(&self, call: &JournalCall, after: Option<HistoryCursor>) -> bool {
        let contains = |text: &String| {
            let text = text.to_ascii_lowercase();
            let fields = [
                Some(&*call.record.subject),
                call.record.source.as_ref().map(SourceName::as_str),
                call.record.context.session_id.as_deref(),
                call.record.context.user_id.as_deref(),
                call.end.as_ref().and_then(|end| end.error.as_deref()),
            ];
            fields.into_iter().flatten().any(|field| field.to_ascii_lowercase().contains(&text))
        };
        after.is_none_or(|after| HistoryCursor::new(call.record.accepted_at, call.record.id) < after)
            && self.tool.as_ref().is_none_or(|tool| **tool == *call.record.subject)
            && self.status.is_none_or(|status| status == call.status())
            && self.text.as_ref().is_none_or(contains)
    }
}
