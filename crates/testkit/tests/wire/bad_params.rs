//! Valid messages with invalid content: the same error codes over both transports.

use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Over, Version};

use super::start::{everywhere, probe};

#[tokio::test]
async fn unknown_methods_are_refused() {
    for (over, version) in everywhere() {
        let mut client = probe(over, version).await;
        for method in ["tools/unknown", "", "tools/LIST", "rpc.discover", "é"] {
            // This character is not allowed in headers, so the version that mirrors methods in
            // headers is skipped.
            if over == Over::Http && version.is_modern() && !method.is_ascii() {
                continue;
            }
            assert_eq!(client.ask(method, "{}").await.answer.code(), -32601, "{over:?} {version} {method}");
        }
    }
}

#[tokio::test]
async fn methods_of_the_other_era_are_refused() {
    for (over, version) in everywhere() {
        let mut client = probe(over, version).await;
        let others: &[&str] = if version.is_modern() {
            &["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "initialize"]
        } else {
            &["subscriptions/listen"]
        };
        for method in others {
            assert_eq!(client.ask(method, "{}").await.answer.code(), -32601, "{over:?} {version} {method}");
        }
    }
}

#[tokio::test]
async fn params_of_the_wrong_type_are_refused() {
    for (over, version) in everywhere() {
        let mut client = probe(over, version).await;
        let mut cases = vec![
            ("tools/call", json!({})),
            ("tools/call", json!({"name": 7})),
            ("tools/call", json!({"name": null, "arguments": {}})),
            ("tools/call", json!({"name": "no such tool"})),
            ("resources/read", json!({})),
            ("resources/read", json!({"uri": ["probe://note"]})),
            ("prompts/get", json!({"name": {}})),
            ("prompts/get", json!({"name": "no such prompt"})),
            ("completion/complete", json!({"ref": {"type": "ref/unknown"}, "argument": {}})),
            ("completion/complete", json!({"ref": "x"})),
        ];
        if version.is_modern() {
            cases.push(("subscriptions/listen", json!({})));
            cases.push(("subscriptions/listen", json!({"notifications": {"toolsListChanged": "yes"}})));
            cases.push(("tools/call", json!({"name": "ask", "inputResponses": 7})));
            cases.push(("tools/call", json!({"name": "ask", "requestState": {}})));
        } else {
            cases.push(("logging/setLevel", json!({})));
            cases.push(("logging/setLevel", json!({"level": "loud"})));
            cases.push(("logging/setLevel", json!({"level": 3})));
            cases.push(("resources/subscribe", json!({"uri": 7})));
        }
        for (method, params) in cases {
            let answer = client.ask(method, &params).await.answer;
            assert_eq!(answer.code(), -32602, "{over:?} {version} {method} {params}");
        }
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_are_refused_as_the_version_wants_it() {
    for (over, version) in everywhere() {
        let mut client = probe(over, version).await;
        for arguments in [json!({"ms": "soon"}), json!({}), json!([1]), json!("text"), json!(7)] {
            let answer = client.call("slow", &arguments).await.answer;
            if version >= Version::V2025_11_25 {
                assert_eq!(answer.result()["isError"], true, "{over:?} {version} {arguments}");
            } else {
                assert_eq!(answer.code(), -32602, "{over:?} {version} {arguments}");
            }
        }
    }
}

#[tokio::test]
async fn metadata_of_the_wrong_type_is_refused() {
    for (over, version) in everywhere().filter(|(_, version)| !version.is_modern()) {
        let mut client = probe(over, version).await;
        for meta in
            [json!(7), json!([]), json!("x"), token(&json!({})), token(&json!(1.5)), token(&json!([]))]
        {
            let answer = client.ask("tools/call", call_with(&meta)).await.answer;
            assert_eq!(answer.code(), -32602, "{over:?} {version} {meta}");
        }
    }
}

#[tokio::test]
async fn modern_metadata_that_is_missing_or_wrong_is_refused() {
    for over in Client::BOTH {
        let mut client = probe(over, Version::V2026_07_28).await;
        let key = |name: &str| format!("io.modelcontextprotocol/{name}");
        let (version, capabilities, level) =
            (key("protocolVersion"), key("clientCapabilities"), key("logLevel"));
        let newest = "2026-07-28";
        for (meta, code) in [
            (json!({&version: newest}), -32602),
            (json!({&version: newest, &capabilities: 7}), -32602),
            (json!({&version: newest, &capabilities: {}, &level: "loud"}), -32602),
            (json!({&version: newest, &capabilities: {}, &level: 7}), -32602),
            (json!({&version: newest, &capabilities: {}, "progressToken": {}}), -32602),
            (json!({&version: "2031-01-01", &capabilities: {}}), -32022),
            (json!({&version: "2025-11-25", &capabilities: {}}), -32022),
        ] {
            // The request as the harness would complete it, sent as is.
            let params = call_with(&meta);
            let text =
                json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params}).to_string();
            let answer = match over {
                Over::Stdio => client.line().exchange(&text).await,
                Over::Http => {
                    let mut headers = client.headers(&text);
                    headers.retain(|(name, _)| name != "mcp-protocol-version");
                    let named = meta[&version].as_str().unwrap().to_owned();
                    headers.push(("mcp-protocol-version".to_owned(), named));
                    // A legacy version in the header would make it a legacy request.
                    if headers.iter().any(|(_, value)| value == "2025-11-25") {
                        continue;
                    }
                    client.send("POST", &headers, text.into_bytes()).await.message().await.unwrap()
                }
            };
            assert_eq!((answer.code(), answer.id()), (code, &json!(77)), "{over:?} {meta}");
            client.ask("tools/list", "{}").await.answer.result();
        }
    }
}

fn call_with(meta: &Value) -> Value {
    json!({"name": "slow", "arguments": {"ms": 1}, "_meta": meta})
}

fn token(token: &Value) -> Value {
    json!({"progressToken": token})
}
