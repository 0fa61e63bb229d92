//! A server that behaves differently in each era: through the gateway, every client sees the same
//! as without it.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Scratch, Server, Version, within_timeout};
use toolyard_testkit::odd::{Kind, start_in_process};

use super::TOOLYARD;

/// Collects what a client of this version sees of a server.
async fn observe(server: &Arc<Server>, version: Version) -> Vec<(&'static str, Value)> {
    let mut client = Client::join(server, version).await;
    let mut observations = Vec::new();
    let listed = client.ask("tools/list", "{}").await.answer;
    let names = listed.result()["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone());
    observations.push(("tools/list", names.collect()));
    observations.push(("echo", essence(client.call("echo", r#"{"a":1}"#).await.answer.result())));
    observations.push(("elicit", elicit(&mut client).await));
    for tool in ["legacy_tool", "modern_tool"] {
        let answer = client.call(tool, "{}").await.answer;
        let has = listed.result().to_string().contains(tool);
        let result = if has { essence(answer.result()) } else { json!({"code": answer.code()}) };
        observations.push((tool, result));
    }
    if !version.is_modern() {
        observations.push(("streams", streams(&mut client).await));
    }
    // Clients of earlier versions do not know that they may reconnect.
    if version == Version::V2025_11_25 {
        // The server requests ten minutes. A client that reconnects earlier gets the answer then.
        observations
            .push(("poll", within_timeout("the answer of a polling server", poll(&mut client)).await));
    }
    observations
}

/// Returns the part of a result that comes from the tool.
fn essence(result: &Value) -> Value {
    json!({"content": result["content"], "isError": result["isError"], "structured": result["structuredContent"]})
}

async fn elicit(client: &mut Client) -> Value {
    let mut call = client.begin_call("elicit", "{}").await;
    loop {
        let message = call.next().await.unwrap();
        if message.is_answer() {
            return essence(message.result());
        }
        assert_eq!(message.method(), Some("elicitation/create"));
        client.reply(message.id(), json!({"action": "accept", "content": {"name": "Ada"}})).await;
    }
}

/// Calls a tool whose stream ends before the answer, and reconnects for it.
async fn poll(client: &mut Client) -> Value {
    let text = client.text("tools/call", &json!({"name": "poll", "arguments": {}}));
    let reply = client.post(&text).await;
    assert!(reply.is_stream());
    let mut events = reply.events();
    let mut last = None;
    while let Some(event) = events.next().await {
        assert!(event.message.is_none(), "the answer waits for the client that reconnects: {event:?}");
        last = event.id.or(last);
    }
    let mut events = client.listen(last.as_deref()).await.events();
    let (_, answer) = events.next_message().await.unwrap();
    essence(answer.result())
}

/// Sends three concurrent requests of a client that prefers streams.
async fn streams(client: &mut Client) -> Value {
    let mut streams = Vec::new();
    for _ in 0..3 {
        let text = client.text("tools/call", &json!({"name": "legacy_tool", "arguments": {}}));
        let mut headers = client.headers(&text);
        for (name, value) in &mut headers {
            if name == "accept" {
                "text/event-stream, application/json".clone_into(value);
            }
        }
        streams.push(client.send("POST", &headers, text.into_bytes()).await);
    }
    let mut answers = Vec::new();
    for stream in streams.into_iter().rev() {
        // The server itself answers as JSON, which is equivalent.
        let answer = match stream.is_stream() {
            true => stream.events().next_message().await.unwrap().1,
            false => stream.message().await.unwrap(),
        };
        answers.push(essence(answer.result()));
    }
    Value::Array(answers)
}

async fn gateway(scratch: &Scratch, url: &str, more: &str) -> Arc<Server> {
    let config = format!("[servers.dual]\nurl = \"{url}\"\n{more}");
    Server::configured(TOOLYARD, scratch, &config).await.with_path("/servers/dual/mcp")
}

#[tokio::test]
async fn a_server_of_both_eras_is_spoken_to_in_the_era_of_the_client() {
    let (dual, scratch) = (start_in_process(Kind::Dual).await.unwrap(), Scratch::new());
    let direct = Server::running_at(&dual.url);
    let through = gateway(&scratch, &dual.url, "").await;
    // Alternating, so that each era is tested after the other one was used.
    for version in [Version::V2026_07_28, Version::V2025_11_25, Version::V2026_07_28, Version::V2025_06_18] {
        assert_eq!(observe(&through, version).await, observe(&direct, version).await, "{version}");
    }
}

#[tokio::test]
async fn lists_are_read_in_the_legacy_era_once_a_client_of_it_comes() {
    let (dual, scratch) = (start_in_process(Kind::Dual).await.unwrap(), Scratch::new());
    let through = gateway(&scratch, &dual.url, "").await;
    let direct = Server::running_at(&dual.url);
    let mut counting = Client::join(&direct, Version::V2026_07_28).await;
    let mut modern = Client::join(&through, Version::V2026_07_28).await;
    assert!(modern.ask("tools/list", "{}").await.answer.result().to_string().contains("modern_tool"));
    let methods = async |client: &mut Client| {
        client.call("requests", "{}").await.answer.result()["structuredContent"]["methods"].clone()
    };
    assert_eq!(methods(&mut counting).await["initialize"], Value::Null);
    for _ in 0..3 {
        let mut legacy = Client::join(&through, Version::V2025_11_25).await;
        assert!(legacy.ask("tools/list", "{}").await.answer.result().to_string().contains("legacy_tool"));
    }
    // One connection per era, regardless of the number of clients.
    let seen = methods(&mut counting).await;
    assert_eq!((&seen["initialize"], &seen["tools/list"]), (&json!(1), &json!(2)));
}

#[tokio::test]
async fn a_server_of_one_era_is_spoken_to_in_that_one_by_clients_of_both() {
    for (kind, more) in [(Kind::ModernOnly, ""), (Kind::LegacyOnly, ""), (Kind::Dual, "era = \"modern\"\n")] {
        let (server, scratch) = (start_in_process(kind).await.unwrap(), Scratch::new());
        let through = gateway(&scratch, &server.url, more).await;
        for version in Version::NEWEST {
            let mut client = Client::join(&through, version).await;
            assert_eq!(client.call("echo", r#"{"a":1}"#).await.answer.content(), r#"{"a":1}"#, "{kind}");
            let listed = client.ask("tools/list", "{}").await.answer;
            let has_modern = listed.result().to_string().contains("modern_tool");
            assert_eq!(has_modern, kind == Kind::Dual, "{kind} {version}");
        }
    }
}
