//! `mcp_history`: calls that are under way, and those that are over, as far back as they are known.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use toolyard_hub::{CallStatus, ExecutionId, HistoryCursor, HistoryQuery, Principal, SourceName};

use super::errors::ControlError;
use super::journal::JournalCall;
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

fn status<'de, D: Deserializer<'de>>(said: D) -> Result<Option<CallStatus>, D::Error> {
    let Some(word) = Option::<String>::deserialize(said)? else { return Ok(None) };
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
        wanted: &HistoryParams,
    ) -> Result<String, ControlError> {
        let limit = wanted.limit.unwrap_or(USUAL);
        if !(1..=MOST).contains(&limit) {
            return Err(ControlError::invalid_at("limit", "must be between 1 and 500"));
        }
        if wanted.text.as_ref().is_some_and(|text| text.chars().count() > LONGEST_TEXT) {
            return Err(ControlError::invalid_at("text", "must be at most 200 characters"));
        }
        let after = wanted.cursor.as_deref().map(str::parse::<HistoryCursor>).transpose();
        let after = after.map_err(|error| ControlError::invalid_at("cursor", &error.to_string()))?;
        let history = self.yard.history();
        self.journal.flush().await;
        let visibility = self.yard.visibility(principal);
        let seen = self.journal.calls();
        let seen = seen.iter().filter(|call| {
            // What is over and kept is told by who keeps it.
            (call.end.is_none() || history.is_none())
                && visibility.sees_call(&call.as_recorded_call())
                && wanted.fits(call, after)
        });
        let mut found: Vec<(HistoryCursor, Value)> = seen
            .map(|call| (HistoryCursor::new(call.record.accepted_at, call.record.id), render::call(call)))
            .collect();
        let running: Vec<ExecutionId> = found.iter().map(|(mark, _)| mark.id).collect();
        if let (Some(history), true) = (history, wanted.status != Some(CallStatus::Running)) {
            let query = HistoryQuery {
                limit: limit + running.len() + 1,
                after,
                subject: wanted.tool.clone(),
                status: wanted.status,
                text: wanted.text.as_deref().map(str::to_ascii_lowercase),
                ..HistoryQuery::default()
            };
            let past = visibility.recent_calls(&**history, query).await?;
            // One may have ended between the two looks.
            let past = past.iter().filter(|call| !running.contains(&call.id));
            found.extend(past.map(|call| (call.cursor(), render::past_call(call))));
        }
        found.sort_by_key(|(mark, _)| std::cmp::Reverse(*mark));
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|(mark, _)| mark.to_string());
        let calls: Vec<Value> = found.into_iter().map(|(_, call)| call).collect();
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
            let said = [
                Some(&*call.record.subject),
                call.record.source.as_ref().map(SourceName::as_str),
                call.record.context.session_id.as_deref(),
                call.record.context.user_id.as_deref(),
                call.end.as_ref().and_then(|end| end.error.as_deref()),
            ];
            said.into_iter().flatten().any(|said| said.to_ascii_lowercase().contains(&text))
        };
        after.is_none_or(|after| HistoryCursor::new(call.record.accepted_at, call.record.id) < after)
            && self.tool.as_ref().is_none_or(|tool| **tool == *call.record.subject)
            && self.status.is_none_or(|status| status == call.status())
            && self.text.as_ref().is_none_or(contains)
    }
}
