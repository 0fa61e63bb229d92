//! However a client cancels a request or disconnects, the tool is canceled and no answer is sent.

use serde_json::json;
use toolyard_testkit::harness::{Over, Process, Scratch, Version};

use super::start::{FIXTURE, modern_call, probe, probe_with};

#[tokio::test]
async fn a_cancelled_request_ends_its_tool_and_has_no_answer_on_stdio() {
    for version in Version::ALL {
        let scratch = Scratch::new();
        let traces = scratch.traces("call");
        let mut client = probe(Over::Stdio, version).await;
        let call = client.begin_call("wait_until_cancelled", traces.arguments()).await;
        traces.wait_started().await;
        client.cancel(&call.id).await;
        traces.wait_cancelled().await;
        let after = client.ask("tools/list", "{}").await;
        assert!(after.messages.is_empty(), "{version}: {:?}", after.messages);
    }
}

#[tokio::test]
async fn a_cancelled_request_ends_its_tool_and_has_no_answer_on_legacy_http() {
    for version in Version::LEGACY {
        let scratch = Scratch::new();
        let mut client = probe(Over::Http, version).await;

        let pending = scratch.traces("pending");
        let call = client.begin_call("wait_until_cancelled", pending.arguments()).await;
        pending.wait_started().await;
        client.cancel(&call.id).await;
        pending.wait_cancelled().await;
        let reply = call.reply().await;
        assert_eq!((reply.status, reply.text().await.as_str()), (202, ""), "{version}");

        let streaming = scratch.traces("streaming");
        let mut call = client.begin_watched_call("wait_until_cancelled", streaming.arguments(), "t").await;
        assert_eq!(call.next().await.unwrap().method(), Some("notifications/progress"), "{version}");
        client.cancel(&call.id).await;
        streaming.wait_cancelled().await;
        assert!(call.next().await.is_none(), "{version}");
    }
}

#[tokio::test]
async fn a_client_that_dies_ends_its_tool_and_its_server_on_stdio() {
    for version in Version::NEWEST {
        let scratch = Scratch::new();
        let traces = scratch.traces("call");
        let mut client = probe_with(&["--drain", "60000"], Over::Stdio, version).await;
        client.begin_call("wait_until_cancelled", traces.arguments()).await;
        traces.wait_started().await;
        client.line().close_stdio().await;
        traces.wait_cancelled().await;
        assert_eq!(client.line().process().await.exit().await, Some(0), "{version}");
    }
}

#[tokio::test]
async fn a_client_process_that_is_killed_ends_its_tool() {
    let scratch = Scratch::new();
    let traces = scratch.traces("call");
    scratch.file("request", &(modern_call(1, "wait_until_cancelled", &traces.arguments()) + "\n"));
    let directory = scratch.path("").display().to_string();
    // The client is the shell. It holds both pipes and becomes `sleep` with them.
    let script = r#"cd "$1" && mkfifo in out && ("$0" stdio --yard probe --drain 60000 <in >out &)
        exec 3>in 4<out && cat request >&3 && exec sleep 600"#;
    let (mut client, _stdin, _stdout) = Process::start("sh", &["-c", script, FIXTURE, &directory]);
    traces.wait_started().await;
    client.kill().await;
    traces.wait_cancelled().await;
}

#[tokio::test]
async fn a_tool_that_outlasts_the_drain_time_is_cancelled_on_stdio() {
    let scratch = Scratch::new();
    let traces = scratch.traces("call");
    let mut client = probe_with(&["--drain", "200"], Over::Stdio, Version::V2026_07_28).await;
    client.begin_call("wait_until_cancelled", traces.arguments()).await;
    traces.wait_started().await;
    client.line().close_stdin().await;
    traces.wait_cancelled().await;
    assert_eq!(client.line().process().await.exit().await, Some(0));
}

#[tokio::test]
async fn a_client_that_hangs_up_before_anything_was_said_ends_its_tool_on_http() {
    for version in Version::ALL {
        let scratch = Scratch::new();
        let traces = scratch.traces("call");
        let mut client = probe(Over::Http, version).await;
        let call = client.begin_call("wait_until_cancelled", traces.arguments()).await;
        traces.wait_started().await;
        drop(call);
        traces.wait_cancelled().await;
        client.ask("tools/list", "{}").await.answer.result();
    }
}

#[tokio::test]
async fn a_modern_client_that_leaves_its_stream_ends_its_tool() {
    let scratch = Scratch::new();
    let traces = scratch.traces("call");
    let mut client = probe_with(&["--come-back", "600000"], Over::Http, Version::V2026_07_28).await;
    let mut call = client.begin_watched_call("wait_until_cancelled", traces.arguments(), "t").await;
    assert_eq!(call.next().await.unwrap().params()["message"], "waiting");
    drop(call);
    traces.wait_cancelled().await;
}

#[tokio::test]
async fn a_legacy_client_that_leaves_its_stream_may_come_back_for_a_while() {
    for version in Version::LEGACY {
        let scratch = Scratch::new();
        let traces = scratch.traces("call");
        let mut client = probe_with(&["--come-back", "400"], Over::Http, version).await;
        let mut call = client.begin_watched_call("wait_until_cancelled", traces.arguments(), "t").await;
        call.next().await.unwrap();
        let left = tokio::time::Instant::now();
        drop(call);
        traces.wait_cancelled().await;
        assert!(left.elapsed().as_millis() >= 390, "{version}: after {:?}", left.elapsed());
    }
}

#[tokio::test]
async fn a_call_that_waits_for_an_answer_is_cancelled_with_its_client() {
    let mut client = probe(Over::Http, Version::V2025_11_25).await;
    let mut call = client.begin_call("ask", json!({"about": "tea"})).await;
    let question = call.next().await.unwrap();
    assert_eq!(question.method(), Some("elicitation/create"));
    client.cancel(&call.id).await;
    let withdrawn = call.next().await.unwrap();
    assert_eq!(withdrawn.method(), Some("notifications/cancelled"));
    assert_eq!(&withdrawn.params()["requestId"], question.id());
    assert!(call.next().await.is_none());
}
