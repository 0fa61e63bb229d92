//! An endpoint, called without a listener.

use std::sync::Arc;

use axum::body::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use toolyard_random::SimulatedOutage;

use super::{Endpoint, EndpointSettings};
use crate::RawJson;
use crate::rpc_error::RpcError;
use crate::server::{InboundRequest, ServerDescription, Service};
use crate::version::Version;

struct Echo;

impl Service for Echo {
    type Caller = &'static str;

    fn describe(&self, _: &&'static str, _: Version) -> ServerDescription {
        let empty = || to_raw_value(&json!({})).unwrap();
        ServerDescription { info: empty(), capabilities: empty(), instructions: None }
    }

    async fn handle(self: Arc<Self>, request: InboundRequest<&'static str>) -> Result<RawJson, RpcError> {
        Ok(to_raw_value(&json!({"said": "x".repeat(request.method.len())})).unwrap())
    }
}

async fn post(
    endpoint: &Arc<Endpoint<Echo>>,
    caller: &'static str,
    session: Option<&str>,
    body: &Value,
) -> (Response<()>, Value) {
    let mut request = Request::post("/mcp").header("content-type", "application/json");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let response = endpoint.respond(caller, request.body(Body::from(body.to_string())).unwrap()).await;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (Response::from_parts(parts, ()), serde_json::from_slice(&bytes).unwrap_or_default())
}

fn initialize() -> Value {
    let params = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

#[tokio::test]
async fn without_random_numbers_no_session_is_opened() {
    let endpoint = Endpoint::new(Arc::new(Echo), EndpointSettings::default());
    let outage = SimulatedOutage::begin();
    let (response, body) = post(&endpoint, "ada", None, &initialize()).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key("retry-after"));
    assert!(!response.headers().contains_key("mcp-session-id"));
    assert_eq!(body["error"]["message"], "the system's random number generator failed");
    assert!(endpoint.sessions().all().is_empty());
    drop(outage);
    let (response, _) = post(&endpoint, "ada", None, &initialize()).await;
    assert_eq!(response.headers()["mcp-session-id"].len(), 32);
}
