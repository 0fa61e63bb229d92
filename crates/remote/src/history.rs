//! The call history of the remote yard.

use std::sync::Arc;

use serde_json::Value;
use toolyard_hub::{BoxFuture, ExecutionId, History, HistoryError, HistoryQuery, PastCall};

use super::decode;
use super::link::RemoteLink;

/// The maximum number of calls in one response.
const MOST: usize = 500;

pub(super) struct RemoteHistory {
    pub(super) link: Arc<RemoteLink>,
}

impl History for RemoteHistory {
    fn recent(&self, query: HistoryQuery) -> BoxFuture<'static, Result<Vec<PastCall>, HistoryError>> {
        let link = Arc::clone(&self.link);
        Box::pin(async move {
            let mut params = decode::request_fields([("limit", query.limit.clamp(1, MOST).into())]);
            let filters = [
                ("cursor", query.after.map(|mark| mark.to_string())),
                ("tool", query.subject),
                ("text", query.text),
                ("status", query.status.map(|status| status.as_str().to_owned())),
            ];
            for (key, value) in filters {
                if let Some(value) = value {
                    params.set(key, toolyard_hub::json::to_raw(&value));
                }
            }
            let response = link.request("mcp_history", params).await;
            let response = response.map_err(|error| HistoryError(error.message_with_suggestion()))?;
            let response: Value = serde_json::from_str(response.get()).unwrap_or_default();
            let calls = response["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
            let matches = |call: &PastCall| {
                query.kind.is_none_or(|kind| kind == call.kind)
                    && query.principal.as_ref().is_none_or(|principal| *principal == call.principal)
                    && query.since.is_none_or(|since| call.at >= since)
                    && query.until.is_none_or(|until| call.at < until)
            };
            Ok(calls.iter().filter_map(decode::decode_past_call).filter(matches).collect())
        })
    }

    fn find(&self, id: ExecutionId) -> BoxFuture<'static, Result<Option<PastCall>, HistoryError>> {
        let recent = self.recent(HistoryQuery { limit: MOST, ..HistoryQuery::default() });
        Box::pin(async move { Ok(recent.await?.into_iter().find(|call| call.id == id)) })
    }
}
