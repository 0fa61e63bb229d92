//! Batches: one protocol version supports them, the others refuse them.

use serde_json::{Value, json};
use toolyard_testkit::harness::{Message, Over, Version};

use super::start::{everywhere, probe};

/// Two requests, a notification, a response to nothing and two items that are not messages.
const MIXED: &str = concat!(
    r#"[{"jsonrpc":"2.0","id":71,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},17,"#,
    r#"{"jsonrpc":"2.0","id":72,"method":"tools/call","params":{"name":"slow","arguments":{"ms":1}}},"#,
    r#"{"jsonrpc":"2.0","id":99,"result":{}},{"jsonrpc":"2.0","id":73,"method":8}]"#,
);

#[tokio::test]
async fn a_batch_is_answered_as_a_batch_where_there_are_batches() {
    let version = Version::V2025_03_26;
    let stdio = probe(Over::Stdio, version).await;
    let answers = stdio.line().exchange(MIXED).await;
    assert_eq!(sorted(answers.value.as_array().unwrap()), expected());

    let http = probe(Over::Http, version).await;
    let mut headers = http.headers(MIXED);
    headers.retain(|(name, _)| name != "accept");
    headers.push(("accept".to_owned(), "application/json".to_owned()));
    let answers = http.send("POST", &headers, MIXED.as_bytes().to_vec()).await.message().await.unwrap();
    assert_eq!(sorted(answers.value.as_array().unwrap()), expected());

    let mut events = http.post(MIXED).await.events();
    let mut answers = Vec::new();
    while let Some((_, Message { value, .. })) = events.next_message().await {
        answers.push(value);
    }
    assert_eq!(sorted(&answers), expected());
}

#[tokio::test]
async fn an_id_that_is_twice_in_a_batch_is_answered_twice() {
    let arguments = r#"{"name":"slow","arguments":{"ms":20}}"#;
    let slow = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{arguments}}}"#);
    let twice = format!("[{slow},{slow}]");
    let expected = [json!([7, null, "at last"]), json!([7, -32600, null])];
    let stdio = probe(Over::Stdio, Version::V2025_03_26).await;
    let answers = stdio.line().exchange(&twice).await;
    assert_eq!(sorted(answers.value.as_array().unwrap()), expected);
    let http = probe(Over::Http, Version::V2025_03_26).await;
    let mut events = http.post(&twice).await.events();
    let (first, second) = (events.next_message().await.unwrap().1, events.next_message().await.unwrap().1);
    assert_eq!(sorted(&[second.value, first.value]), expected);
}

#[tokio::test]
async fn a_batch_without_requests_has_no_answer() {
    let silent = r#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":99,"result":{}}]"#;
    let mut stdio = probe(Over::Stdio, Version::V2025_03_26).await;
    stdio.line().send(silent).await;
    assert!(stdio.ask("prompts/list", "{}").await.messages.is_empty());
    let http = probe(Over::Http, Version::V2025_03_26).await;
    let reply = http.post(silent).await;
    assert_eq!((reply.status, reply.text().await.as_str()), (202, ""));
}

#[tokio::test]
async fn batches_are_refused_where_there_are_none() {
    let large = format!("[{}]", vec![r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#; 101].join(","));
    for (over, version) in everywhere() {
        let mut client = probe(over, version).await;
        let batches: &[&str] = if version == Version::V2025_03_26 { &[&large] } else { &[MIXED, &large] };
        for batch in batches {
            let code = match over {
                Over::Stdio => client.line().exchange(batch).await.code(),
                Over::Http => {
                    let (status, code) = client.post(batch).await.refusal().await;
                    assert_eq!(status, 400, "{version}");
                    code
                }
            };
            assert_eq!(code, -32600, "{over:?} {version}");
            client.ask("prompts/list", "{}").await.answer.result();
        }
    }
}

fn expected() -> Vec<Value> {
    vec![
        json!([null, -32600, null]),
        json!([71, null, {}]),
        json!([72, null, "at last"]),
        json!([73, -32600, null]),
    ]
}

/// Returns the id, the error code, and the text or result of each answer, in a fixed order.
fn sorted(answers: &[Value]) -> Vec<Value> {
    let brief = |answer: &Value| {
        let result = answer.pointer("/result/content/0/text").unwrap_or(&answer["result"]);
        json!([answer["id"], answer["error"]["code"], result])
    };
    let mut answers: Vec<Value> = answers.iter().map(brief).collect();
    answers.sort_by_key(|answer| answer[0].as_i64());
    answers
}
