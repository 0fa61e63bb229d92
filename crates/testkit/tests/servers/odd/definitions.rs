//! What misbehaving servers offer.

use serde_json::{Value, json};
use toolyard_testkit::probe::{ODD_DEFINITION, ODD_RESULT};

use super::{Plain, clients};

#[tokio::test]
async fn pages_have_one_item_each() {
    let lists =
        [("tools", "tools/list", 5), ("resources", "resources/list", 3), ("prompts", "prompts/list", 3)];
    let lists = lists.into_iter().chain([("resourceTemplates", "resources/templates/list", 2)]);
    for (key, method, size) in lists {
        for mut client in clients("pages").await {
            let (mut params, mut pages) = (json!({}), 0);
            loop {
                let page = client.ask(method, &params).await.answer;
                assert_eq!(page.result()[key].as_array().unwrap().len(), 1);
                pages += 1;
                let Some(next) = page.result().get("nextCursor") else { break };
                params = json!({"cursor": next});
            }
            assert_eq!(pages, size, "{method} {:?} {}", client.over, client.version);
            assert_eq!(client.ask(method, r#"{"cursor":"99"}"#).await.answer.code(), -32602);
        }
    }
}

#[tokio::test]
async fn unknown_keys_are_everywhere() {
    let mut plain = Plain::start("unknown-keys");
    for (method, params) in [
        ("server/discover", json!({})),
        ("initialize", json!({"protocolVersion": "2025-11-25"})),
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "odd://1"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "prompt_1"})),
    ] {
        let id = plain.send(method, &params).await;
        let (line, _) = plain.answer(id).await;
        assert!(line.contains(r#""result":{"x-unknown":{"z":9007199254740993,"a":null},"#), "{line}");
    }
    let id = plain.send("tools/list", &json!({})).await;
    assert!(plain.answer(id).await.0.contains(ODD_DEFINITION));
    let id = plain.send("tools/call", &json!({"name": "odd"})).await;
    assert!(plain.answer(id).await.0.contains(ODD_RESULT));
}

#[tokio::test]
async fn schemas_are_odd_and_the_tools_can_be_called() {
    let mut plain = Plain::start("null-schema");
    assert_eq!(plain.odd_tool().await["inputSchema"], Value::Null);
    assert_eq!(plain.call("null_schema").await["result"]["content"][0]["text"], "called");

    let mut plain = Plain::start("bad-schema");
    let schema = plain.odd_tool().await["inputSchema"].clone();
    assert!(jsonschema::draft202012::new(&schema).is_err());
    assert_eq!(plain.call("bad_schema").await["result"]["content"][0]["text"], "called");

    let mut plain = Plain::start("array-output");
    assert_eq!(plain.odd_tool().await["outputSchema"]["type"], "array");
    assert_eq!(plain.call("array").await["result"]["structuredContent"], json!([1, 2, 3]));
}

#[tokio::test]
async fn names_are_long_or_clash() {
    for mut client in clients("long-name").await {
        let list = client.ask("tools/list", "{}").await.answer;
        let name = list.result()["tools"][2]["name"].as_str().unwrap().to_owned();
        assert_eq!(name.len(), 200);
        assert_eq!(client.call(&name, "{}").await.answer.content(), "called");
    }
    for mut client in clients("clashing-names").await {
        for name in ["read.file", "read file"] {
            assert_eq!(client.call(name, "{}").await.answer.content(), name);
        }
    }
}
