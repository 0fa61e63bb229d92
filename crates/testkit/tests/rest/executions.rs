//! Recent executions: who owns them, and who may see and stop them.

use serde_json::{Value, json};
use toolyard_testkit::harness::{Answer, Scratch, Server, Signal};

use super::workbench;

const TOKENS: [&str; 8] =
    ["--token", "ada=a=", "--token", "bob=b=", "--token", "eve=e=observe", "--token", "max=m=observe,manage"];

async fn ask(server: &Server, method: &str, path: &str, secret: &str, body: &Value) -> Answer {
    let token = format!("Bearer {secret}");
    let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
    server.request(method, path, &headers, body.to_string().as_bytes()).await.read_body().await
}

async fn get(server: &Server, path: &str, secret: &str) -> Answer {
    ask(server, "GET", path, secret, &json!(null)).await
}

#[tokio::test]
async fn what_is_over_can_be_asked_for() {
    let server = workbench(&[]).await;
    let answer = server.execute("blocks", json!({})).await;
    let path = format!("/mcp/executions/{}", answer.header("x-execution-id").unwrap());
    let shown = server.get(&path).await.json();
    let body = answer.json();
    assert_eq!(
        shown,
        json!({
            "executionId": body["metadata"]["executionId"],
            "tool": "blocks",
            "server": "workbench",
            "state": "succeeded",
            "timestamp": body["metadata"]["timestamp"],
            "duration": body["metadata"]["duration"],
            "principal": "owner",
            "response": body,
        })
    );
    let full = server.get(&format!("{path}?content=full")).await.json();
    assert_eq!(full["response"]["content"].as_array().unwrap().len(), 5);
    // A finished execution cannot be canceled. Requesting it is harmless.
    let late = server.request("DELETE", &path, &[], b"").await.read_body().await;
    assert_eq!((late.status, &late.json()["state"]), (200, &json!("succeeded")));
}

#[tokio::test]
async fn the_latest_come_first_and_can_be_narrowed() {
    let server = workbench(&[]).await;
    server.execute("say", json!({"text": "x"})).await;
    server.execute("refuse", json!({})).await;
    server.execute("nothing", json!({})).await;
    let list = async |query: &str| {
        let body = server.get(&format!("/mcp/executions?{query}")).await.json();
        let all = body["executions"].as_array().unwrap().clone();
        all.iter().map(|one| format!("{} {}", one["tool"], one["state"]).replace('"', "")).collect::<Vec<_>>()
    };
    assert_eq!(list("").await, ["nothing failed", "refuse failed", "say succeeded"]);
    assert_eq!(list("limit=1").await, ["nothing failed"]);
    assert_eq!(list("state=succeeded").await, ["say succeeded"]);
    assert_eq!(list("tool=refuse").await, ["refuse failed"]);
    assert_eq!(server.get("/mcp/executions?state=odd").await.refusal().0, 400);
}

#[tokio::test]
async fn others_executions_are_for_who_may_observe_and_stopping_them_for_who_may_manage() {
    let server = workbench(&TOKENS).await;
    let scratch = Scratch::new();
    let traces = scratch.traces("call");
    let body = json!({"params": traces.arguments()});
    let waiting = ask(&server, "POST", "/mcp/tools/wait_until_cancelled/execute", "a", &body);
    let stopping = async {
        traces.wait_started().await;
        let own = get(&server, "/mcp/executions", "a").await.json();
        let id = own["executions"][0]["executionId"].as_str().unwrap().to_owned();
        assert_eq!(own["executions"][0].get("principal"), None);
        let path = format!("/mcp/executions/{id}");
        let stop = async |secret: &str| ask(&server, "DELETE", &path, secret, &json!(null)).await;
        // Bob does not learn that the execution exists.
        assert_eq!(get(&server, "/mcp/executions", "b").await.json(), json!({"executions": []}));
        assert_eq!(get(&server, &path, "b").await.refusal(), (404, "NOT_FOUND".to_owned()));
        assert_eq!(stop("b").await.refusal(), (404, "NOT_FOUND".to_owned()));
        // Eve sees it and who started it, but may not stop it.
        assert_eq!(get(&server, &path, "e").await.json()["principal"], "ada");
        assert_eq!(stop("e").await.refusal(), (403, "PERMISSION_ERROR".to_owned()));
        assert!(!traces.is_cancelled());
        assert_eq!(stop("m").await.status, 202);
    };
    let (answer, ()) = tokio::join!(waiting, stopping);
    assert_eq!(answer.refusal(), (499, "CANCELLED".to_owned()));
}

#[tokio::test]
async fn counters_are_for_who_may_observe() {
    let server = workbench(&TOKENS).await;
    assert_eq!(get(&server, "/metrics", "a").await.refusal(), (403, "PERMISSION_ERROR".to_owned()));
    assert_eq!(get(&server, "/metrics", "e").await.status, 200);
}

#[tokio::test]
async fn one_that_is_detached_is_waited_for_when_the_process_is_told_to_stop() {
    let server = workbench(&["--drain", "10000"]).await;
    let scratch = Scratch::new();
    let file = scratch.path("call");
    let mut telling = server
        .listen("/mcp/tools/slow/execute?detach=true", &json!({"params": {"ms": 700, "file": file}}))
        .await;
    while !file.with_extension("started").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let mut process = server.process().await;
    process.signal(Signal::Terminate);
    assert_eq!(telling.next().await.unwrap().data["result"], "at last");
    drop(telling);
    assert_eq!(process.exit().await, Some(0));
}

#[tokio::test]
async fn one_that_takes_too_long_is_cancelled_when_the_process_stops() {
    let server = workbench(&["--drain", "100"]).await;
    let scratch = Scratch::new();
    let traces = scratch.traces("call");
    let path = "/mcp/tools/wait_until_cancelled/execute?detach=true";
    let telling = server.listen(path, &json!({"params": traces.arguments()})).await;
    traces.wait_started().await;
    drop(telling);
    let mut process = server.process().await;
    process.signal(Signal::Terminate);
    assert_eq!(process.exit().await, Some(0));
    assert!(traces.is_cancelled());
}
