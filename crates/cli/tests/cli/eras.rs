//! A server that knows both eras and is not the same in them: through the gateway each client finds what it finds without.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Scratch, Server, Version, within_timeout};
use toolyard_testkit::odd::{Kind, start_in_process};

use super::TOOLYARD;

/// What a client of this version finds at a server.
async fn found(server: &Arc<Server>, version: Version) -> Vec<(&'static str, Value)> {
    let mut client = Client::join(server, version).await;
    let mut found = Vec::new();
    let listed = client.ask("tools/list", "{}").await.answer;
    let names = listed.result()["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone());
    found.push(("tools/list", names.collect()));
    found.push(("echo", essence(client.call("echo", r#"{"a":1}"#).await.answer.result())));
    found.push(("elicit", elicit(&mut client).await));
    for tool in ["legacy_tool", "modern_tool"] {
        let answer = client.call(tool, "{}").await.answer;
        let has = listed.result().to_string().contains(tool);
        let told = if has { essence(answer.result()) } else { json!({"code": answer.code()}) };
        found.push((tool, told));
    }
    if !version.is_modern() {
        found.push(("streams", streams(&mut client).await));
    }
    // Clients of earlier versions do not know that they may come back.
    if version == Version::V2025_11_25 {
        // The server asks for ten minutes; a client that comes back earlier is answered then.
        found.push(("poll", within_timeout("the answer of a polling server", poll(&mut client)).await));
    }
    found
}

/// What of a result is the tool's own.
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

/// Calls a tool whose stream ends before the answer, and comes back for it.
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

/// Three requests at once of a client that wants streams.
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
    let mut told = Vec::new();
    for stream in streams.into_iter().rev() {
        // Directly it is answered as JSON, which is as good.
        let answer = match stream.is_stream() {
            true => stream.events().next_message().await.unwrap().1,
            false => stream.message().await.unwrap(),
        };
        told.push(essence(answer.result()));
    }
    Value::Array(told)
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
    // In turn, so that each era is tested after the other one was used.
    for version in [Version::V2026_07_28, Version::V2025_11_25, Version::V2026_07_28, Version::V2025_06_18] {
        assert_eq!(found(&through, version).await, found(&direct, version).await, "{version}");
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
    // One conversation in each era, whoever comes.
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
