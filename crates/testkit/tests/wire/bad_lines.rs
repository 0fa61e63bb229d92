//! Bad input on stdio: each line gets the protocol's own error, and the connection keeps working.

use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Over, Version};

use super::start::{line, probe, probe_with};

/// Lines that are not messages, the code of each refusal, and the id that could be read.
pub(super) fn no_messages() -> Vec<(&'static str, i64, Value)> {
    let none = Value::Null;
    vec![
        ("%%%", -32700, none.clone()),
        ("nul", -32700, none.clone()),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping""#, -32700, none.clone()),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping"}}"#, -32700, none.clone()),
        (r#"{"jsonrpc":"2.0","id":7 "method":"ping"}"#, -32700, none.clone()),
        ("17", -32600, none.clone()),
        ("\"text\"", -32600, none.clone()),
        ("null", -32600, none.clone()),
        ("{}", -32600, none.clone()),
        ("[]", -32600, none.clone()),
        (r#"{"id":7,"method":"ping"}"#, -32600, json!(7)),
        (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, -32600, json!(7)),
        (r#"{"jsonrpc":2.0,"id":7,"method":"ping"}"#, -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, none.clone()),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, none.clone()),
        (r#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#, -32600, none.clone()),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, -32600, none.clone()),
        (r#"{"jsonrpc":"2.0","id":7,"method":8}"#, -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","id":"seven","method":null}"#, -32600, json!("seven")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}"#, -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":"x"}"#, -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#, -32600, none.clone()),
        (r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{}}"#, -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","result":{}}"#, -32600, none),
    ]
}

#[tokio::test]
async fn what_is_no_message_is_refused_with_the_codes_of_the_protocol() {
    for version in Version::ALL {
        let mut client = probe(Over::Stdio, version).await;
        for (text, code, id) in no_messages() {
            let refused = client.line().exchange(text).await;
            assert_eq!((refused.code(), refused.id()), (code, &id), "{version} {text}");
            works(&mut client).await;
        }
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_are_refused() {
    for version in Version::NEWEST {
        let mut client = probe(Over::Stdio, version).await;
        client.line().send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\xfe\"}\n").await;
        assert_eq!(client.line().next().await.code(), -32700, "{version}");
        client.line().send_bytes(&[0, 1, 2, 0x80, 0xff, b'\n']).await;
        assert_eq!(client.line().next().await.code(), -32700, "{version}");
        client.line().send_bytes(b"\n  \r\n\n").await;
        works(&mut client).await;
    }
}

#[tokio::test]
async fn deep_nesting_is_refused() {
    for version in Version::NEWEST {
        let mut client = probe(Over::Stdio, version).await;
        for depth in [200, 100_000] {
            let refused = client.line().exchange(&deep(depth)).await;
            assert_eq!(refused.code(), -32600, "{version} {depth}");
            works(&mut client).await;
        }
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused_and_the_next_one_is_read() {
    for version in Version::NEWEST {
        let mut client = probe_with(&["--limit", "10000"], Over::Stdio, version).await;
        for length in [10_001, 300_000] {
            let text = client.text("tools/list", &json!({"x": "y".repeat(length)}));
            let refused = client.line().exchange(&text).await;
            assert_eq!((refused.code(), refused.id()), (-32600, &Value::Null), "{version} {length}");
            works(&mut client).await;
        }
    }
}

#[tokio::test]
async fn nothing_but_a_handshake_is_answered_before_it() {
    for version in Version::LEGACY {
        let line = line(version);
        let refused = line.exchange(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
        assert_eq!((refused.code(), refused.id()), (-32602, &json!(1)), "{version}");
        let wrong = r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":7}}"#;
        assert_eq!(line.exchange(wrong).await.code(), -32602, "{version}");
        line.exchange(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#).await.result();
        let mut client = Client::over_stdio(line, version).await;
        works(&mut client).await;
    }
}

#[tokio::test]
async fn a_second_handshake_is_refused() {
    for version in Version::LEGACY {
        let mut client = probe(Over::Stdio, version).await;
        let again = client.ask("initialize", json!({"protocolVersion": version.as_str()})).await.answer;
        assert_eq!(again.code(), -32600, "{version}");
        works(&mut client).await;
    }
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused_and_the_first_request_goes_on() {
    for version in Version::ALL {
        let mut client = probe(Over::Stdio, version).await;
        let params = json!({"name": "steps", "arguments": {"gate": "g", "n": 1}});
        let text = client.text("tools/call", &params);
        let id = serde_json::from_str::<Value>(&text).unwrap()["id"].clone();
        client.line().send(&text).await;
        let refused = client.line().exchange(&text).await;
        assert_eq!((refused.code(), refused.id()), (-32600, &id), "{version}");
        let opened = client.call("open", json!({"gate": "g", "n": 1})).await;
        let first = match opened.messages.into_iter().next() {
            Some(first) => first,
            None => client.line().next().await,
        };
        assert_eq!((first.content(), first.id()), ("arrived", &id), "{version}");
    }
}

#[tokio::test]
async fn what_answers_nothing_is_passed_over() {
    for version in Version::ALL {
        let mut client = probe(Over::Stdio, version).await;
        for text in [
            r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
            r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
        ] {
            client.line().send(text).await;
            works(&mut client).await;
        }
    }
}

pub(super) fn deep(depth: usize) -> String {
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{"a":{open}{close}}}}}"#)
}

async fn works(client: &mut Client) {
    let after = client.ask("prompts/list", "{}").await;
    assert_eq!(after.answer.result()["prompts"][0]["name"], "greet");
    assert!(after.messages.is_empty(), "{:?}", after.messages);
}
