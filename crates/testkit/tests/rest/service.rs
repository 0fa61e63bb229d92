//! Endpoints about the yard itself: servers, readiness, metrics and the OpenAPI document.

use serde_json::{Value, json};
use toolyard_testkit::harness::within_timeout;

use super::workbench;

#[tokio::test]
async fn servers_tell_their_state_and_what_they_offer() {
    let server = workbench(&["--odd", "legacy-only", "--odd", "dies-at-start"]).await;
    server.get("/mcp/tools").await;
    let servers = server.get("/mcp/servers").await.json()["servers"].clone();
    let of = |name: &str| {
        servers.as_array().unwrap().iter().find(|server| server["name"] == name).unwrap().clone()
    };
    let sound = of("legacy-only");
    assert_eq!((&sound["state"], &sound["tools"]), (&json!("ready"), &json!(2)));
    assert_eq!(sound["transport"], "stdio");
    let dead = of("dies-at-start");
    assert_eq!((&dead["state"], &dead["tools"]), (&json!("retrying"), &json!(0)));
    assert!(dead["reason"].as_str().unwrap().contains("exited with code 3"), "{dead}");
    assert_eq!(of("probe")["state"], "ready");
}

#[tokio::test]
async fn a_server_of_which_a_caller_may_use_nothing_is_not_shown() {
    let server = workbench(&["--token", "ada=a="]).await;
    let headers = [("authorization", "Bearer a")];
    let answer = server.request("GET", "/mcp/servers", &headers, b"").await.read_body().await;
    assert_eq!(answer.json()["servers"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn readiness_waits_for_sources_that_are_starting() {
    let server = workbench(&["--odd", "mute", "--odd", "legacy-only"]).await;
    let starting = within_timeout("the working server", async {
        loop {
            let answer = server.get("/ready").await;
            if answer.json()["starting"] == json!(["mute"]) {
                return answer;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(
        (starting.status, starting.json()),
        (503, json!({"status": "starting", "starting": ["mute"]}))
    );
    let ready = workbench(&[]).await.get("/ready").await;
    assert_eq!((ready.status, ready.json()), (200, json!({"status": "ready", "starting": []})));
    assert_eq!(server.get("/health").await.json(), json!({"status": "ok"}));
}

#[tokio::test]
async fn a_tool_of_a_server_that_is_still_starting_is_waited_for() {
    let server = workbench(&["--odd", "slow-start"]).await;
    assert_eq!(server.get("/ready").await.status, 503);
    let answer = server.execute("mcp__slow-start__echo", json!({"n": 1})).await;
    assert_eq!((answer.status, &answer.json()["result"]), (200, &json!({"n": 1})));
}

#[tokio::test]
async fn calls_are_counted_by_how_they_ended() {
    let server = workbench(&[]).await;
    for _ in 0..20 {
        server.execute("say", json!({"text": "x"})).await;
    }
    server.execute("refuse", json!({})).await;
    server.execute("crash", json!({})).await;
    let answer = within_timeout("the counters", async {
        loop {
            let answer = server.get("/metrics").await;
            if answer.text.contains(r#"end="failed",error="internal_error"} 1"#) {
                return answer;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for line in [
        r#"toolyard_calls_total{source="workbench",tool="say",end="succeeded",error=""} 20"#,
        r#"toolyard_calls_total{source="workbench",tool="refuse",end="failed",error=""} 1"#,
        r#"toolyard_calls_total{source="probe",tool="crash",end="failed",error="internal_error"} 1"#,
        r#"toolyard_call_duration_seconds_count{source="workbench"} 21"#,
        r#"toolyard_sources{state="ready"} 2"#,
    ] {
        assert!(answer.text.lines().any(|other| other == line), "no {line} in {}", answer.text);
    }
}

#[tokio::test]
async fn the_calls_of_a_crowd_are_all_answered_and_all_counted() {
    let server = workbench(&["--per-source", "4"]).await;
    let caller = async |number: usize| {
        let priority = ["low", "normal", "high"][number % 3];
        for at in 0..10 {
            let name = format!("{number}-{at}");
            let body = json!({"params": {"name": name, "ms": 1}, "context": {"priority": priority}});
            let answer = server.post("/mcp/tools/count/execute", &body).await;
            assert_eq!((answer.status, &answer.json()["result"]), (200, &json!(1)), "{answer:?}");
        }
    };
    futures_util::future::join_all((0..64).map(caller)).await;
    let line = r#"toolyard_calls_total{source="workbench",tool="count",end="succeeded",error=""} 640"#;
    let text = within_timeout("the counters", async {
        loop {
            let text = server.get("/metrics").await.text;
            if text.contains(line) {
                return text;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(!text.contains("toolyard_calls_in_flight{"), "{text}");
}

#[tokio::test]
async fn the_document_names_every_tool_and_holds_together() {
    let server = workbench(&["--odd", "bad-schema", "--odd", "null-schema", "--odd", "unknown-keys"]).await;
    let document = server.get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let tools = server.get("/mcp/tools").await.text.replace("1e400", "1e300");
    let tools: Value = serde_json::from_str(&tools).unwrap();
    for tool in tools["tools"].as_array().unwrap() {
        let path = format!("/mcp/tools/{}/execute", tool["name"].as_str().unwrap());
        assert!(document["paths"][&path]["post"].is_object(), "{path}");
    }
    let mut open = vec![&document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference} does not resolve");
                }
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
}
