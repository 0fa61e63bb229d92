//! Shared idempotency keys: requests of one or two fronts with one store in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolyard_hub::json::from_text;
use toolyard_hub::{
    BoxFuture, ClaimedKey, KeyRequest, Principal, SharedKeyState, SharedKeys, StoreUnavailable, Yard,
    YardSettings,
};
use toolyard_sdk::{NativeSource, Tool};
use toolyard_wire::EndpointSettings;
use tower::ServiceExt;

use crate::mcp::McpSettings;
use crate::rest::{RestFront, RestSettings, router};

#[derive(Debug, Default)]
struct MemoryKeys {
    /// The params and the state of each key.
    keys: Arc<Mutex<HashMap<String, (String, MemoryState)>>>,
    is_away: Mutex<bool>,
}

#[derive(Debug, Clone)]
enum MemoryState {
    Running,
    Unknown,
    Finished(String),
}

#[derive(Debug)]
struct MemoryClaim {
    key: String,
    keys: Arc<Mutex<HashMap<String, (String, MemoryState)>>>,
    if_dropped: Option<MemoryState>,
}

impl ClaimedKey for MemoryClaim {
    fn finish(mut self: Box<Self>, outcome: String) {
        self.if_dropped = Some(MemoryState::Finished(outcome));
    }

    fn release(mut self: Box<Self>) {
        self.if_dropped = None;
    }
}

impl Drop for MemoryClaim {
    fn drop(&mut self) {
        let mut keys = self.keys.lock();
        match (self.if_dropped.take(), keys.get_mut(&self.key)) {
            (Some(state), Some(entry)) => entry.1 = state,
            _ => drop(keys.remove(&self.key)),
        }
    }
}

impl SharedKeys for MemoryKeys {
    fn claim<'a>(
        &'a self,
        request: KeyRequest<'a>,
    ) -> BoxFuture<'a, Result<SharedKeyState, StoreUnavailable>> {
        Box::pin(async move {
            if *self.is_away.lock() {
                return Err(StoreUnavailable("Redis does not answer".to_owned()));
            }
            let key = format!("{}/{}/{}", request.principal, request.tool, request.key);
            let mut keys = self.keys.lock();
            Ok(match keys.get(&key) {
                Some((params, _)) if params != request.params => SharedKeyState::Different,
                Some((_, MemoryState::Running)) => SharedKeyState::Running,
                Some((_, MemoryState::Unknown)) => SharedKeyState::Unknown,
                Some((_, MemoryState::Finished(outcome))) => SharedKeyState::Finished(outcome.clone()),
                None => {
                    keys.insert(key.clone(), (request.params.to_owned(), MemoryState::Running));
                    let keys = Arc::clone(&self.keys);
                    let if_dropped = Some(MemoryState::Unknown);
                    SharedKeyState::Claimed(Box::new(MemoryClaim { key, keys, if_dropped }))
                }
            })
        })
    }
}

/// A front whose tool takes ten seconds and counts its calls.
fn front(keys: &Arc<MemoryKeys>, calls: &Arc<Mutex<usize>>) -> axum::Router {
    let calls = Arc::clone(calls);
    let count = Tool::raw("count", move |arguments: toolyard_hub::Raw, _: toolyard_sdk::Context| {
        let calls = Arc::clone(&calls);
        async move {
            *calls.lock() += 1;
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(from_text(format!(r#"{{"content":[],"structuredContent":{arguments}}}"#)))
        }
    });
    let shared_keys = Some(Arc::clone(keys) as Arc<dyn SharedKeys>);
    let yard = Yard::new(YardSettings { shared_keys, ..YardSettings::default() });
    yard.add(NativeSource::new("native").tool(count).into_source());
    let settings = RestSettings::from_mcp(&McpSettings::default(), &EndpointSettings::default());
    router(RestFront::new(yard, settings))
}

/// The status and the body of a request with a key.
async fn ask(front: &axum::Router, params: &str, context: &Value) -> (u16, String) {
    let mut context = context.clone();
    context["idempotencyKey"] = "k".into();
    let body = format!(r#"{{"params":{params},"context":{context}}}"#);
    let request = Request::post("/mcp/tools/count/execute").header("content-type", "application/json");
    let mut request = request.body(Body::from(body)).unwrap();
    request.extensions_mut().insert(Principal::owner());
    let response = front.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

fn message(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap();
    answer["error"]["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn requests_with_one_key_share_one_call_and_its_response_on_all_replicas() {
    let (keys, calls) = (Arc::default(), Arc::default());
    let fronts = [front(&keys, &calls), front(&keys, &calls)];
    let params = r#"{"b":1.0,"a":"ü"}"#;
    let none = json!({});
    let (first, second, third) = tokio::join!(
        ask(&fronts[0], params, &none),
        ask(&fronts[1], params, &none),
        ask(&fronts[1], params, &none)
    );
    assert_eq!((first.0, *calls.lock()), (200, 1));
    assert_eq!((&second, &third), (&first, &first));
    let different = ask(&fronts[1], r#"{"b":2}"#, &none).await;
    let conflict = "invalid request: `context.idempotencyKey`: was already used with different params";
    assert_eq!((different.0, message(&different.1).as_str()), (409, conflict));
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_outcome_at_most_as_long_as_its_call_may_take() {
    let (keys, calls) = (Arc::default(), Arc::default());
    let fronts = [front(&keys, &calls), front(&keys, &calls)];
    let (none, short) = (json!({}), json!({"timeout": 2_000}));
    let began = Instant::now();
    let second = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let late = ask(&fronts[1], "{}", &short).await;
        (late, began.elapsed().as_secs())
    };
    let (first, (late, seconds)) = tokio::join!(ask(&fronts[0], "{}", &none), second);
    assert_eq!((first.0, late.0, *calls.lock()), (200, 504, 1));
    assert_eq!(message(&late.1), "the call with this idempotency key is still running");
    assert_eq!(seconds, 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_replica_has_stopped_is_never_repeated() {
    let (keys, calls) = (Arc::new(MemoryKeys::default()), Arc::default());
    let front = front(&keys, &calls);
    let state = ("{}".to_owned(), MemoryState::Unknown);
    keys.keys.lock().insert("owner/count/k".to_owned(), state);
    let answer = ask(&front, "{}", &json!({})).await;
    let conflict = "invalid request: `context.idempotencyKey`: was already used, and the outcome is unknown \
                    because the replica that made the call has stopped";
    assert_eq!((answer.0, message(&answer.1).as_str(), *calls.lock()), (409, conflict, 0));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_called_while_the_store_is_away_and_a_refused_call_frees_its_key() {
    let (keys, calls) = (Arc::new(MemoryKeys::default()), Arc::default());
    let front = front(&keys, &calls);
    *keys.is_away.lock() = true;
    let answer = ask(&front, "{}", &json!({})).await;
    let refusal =
        "cannot check the idempotency key: the shared store is not available: Redis does not answer";
    assert_eq!((answer.0, message(&answer.1).as_str(), *calls.lock()), (502, refusal, 0));
    *keys.is_away.lock() = false;
    // The version does not exist, so nothing is called.
    let refused = ask(&front, "{}", &json!({"version": "9.9.9"})).await;
    assert_eq!((refused.0, keys.keys.lock().len()), (404, 0));
    assert_eq!((ask(&front, "{}", &json!({})).await.0, *calls.lock()), (200, 1));
}
