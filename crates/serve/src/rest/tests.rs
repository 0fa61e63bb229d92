//! The routes as a whole: documented routes are served, and all others are refused with a REST
//! error.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use toolyard_hub::{ErrorKind, Principal, Yard};
use toolyard_sdk::{NativeSource, Tool};
use toolyard_wire::EndpointSettings;
use tower::ServiceExt;

use super::errors::code_and_status;
use super::executions::tests::execution;
use super::run::Job;
use super::{RestFront, RestSettings, router};
use crate::mcp::McpSettings;

pub(super) fn yard() -> Arc<Yard> {
    let echo = Tool::raw("echo", |arguments: toolyard_hub::Raw, _: toolyard_sdk::Context| async move {
        Ok(toolyard_hub::json::from_text(format!(r#"{{"content":[],"structuredContent":{arguments}}}"#)))
    });
    Yard::with_sources([NativeSource::new("native").tool(echo).into_source()])
}

async fn ask(method: &str, path: &str) -> (StatusCode, Option<String>, Value) {
    let settings = RestSettings::from_mcp(&McpSettings::default(), &EndpointSettings::default());
    let router = router(RestFront::new(yard(), settings));
    let mut request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    request.extensions_mut().insert(Principal::owner());
    let response = router.oneshot(request).await.unwrap();
    let (status, allow) = (response.status(), response.headers().get("allow").cloned());
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let allow = allow.map(|allow| allow.to_str().unwrap().to_owned());
    (status, allow, serde_json::from_slice(&bytes).unwrap_or_default())
}

#[tokio::test]
async fn every_documented_address_has_exactly_the_documented_methods() {
    let (_, _, document) = ask("GET", "/openapi.json").await;
    for (path, item) in document["paths"].as_object().unwrap() {
        if path == "/health" {
            continue;
        }
        let (status, allow, body) = ask("PATCH", &path.replace(['{', '}'], "")).await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(body["error"]["code"], "METHOD_NOT_ALLOWED", "{path}");
        let mut documented: Vec<String> =
            item.as_object().unwrap().keys().map(|key| key.to_uppercase()).collect();
        if documented.iter().any(|method| method == "GET") {
            documented.push("HEAD".to_owned());
        }
        let mut served: Vec<String> =
            allow.unwrap().split(',').map(|method| method.trim().to_owned()).collect();
        documented.sort();
        served.sort();
        assert_eq!(documented, served, "{path}");
    }
    let execute = document["paths"]["/mcp/tools/echo/execute"].clone();
    assert!(execute["post"].is_object(), "{execute}");
}

/// The documentation page.
const PAGE: &str = include_str!("../../../../docs/reference/rest.md");

#[tokio::test]
async fn every_address_and_every_error_is_in_the_documentation() {
    let (_, _, document) = ask("GET", "/openapi.json").await;
    let mut missing = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.replace("/echo/", "/{name}/");
        let rows =
            item.as_object().unwrap().keys().map(|method| format!("| `{} {path}` |", method.to_uppercase()));
        missing.extend(rows.filter(|row| !PAGE.contains(row)));
    }
    for kind in ErrorKind::ALL {
        let (code, status) = code_and_status(kind);
        let row = format!("| `{code}` | {} |", status.as_u16());
        missing.extend(Some(row).filter(|row| !PAGE.contains(row)));
    }
    for (status, response) in document["components"]["responses"].as_object().unwrap() {
        let schema = &response["content"]["application/json"]["schema"];
        let codes = schema["properties"]["error"]["properties"]["code"]["enum"].as_array().unwrap();
        let rows = codes.iter().map(|code| format!("| `{}` | {status} |", code.as_str().unwrap()));
        missing.extend(rows.filter(|row| !PAGE.contains(row)));
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[tokio::test]
async fn an_execution_whose_task_is_lost_still_ends() {
    let settings = RestSettings::from_mcp(&McpSettings::default(), &EndpointSettings::default());
    let rest = RestFront::new(yard(), settings);
    let execution = execution();
    assert!(rest.executions.begin(&execution));
    let (_sender, updates) = tokio::sync::mpsc::channel(1);
    drop(Job::new(Arc::clone(&rest), Arc::clone(&execution), None, updates));
    let ending = execution.wait().await;
    assert_eq!(ending.answer.as_ref().unwrap_err().kind(), ErrorKind::Bug);
    assert!(rest.executions.all().iter().all(|execution| execution.outcome().is_some()));
}
