//! Executions as event streams: refusals before the start, every kind of end, and readers that
//! disconnect.

use serde_json::json;
use toolyard_testkit::harness::{Scratch, within_timeout};

use super::workbench;

const WAIT: &str = "/mcp/tools/wait_until_cancelled/execute";

#[tokio::test]
async fn a_call_that_is_refused_before_it_begins_is_no_stream() {
    let server = workbench(&[]).await;
    let headers = [("accept", "text/event-stream")];
    for (path, body, refusal) in [
        ("/mcp/tools/nothing/execute", json!({}), (404, "TOOL_NOT_FOUND")),
        ("/mcp/tools/say/execute", json!({"params": {}}), (400, "VALIDATION_ERROR")),
        ("/mcp/tools/say/execute", json!({"params": 7}), (400, "VALIDATION_ERROR")),
    ] {
        let answer = server.post_with(path, &headers, &body).await;
        assert_eq!(answer.refusal(), (refusal.0, refusal.1.to_owned()));
    }
}

#[tokio::test]
async fn the_end_is_a_result_or_an_error() {
    let server = workbench(&[]).await;
    let all = server
        .listen("/mcp/tools/say/execute?content=full", &json!({"params": {"text": "7"}}))
        .await
        .all()
        .await;
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].name.as_str(), all[0].id.as_str()), ("result", "1"));
    assert_eq!(all[0].data["content"], json!([{"type": "text", "text": "7"}]));
    let body = json!({"params": {"name": "x", "ms": 20, "fail": true}});
    let all = server.listen("/mcp/tools/count/execute", &body).await.all().await;
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].name.as_str(), &all[0].data["error"]["code"]), ("error", &json!("EXECUTION_ERROR")));
}

#[tokio::test]
async fn a_tool_that_never_waits_sends_its_progress_log_and_chunk_events_too() {
    let server = workbench(&[]).await;
    let all = server.listen("/mcp/tools/quick_stream/execute", &json!({})).await.all().await;
    let events: Vec<_> =
        all.iter().map(|event| (event.id.as_str(), event.name.as_str(), &event.data)).collect();
    let (progress, log) = (
        json!({"progress": 50, "total": 100, "message": "half"}),
        json!({"level": "info", "data": "a line"}),
    );
    assert_eq!(
        events[..4],
        [
            ("1", "progress", &progress),
            ("2", "log", &log),
            ("3", "chunk", &json!("one")),
            ("4", "chunk", &json!({"two": 2})),
        ]
    );
    let (last, result) = (events[4], &all[4].data["result"]);
    assert_eq!((events.len(), last.0, last.1, result), (5, "5", "result", &json!("done")));
    // The chunks were sent as events. Only a client that does not read events gets them with the
    // result.
    assert_eq!(all[4].data.get("chunks"), None);
    let whole = server.execute("quick_stream", json!({})).await.json();
    assert_eq!(whole["chunks"], json!(["one", {"two": 2}]));
}

#[tokio::test]
async fn json_of_several_lines_is_one_event() {
    let server = workbench(&[]).await;
    let body = json!({"params": {"text": "{\n  \"a\": 1,\r\n  \"b\": 2\n}"}});
    let all = server.listen("/mcp/tools/say/execute", &body).await.all().await;
    assert_eq!(all[0].data["result"], json!({"a": 1, "b": 2}));
}

#[tokio::test]
async fn a_reader_that_goes_away_cancels() {
    let server = workbench(&[]).await;
    let scratch = Scratch::new();
    let traces = scratch.traces("call");
    let mut telling = server.listen(WAIT, &json!({"params": traces.arguments()})).await;
    assert_eq!(telling.next().await.unwrap().name, "progress");
    let id = telling.head.header("x-execution-id").unwrap().to_owned();
    drop(telling);
    traces.wait_cancelled().await;
    within_timeout("the record", async {
        while server.get(&format!("/mcp/executions/{id}")).await.json()["state"] != "cancelled" {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_caller_that_hangs_up_cancels_also_without_a_stream() {
    let server = workbench(&[]).await;
    let scratch = Scratch::new();
    let traces = scratch.traces("call");
    tokio::select! {
        _ = server.execute("wait_until_cancelled", traces.arguments()) => panic!("answered"),
        () = traces.wait_started() => {}
    }
    traces.wait_cancelled().await;
}

#[tokio::test]
async fn one_that_is_detached_goes_on_and_can_be_asked_for() {
    let server = workbench(&[]).await;
    let body = json!({"params": {"gate": "g", "n": 2}});
    let mut telling = server.listen("/mcp/tools/steps/execute?detach=true", &body).await;
    assert_eq!(telling.next().await.unwrap().data["message"], "step 1");
    let path = format!("/mcp/executions/{}", telling.head.header("x-execution-id").unwrap());
    drop(telling);
    let shown = server.get(&path).await.json();
    assert_eq!((&shown["state"], &shown["progress"]["progress"]), (&json!("running"), &json!(1)));
    assert_eq!(shown.get("response"), None);
    server.execute("open", json!({"gate": "g", "n": 2})).await;
    let done = within_timeout("the end", async {
        loop {
            let shown = server.get(&path).await.json();
            if shown["state"] != "running" {
                return shown;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!((&done["state"], &done["response"]["result"]), (&json!("succeeded"), &json!("arrived")));
}

#[tokio::test]
async fn progress_of_a_server_behind_comes_through() {
    let server = workbench(&["--odd", "progress-then-silence"]).await;
    server.get("/mcp/tools").await;
    let body = json!({"params": {"steps": 3, "every_ms": 5}});
    let all = server.listen("/mcp/tools/steady/execute", &body).await.all().await;
    let names: Vec<&str> = all.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["progress", "progress", "progress", "result"]);
    assert_eq!(all[2].data, json!({"progress": 3, "total": 3, "message": "step 3"}));
    assert_eq!(all[3].data["result"], "done");
}

#[tokio::test]
async fn a_reader_that_never_reads_does_not_stop_the_clock() {
    let server = workbench(&["--call-time", "1000"]).await;
    let telling =
        server.listen("/mcp/tools/flood/execute?detach=true", &json!({"params": {"n": 50_000_000}})).await;
    let path = format!("/mcp/executions/{}", telling.head.header("x-execution-id").unwrap());
    let done = within_timeout("the end", async {
        loop {
            let shown = server.get(&path).await.json();
            if shown["state"] != "running" {
                return shown;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(done["response"]["error"]["code"], "TIMEOUT_ERROR");
    assert!(server.process().await.megabytes() < 200);
    drop(telling);
}
