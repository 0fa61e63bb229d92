//! Progress: in order, before the answer, and only for clients that requested it.

use serde_json::{Value, json};

use super::start::{everywhere, probe};

#[tokio::test]
async fn progress_comes_in_order_and_before_the_answer() {
    for (over, version) in everywhere() {
        let mut client = probe(over, version).await;
        client.call("open", json!({"gate": "g", "n": 3})).await.answer.result();
        let call = client.begin_watched_call("steps", json!({"gate": "g", "n": 3}), "tok").await;
        let exchange = call.finish().await;
        let step = |at: u32| {
            let mut params = json!({"progressToken": "tok", "progress": at, "total": 3});
            params["message"] = format!("step {at}").into();
            params
        };
        let expected = [step(1), step(2), step(3)];
        let progress = exchange.notifications("notifications/progress");
        assert_eq!(progress, expected.iter().collect::<Vec<_>>(), "{over:?} {version}");
        assert_eq!(
            (exchange.messages.len(), exchange.answer.content()),
            (3, "arrived"),
            "{over:?} {version}"
        );
        let after = client.ask("tools/list", "{}").await;
        assert!(after.messages.is_empty(), "{over:?} {version}: {:?}", after.messages);
    }
}

#[tokio::test]
async fn progress_is_not_sent_without_a_token() {
    for (over, version) in everywhere() {
        let mut client = probe(over, version).await;
        client.call("open", json!({"gate": "g", "n": 3})).await.answer.result();
        let exchange = client.call("steps", json!({"gate": "g", "n": 3})).await;
        assert!(exchange.messages.is_empty(), "{over:?} {version}: {:?}", exchange.messages);
        assert_eq!(exchange.answer.content(), "arrived");
    }
}

#[tokio::test]
async fn a_flood_of_progress_stays_in_order() {
    for (over, version) in everywhere() {
        let mut client = probe(over, version).await;
        let exchange = client.begin_watched_call("flood", json!({"n": 2000}), "tok").await.finish().await;
        let values: Vec<i64> = exchange
            .notifications("notifications/progress")
            .into_iter()
            .map(|params| params["progress"].as_i64().unwrap())
            .collect();
        assert!(values.is_sorted_by(|a, b| a < b), "{over:?} {version}: {values:?}");
        assert!(!values.is_empty() && exchange.answer.content() == "dry again");
    }
}

#[tokio::test]
async fn log_lines_come_at_the_level_that_was_asked_for() {
    for (over, version) in everywhere() {
        let mut client = probe(over, version).await;
        let (quiet, loud) = if version.is_modern() {
            let key = "io.modelcontextprotocol/logLevel";
            let call = |level: &str| json!({"name": "flood", "arguments": {"n": 2}, "_meta": {key: level}});
            let quiet = client.ask("tools/call", call("warning")).await;
            (quiet, client.ask("tools/call", call("info")).await)
        } else {
            client.ask("logging/setLevel", json!({"level": "warning"})).await.answer.result();
            let quiet = client.call("flood", json!({"n": 2})).await;
            client.ask("logging/setLevel", json!({"level": "debug"})).await.answer.result();
            (quiet, client.call("flood", json!({"n": 2})).await)
        };
        assert!(quiet.messages.is_empty(), "{over:?} {version}: {:?}", quiet.messages);
        let lines: Vec<Value> = loud.notifications("notifications/message").into_iter().cloned().collect();
        let line = |text: &str| json!({"level": "info", "data": text});
        assert_eq!(lines, [line("line 1"), line("line 2")], "{over:?} {version}");
    }
}

#[tokio::test]
async fn a_tool_that_panics_fails_alone() {
    for (over, version) in everywhere() {
        let mut client = probe(over, version).await;
        assert_eq!(client.call("crash", "{}").await.answer.code(), -32603, "{over:?} {version}");
        assert_eq!(client.call("slow", json!({"ms": 1})).await.answer.content(), "at last");
    }
}
