//! Misbehaving servers that keep sessions, and servers that ask their clients.

use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Over, Scratch, Version};

use super::{Plain, client, clients};

#[tokio::test]
async fn a_session_is_forgotten_after_ten_calls_and_a_new_one_works() {
    let mut first = client("forgets-session", Over::Http, Version::V2025_11_25).await;
    for _ in 0..10 {
        first.call("echo", "{}").await.answer.result();
    }
    for _ in 0..2 {
        assert_eq!(first.begin_call("echo", "{}").await.reply().await.refusal().await, (404, -32001));
    }
    let mut second = Client::join(first.server(), Version::V2025_11_25).await;
    let counted = second.call("requests", "{}").await.answer;
    // The two refused calls did not reach the tool handler.
    assert_eq!(counted.result()["structuredContent"]["methods"], json!({"initialize": 2, "tools/call": 11}));
}

#[tokio::test]
async fn sessions_are_counted() {
    let mut first = client("counts-sessions", Over::Http, Version::V2025_11_25).await;
    let second = Client::join(first.server(), Version::V2025_11_25).await;
    let sessions = |answer: Value| (answer["opened"].clone(), answer["open"].clone());
    let counts = first.call("sessions", "{}").await.answer.result()["structuredContent"].clone();
    assert_eq!(sessions(counts), (json!(2), json!(2)));
    assert_eq!(second.send("DELETE", &second.own_headers("*/*"), Vec::new()).await.status, 200);
    let counts = first.call("sessions", "{}").await.answer.result()["structuredContent"].clone();
    assert_eq!(sessions(counts), (json!(2), json!(1)));
    assert_eq!(
        second.post(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#).await.refusal().await,
        (404, -32001)
    );

    let scratch = Scratch::new();
    let file = scratch.path("sessions").display().to_string();
    for _ in 0..3 {
        Plain::counting("counts-sessions", &file).ask("initialize", json!({})).await;
    }
    assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 3);
}

#[tokio::test]
async fn a_legacy_call_asks_in_between() {
    for over in Client::BOTH {
        let mut client = client("asks", over, Version::V2025_11_25).await;
        let mut call = client.begin_call("everything", "{}").await;
        for (method, result) in [
            ("elicitation/create", json!({"action": "accept", "content": {"name": "Ada"}})),
            (
                "sampling/createMessage",
                json!({"role": "assistant", "content": {"type": "text", "text": "word"}, "model": "m"}),
            ),
            ("roots/list", json!({"roots": []})),
        ] {
            let question = call.next().await.unwrap();
            assert_eq!(question.method(), Some(method));
            client.reply(question.id(), result).await;
        }
        let answer = call.finish().await.answer;
        let answers = &answer.result()["structuredContent"];
        assert_eq!(answers["elicit"]["content"]["name"], "Ada", "{over:?}");
        assert_eq!(
            (&answers["sample"]["model"], &answers["roots"]),
            (&json!("m"), &json!({"roots": []})),
            "{over:?}"
        );
    }
}

#[tokio::test]
async fn a_modern_call_says_what_it_needs() {
    for over in Client::BOTH {
        let mut client = client("asks", over, Version::V2026_07_28).await;
        let question = client.call("elicit", "{}").await.answer;
        let question = question.result();
        assert_eq!(question["resultType"], "input_required");
        assert_eq!(question["inputRequests"]["elicit"]["method"], "elicitation/create");
        let responses = json!({"elicit": {"action": "accept", "content": {"name": "Ada"}}});
        let mut again =
            json!({"name": "elicit", "inputResponses": responses, "requestState": question["requestState"]});
        let answer = client.ask("tools/call", &again).await.answer;
        assert_eq!(answer.result()["structuredContent"], responses, "{over:?}");
        again["requestState"] = json!("forged");
        assert_eq!(client.ask("tools/call", &again).await.answer.code(), -32602, "{over:?}");
    }
}

#[tokio::test]
async fn both_eras_meet_every_server() {
    for mut client in clients("asks").await {
        client.ask("tools/list", "{}").await.answer.result();
    }
}
