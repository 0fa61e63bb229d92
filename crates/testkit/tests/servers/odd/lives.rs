//! How misbehaving servers start and end.

use std::time::{Duration, Instant};

use serde_json::json;
use toolyard_testkit::harness::{Over, Scratch, Version};

use super::{ODD, Plain, client};

#[tokio::test]
async fn a_call_ends_the_process() {
    let mut plain = Plain::start("exits-mid-call");
    plain.send("tools/call", &json!({"name": "exit"})).await;
    assert_eq!(plain.line().await, None);
    assert_eq!(plain.process.exit().await, Some(4));
    assert_eq!(plain.process.stderr(), "odd: leaving in the middle of a call\n");

    let mut client = client("exits-mid-call", Over::Http, Version::V2026_07_28).await;
    let _call = client.begin_call("exit", "{}").await;
    assert_eq!(client.server().process().await.exit().await, Some(4));
}

#[tokio::test]
async fn every_start_offers_another_tool() {
    let scratch = Scratch::new();
    let file = scratch.path("starts").display().to_string();
    for name in ["tool_1", "tool_2", "tool_3"] {
        let mut plain = Plain::counting("changes", &file);
        let list = plain.ask("tools/list", json!({})).await;
        assert_eq!(list["result"]["tools"][2]["name"], name);
        assert_eq!(plain.call(name).await["result"]["content"][0]["text"], name);
        plain.send("tools/call", &json!({"name": "exit"})).await;
        assert_eq!(plain.process.exit().await, Some(4));
    }
}

#[tokio::test]
async fn a_slow_start_takes_as_long_as_it_is_told() {
    let began = Instant::now();
    let mut plain = Plain::run(ODD, &["slow-start", "stdio", "2"]);
    plain.ask("server/discover", json!({})).await;
    assert!(began.elapsed() >= Duration::from_millis(1_950), "{:?}", began.elapsed());
    let began = Instant::now();
    plain.call("echo").await;
    assert!(began.elapsed() < Duration::from_millis(1_900), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_server_dies_at_its_start_and_says_why() {
    let mut plain = Plain::start("dies-at-start");
    assert_eq!(plain.process.exit().await, Some(3));
    assert_eq!(plain.process.stderr(), "odd: starting\nodd: cannot open the database: no such file\n");
}

#[tokio::test]
async fn a_server_ends_with_its_input() {
    let Plain { mut process, stdin, .. } = Plain::start("legacy-only");
    drop(stdin);
    assert_eq!(process.exit().await, Some(0));
}

#[tokio::test]
async fn a_name_that_is_none_is_refused_with_the_names_that_are() {
    let mut plain = Plain::start("even");
    assert_eq!(plain.process.exit().await, Some(2));
    assert!(plain.process.stderr().contains("legacy-only, modern-only, asks"), "{}", plain.process.stderr());
}
