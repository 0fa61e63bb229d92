//! Stopping a server: calls in flight may finish, and calls that do not finish in time are
//! canceled.

use serde_json::{Value, json};
use toolyard_testkit::harness::{Over, Scratch, Signal, Version};

use super::start::probe_with;

#[tokio::test]
async fn a_call_that_has_said_nothing_yet_is_answered_before_the_end() {
    for version in Version::ALL {
        let scratch = Scratch::new();
        let traces = scratch.traces("call");
        let mut client = probe_with(&["--drain", "60000"], Over::Http, version).await;
        let mut arguments = traces.arguments();
        arguments["ms"] = json!(300);
        let call = client.begin_call("slow", arguments).await;
        traces.wait_started().await;
        client.server().process().await.signal(Signal::Terminate);
        assert_eq!(call.finish().await.answer.content(), "at last", "{version}");
        assert_eq!(client.server().process().await.exit().await, Some(0), "{version}");
    }
}

#[tokio::test]
async fn calls_that_do_not_end_in_time_are_cancelled() {
    for version in Version::ALL {
        let scratch = Scratch::new();
        let (pending, streaming) = (scratch.traces("pending"), scratch.traces("streaming"));
        let mut client = probe_with(&["--drain", "200"], Over::Http, version).await;
        let _pending = client.begin_call("wait_until_cancelled", pending.arguments()).await;
        let _streaming = client.begin_watched_call("wait_until_cancelled", streaming.arguments(), "t").await;
        pending.wait_started().await;
        streaming.wait_started().await;
        client.server().process().await.signal(Signal::Terminate);
        assert_eq!(client.server().process().await.exit().await, Some(0), "{version}");
        assert!(pending.is_cancelled() && streaming.is_cancelled(), "{version}");
    }
}

#[tokio::test]
async fn a_call_that_waits_for_an_answer_does_not_hold_up_the_end() {
    for over in [Over::Stdio, Over::Http] {
        let mut client = probe_with(&["--drain", "60000"], over, Version::V2026_07_28).await;
        let question = client.call("ask", json!({"about": "tea"})).await.answer;
        assert_eq!(question.result()["resultType"], Value::from("input_required"));
        let code = match over {
            Over::Stdio => {
                client.line().close_stdin().await;
                client.line().process().await.exit().await
            }
            Over::Http => {
                client.server().process().await.signal(Signal::Terminate);
                client.server().process().await.exit().await
            }
        };
        assert_eq!(code, Some(0), "{over:?}");
    }
}
