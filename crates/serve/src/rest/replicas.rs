//! `GET /mcp/replicas`, and executions of the other replicas: a client may reach any of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State as Shared};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;
use serde_json::json;
use toolyard_hub::{ExecutionId, HistoryCursor, OBSERVE, Raw};

use super::errors::RestError;
use super::query::Query;
use super::response::respond_json;
use super::{RestCaller, RestFront};

/// Maximum size of the list of executions of another replica.
const LONGEST_LIST: usize = 16 * 1024 * 1024;

/// Lists the replicas of the yard, or none if it runs as one process.
pub(super) async fn list(
    Shared(rest): Shared<Arc<RestFront>>,
    RestCaller(principal): RestCaller,
    request: Request,
) -> Result<Response<Body>, RestError> {
    Query::read(request.uri().query()).finish()?;
    if !principal.has_permission(OBSERVE) {
        return Err(RestError::forbidden("listing the replicas", OBSERVE));
    }
    rest.admit_list(&principal).await?;
    let Some(router) = &rest.settings.replicas else {
        return Ok(respond_json(StatusCode::OK, &json!({"replicas": []})));
    };
    Ok(respond_json(StatusCode::OK, &router.list()))
}

impl RestFront {
    /// Returns the response of another replica that knows what this request is about. `None` if
    /// none does, or if another replica has forwarded the request.
    pub(super) async fn ask_other_replicas(&self, head: &Parts) -> Option<Response<Body>> {
        let responses = self.settings.replicas.as_ref()?.ask_all(head).await;
        responses.into_iter().find(|response| response.status() != StatusCode::NOT_FOUND)
    }

    /// Adds the executions of the other replicas to a list of this one.
    pub(super) async fn add_other_executions(&self, head: &Parts, listed: &mut Vec<(HistoryCursor, Raw)>) {
        let Some(router) = &self.settings.replicas else { return };
        // A call in the shared history may be in several lists. The first description is the one of
        // the replica that still has its outcome.
        let mut all = HashMap::new();
        let others = router.ask_all(head).await;
        for response in others {
            for (cursor, execution) in read_executions(response).await.unwrap_or_default() {
                add(&mut all, cursor, execution);
            }
        }
        for (cursor, execution) in std::mem::take(listed) {
            add(&mut all, cursor, execution);
        }
        listed.extend(all.into_values());
    }
}

/// Adds an execution to a list. A description from the history gives way to one with an outcome. The
/// history may place an execution a little later than its replica does; the earlier position is
/// kept, so that the next page does not begin with the same execution.
fn add(all: &mut HashMap<ExecutionId, (HistoryCursor, Raw)>, cursor: HistoryCursor, execution: Raw) {
    let is_past = |execution: &Raw| execution.get().contains(r#""outcomeKept":false"#);
    match all.entry(cursor.id) {
        Entry::Vacant(vacant) => {
            vacant.insert((cursor, execution));
        }
        Entry::Occupied(mut known) => {
            let (position, description) = known.get_mut();
            *position = cursor.min(*position);
            if is_past(description) {
                *description = execution;
            }
        }
    }
}

/// The list of executions as replicas send it to each other: with the position of each.
#[derive(Deserialize)]
struct ExecutionList {
    executions: Vec<Raw>,
    cursors: Vec<String>,
}

async fn read_executions(response: Response<Body>) -> Option<Vec<(HistoryCursor, Raw)>> {
    let body = Limited::new(response.into_body(), LONGEST_LIST).collect().await.ok()?.to_bytes();
    let list: ExecutionList = serde_json::from_slice(&body).ok()?;
    let cursors = list.cursors.iter().map(|cursor| cursor.parse().ok());
    cursors.zip(list.executions).map(|(cursor, execution)| Some((cursor?, execution))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use toolyard_hub::json::from_text;
    use toolyard_hub::{ExecutionId, HistoryCursor};

    use super::add;

    #[test]
    fn an_execution_of_two_lists_is_shown_once_with_its_outcome() {
        let id = ExecutionId::from_bytes([1; 16]);
        let (live, past) = (HistoryCursor { micros: 5, id }, HistoryCursor { micros: 7, id });
        let described = [(live, r#"{"state":"succeeded"}"#), (past, r#"{"outcomeKept":false}"#)];
        for order in [[0, 1], [1, 0]] {
            let mut all = HashMap::new();
            for at in order {
                let (cursor, text) = described[at];
                add(&mut all, cursor, from_text(text.to_owned()));
            }
            let listed: Vec<_> = all.values().map(|(cursor, shown)| (*cursor, shown.get())).collect();
            assert_eq!(listed, [(live, r#"{"state":"succeeded"}"#)]);
        }
    }
}
