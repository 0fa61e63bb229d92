//! Calls to misbehaving servers.

use std::time::{Duration, Instant};

use serde_json::json;
use toolyard_testkit::harness::{Client, Over, Version};

use super::{Plain, client, clients};

#[tokio::test]
async fn every_server_echoes_and_counts_what_it_saw() {
    for (name, version) in [("legacy-only", Version::V2025_11_25), ("modern-only", Version::V2026_07_28)] {
        for over in Client::BOTH {
            let mut client = client(name, over, version).await;
            let echo = client.call("echo", r#"{"b":1.0,"a":18446744073709551616}"#).await.answer;
            assert!(echo.text.contains(r#""structuredContent":{"b":1.0,"a":18446744073709551616}"#));
            let counted = client.call("requests", "{}").await.answer;
            let methods = match version.is_modern() {
                true => json!({"tools/call": 2}),
                false => json!({"initialize": 1, "tools/call": 2}),
            };
            assert_eq!(counted.result()["structuredContent"]["methods"], methods, "{name} {over:?}");
            assert_eq!(counted.content(), if version.is_modern() { "2" } else { "3" });
            assert_eq!(client.call("other", "{}").await.answer.code(), -32602);
        }
    }
}

#[tokio::test]
async fn a_server_of_one_era_refuses_the_other() {
    let mut plain = Plain::start("legacy-only");
    assert_eq!(plain.ask("server/discover", json!({})).await["error"]["code"], -32601);
    let mut plain = Plain::start("modern-only");
    assert_eq!(plain.ask("initialize", json!({})).await["error"]["code"], -32601);
    assert_eq!(
        plain.ask("server/discover", json!({})).await["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );
}

#[tokio::test]
async fn content_is_odd() {
    let mut plain = Plain::start("odd-content");
    assert_eq!(plain.call("hologram").await["result"]["content"][1]["type"], "hologram");
    let list = plain.call("list_tools").await["result"].clone();
    assert_eq!((&list["tools"][0]["name"], &list["content"][0]["text"]), (&json!("inner"), &json!("a list")));
}

#[tokio::test]
async fn the_second_of_two_calls_is_answered_first() {
    let mut plain = Plain::start("out-of-order");
    let first = plain.send("tools/call", &json!({"name": "echo"})).await;
    let second = plain.send("tools/call", &json!({"name": "echo"})).await;
    plain.answer(second).await;
    plain.answer(first).await;
}

#[tokio::test]
async fn progress_comes_and_then_nothing() {
    for mut client in clients("progress-then-silence").await {
        let steady =
            client.begin_watched_call("steady", json!({"steps": 4, "every_ms": 5}), "t").await.finish().await;
        let steps: Vec<_> = steady
            .notifications("notifications/progress")
            .iter()
            .map(|params| params["progress"].clone())
            .collect();
        assert_eq!((steps, steady.answer.content()), (vec![json!(1), json!(2), json!(3), json!(4)], "done"));
        let mut silence = client.begin_watched_call("silence", json!({"steps": 2, "every_ms": 5}), "t").await;
        for step in [1, 2] {
            assert_eq!(silence.next().await.unwrap().params()["progress"], step);
        }
        assert!(tokio::time::timeout(Duration::from_millis(200), silence.next()).await.is_err());
    }
}

#[tokio::test]
async fn calls_are_never_answered_but_everything_else_is() {
    let mut plain = Plain::start("never-answers");
    plain.send("tools/call", &json!({"name": "never"})).await;
    assert!(plain.silent().await);
    assert_eq!(plain.odd_tool().await["name"], "never");
    let mut mute = Plain::start("mute");
    mute.send("initialize", &json!({})).await;
    assert!(mute.silent().await);
}

#[tokio::test]
async fn a_huge_result_has_fifty_megabytes() {
    let mut plain = Plain::start("huge");
    plain.send("tools/call", &json!({"name": "huge"})).await;
    assert!(plain.line().await.unwrap().len() > 50_000_000);
    let mut client = client("huge", Over::Http, Version::V2026_07_28).await;
    assert_eq!(client.call("huge", r#"{"megabytes":1}"#).await.answer.content().len(), 1_000_000);
}

#[tokio::test]
async fn there_is_noise_between_the_messages() {
    let mut plain = Plain::start("noisy");
    let id = plain.send("tools/call", &json!({"name": "echo"})).await;
    let (_, before) = plain.answer(id).await;
    assert_eq!(before.len(), 7, "{before:?}");
    let mut client = client("noisy", Over::Http, Version::V2026_07_28).await;
    let request = client.text("tools/list", &"{}");
    let text = client.post(&request).await.text().await;
    assert!(text.contains("data: not a message\n") && text.contains(r#""tools":["#), "{text}");
}

#[tokio::test]
async fn notifications_come_without_end() {
    let mut plain = Plain::start("floods");
    plain.odd_tool().await;
    let began = Instant::now();
    for _ in 0..10_000 {
        assert!(plain.line().await.unwrap().contains(r#""method":"notifications/"#));
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    plain.call("echo").await;

    let mut modern = client("floods", Over::Http, Version::V2026_07_28).await;
    let mut listening =
        modern.begin("subscriptions/listen", r#"{"notifications":{"toolsListChanged":true}}"#).await;
    assert_eq!(listening.next().await.unwrap().method(), Some("notifications/subscriptions/acknowledged"));
    for _ in 0..100 {
        assert_eq!(listening.next().await.unwrap().method(), Some("notifications/tools/list_changed"));
    }
    let legacy = client("floods", Over::Http, Version::V2025_11_25).await;
    let mut standing = legacy.listen(None).await.events();
    for _ in 0..100 {
        assert!(standing.next_message().await.is_some());
    }
}
