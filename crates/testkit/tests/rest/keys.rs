//! Idempotency keys: calls that are safe to repeat.

use serde_json::{Value, json};
use toolyard_testkit::harness::{Answer, Scratch, Server};

use super::workbench;

const COUNT: &str = "/mcp/tools/count/execute";

async fn count(server: &Server, key: &str, params: Value) -> Answer {
    server.post_with(COUNT, &[("idempotency-key", key)], &json!({"params": params})).await
}

#[tokio::test]
async fn the_same_key_gives_the_first_outcome_and_runs_once() {
    let server = workbench(&[]).await;
    let params = json!({"name": "a"});
    let first = count(&server, "k", params.clone()).await;
    let second = count(&server, "k", params.clone()).await;
    assert_eq!((first.status, &first.text), (200, &second.text));
    assert_eq!(
        (first.header("idempotency-replayed"), second.header("idempotency-replayed")),
        (None, Some("true"))
    );
    // The key in the body means the same.
    let body = json!({"params": params, "context": {"idempotencyKey": "k"}});
    assert_eq!(server.post(COUNT, &body).await.text, first.text);
    assert_eq!(count(&server, "other", json!({"name": "a"})).await.json()["result"], 2);
}

#[tokio::test]
async fn two_that_arrive_at_once_are_one_call() {
    let server = workbench(&[]).await;
    let params = || json!({"name": "a", "ms": 300});
    let all = futures_util::future::join_all((0..8).map(|_| count(&server, "k", params()))).await;
    for answer in &all {
        assert_eq!(answer.text, all[0].text);
    }
    assert_eq!(all[0].json()["result"], 1);
    assert_eq!(all.iter().filter(|answer| answer.header("idempotency-replayed").is_none()).count(), 1);
    assert_eq!(count(&server, "other", params()).await.json()["result"], 2);
}

#[tokio::test]
async fn a_failure_is_an_outcome_too() {
    let server = workbench(&[]).await;
    let params = || json!({"name": "a", "fail": true});
    let first = count(&server, "k", params()).await;
    assert_eq!(first.refusal(), (500, "EXECUTION_ERROR".to_owned()));
    assert_eq!(count(&server, "k", params()).await.text, first.text);
}

#[tokio::test]
async fn a_key_is_of_one_principal_one_tool_and_the_same_params() {
    let server = workbench(&["--token", "ada=a", "--token", "bob=b"]).await;
    let ask = async |secret: &str, params: Value| {
        let token = format!("Bearer {secret}");
        let headers = [("authorization", token.as_str()), ("idempotency-key", "k")];
        server.post_with(COUNT, &headers, &json!({"params": params})).await
    };
    assert_eq!(ask("a", json!({"name": "x"})).await.json()["result"], 1);
    assert_eq!(ask("b", json!({"name": "x"})).await.json()["result"], 2);
    let different = ask("a", json!({"name": "y"})).await;
    assert_eq!(different.refusal(), (409, "VALIDATION_ERROR".to_owned()));
    assert_eq!(different.json()["error"]["details"]["field"], "context.idempotencyKey");
    let headers = [("authorization", "Bearer a"), ("idempotency-key", "k")];
    let other_tool =
        server.post_with("/mcp/tools/say/execute", &headers, &json!({"params": {"text": "x"}})).await;
    assert_eq!(other_tool.json()["result"], "x");
}

#[tokio::test]
async fn a_key_whose_call_was_refused_before_it_ran_is_good_again() {
    let server = workbench(&["--rate", "1"]).await;
    assert_eq!(server.execute("say", json!({"text": "x"})).await.status, 200);
    assert_eq!(count(&server, "k", json!({"name": "a"})).await.status, 429);
    // With other params: nothing is remembered of the first.
    assert_eq!(count(&server, "k", json!({"name": "b"})).await.status, 429);
}

#[tokio::test]
async fn a_lost_connection_does_not_cost_the_outcome() {
    let server = workbench(&[]).await;
    let scratch = Scratch::new();
    let file = scratch.path("call");
    let body = json!({"params": {"ms": 500, "file": file}});
    let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
    {
        let text = body.to_string();
        let asking = server.request("POST", "/mcp/tools/slow/execute", &headers, text.as_bytes());
        let started = async {
            while !file.with_extension("started").exists() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        // Dropping the request closes its connection.
        tokio::select! {
            _ = asking => panic!("answered too early"),
            () = started => {}
        }
    }
    let again = server.post_with("/mcp/tools/slow/execute", &headers[1..], &body).await;
    assert_eq!((again.status, again.json()["result"].clone()), (200, json!("at last")));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
}
