//! The forms of a result: structured, JSON in text, text, or several blocks. All arrive unchanged.

use serde_json::json;

use super::workbench;

#[tokio::test]
async fn text_that_is_json_is_a_value_and_other_text_is_text() {
    let server = workbench(&[]).await;
    let say = async |text: &str| server.execute("say", json!({"text": text})).await.json()["result"].clone();
    assert_eq!(say(r#"{"a": [1, 2]}"#).await, json!({"a": [1, 2]}));
    assert_eq!(say("42").await, json!(42));
    assert_eq!(say("Lift-off!").await, json!("Lift-off!"));
    assert_eq!(say("{broken").await, json!("{broken"));
    assert_eq!(say("").await, json!(""));
}

#[tokio::test]
async fn several_blocks_are_a_list_with_pictures_and_sounds_as_data() {
    let server = workbench(&[]).await;
    let body = server.execute("blocks", json!({})).await.json();
    assert_eq!(
        body["result"],
        json!([
            {"n": 9_007_199_254_740_993_u64},
            "plain",
            {"type": "image", "data": "cG5n", "mimeType": "image/png"},
            {"type": "audio", "data": "d2F2", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "probe://note", "name": "note"},
        ])
    );
    assert_eq!(body.get("content"), None);
    assert_eq!(server.execute("open", json!({"gate": "x", "n": 0})).await.json()["result"], json!(null));
}

#[tokio::test]
async fn all_blocks_come_on_request() {
    let server = workbench(&[]).await;
    let body = json!({"params": {"text": "7"}});
    let content = json!([{"type": "text", "text": "7"}]);
    let full = server.post("/mcp/tools/say/execute?content=full", &body).await.json();
    assert_eq!((&full["result"], &full["content"]), (&json!(7), &content));
    let headers = [("accept", "application/vnd.toolyard.content+json")];
    let accepted = server.post_with("/mcp/tools/say/execute", &headers, &body).await;
    assert_eq!(accepted.json()["content"], content);
    assert_eq!(accepted.header("content-type"), Some("application/json"));
    let wrong = server.post("/mcp/tools/say/execute?content=some", &body).await;
    assert_eq!(wrong.refusal(), (400, "VALIDATION_ERROR".to_owned()));
}

#[tokio::test]
async fn numbers_and_order_survive_in_both_directions() {
    let server = workbench(&[]).await;
    let answer = server.execute("odd", json!({})).await;
    let structured = r#"{"z":9007199254740993,"a":18446744073709551616,"f":1.0,"x":1e400}"#;
    assert!(
        answer.text.starts_with(&format!(r#"{{"success":true,"result":{structured},"#)),
        "{}",
        answer.text
    );
    let params = r#"{"z":9007199254740993123,"a":1.0,"b":{"y":1E2,"x":-0}}"#;
    let body = format!(r#"{{"params": {params}}}"#);
    let headers = [("content-type", "application/json; charset=utf-8")];
    let echoed =
        server.request("POST", "/mcp/tools/echo/execute", &headers, body.as_bytes()).await.read_body().await;
    assert!(echoed.text.starts_with(&format!(r#"{{"success":true,"result":{params},"#)), "{}", echoed.text);
}

#[tokio::test]
async fn what_servers_behind_say_comes_through() {
    let server = workbench(&["--odd", "odd-content", "--odd", "array-output"]).await;
    server.get("/mcp/tools").await;
    let hologram = server.execute("hologram", json!({})).await;
    let block = r#"{"type":"hologram","depth":9007199254740993,"data":{"b":1,"a":[]}}"#;
    assert!(
        hologram.text.contains(&format!(r#""result":["before",{block},"after",{{"type":"widget"}}]"#)),
        "{hologram:?}"
    );
    assert_eq!(server.execute("array", json!({})).await.json()["result"], json!([1, 2, 3]));
}

#[tokio::test]
async fn a_result_of_megabytes_comes_whole() {
    let server = workbench(&[]).await;
    let body = server.execute("big", json!({"bytes": 5_000_000})).await.json();
    assert_eq!(body["result"].as_str().unwrap().len(), 5_000_000);
}

#[tokio::test]
async fn an_answer_that_is_no_protocol_result_is_an_error_and_never_null() {
    let server = workbench(&[]).await;
    for (answer, why) in [
        (json!({"anything": 1}), "neither `content` nor `structuredContent` is present"),
        (json!({"content": "no list", "structuredContent": [1]}), "`content` is not an array"),
        (json!({"content": null}), "`content` is not an array"),
    ] {
        let refused = server.execute("answer", answer.clone()).await;
        assert_eq!(refused.refusal(), (500, "EXECUTION_ERROR".to_owned()), "{answer}");
        let error = refused.json()["error"].clone();
        let message = format!("tool `answer` returned an invalid result: {why}");
        assert_eq!(error["message"], message);
        assert_eq!(error["details"]["answer"], answer.to_string());
        let path = format!("/mcp/executions/{}", refused.header("x-execution-id").unwrap());
        let execution = server.get(&path).await.json();
        assert_eq!((&execution["state"], &execution["response"]["error"]), (&json!("failed"), &error));
    }
    let number = server.execute("answer_number", json!({})).await;
    assert_eq!(number.refusal(), (500, "EXECUTION_ERROR".to_owned()));
    let message = "tool `answer_number` returned an invalid result: not an object";
    assert_eq!(number.json()["error"]["message"], message);
    let events = server.listen("/mcp/tools/answer_number/execute", &json!({})).await.all().await;
    assert_eq!((events.len(), events[0].name.as_str()), (1, "error"));
    // These are valid protocol results: no block, and only structured content.
    let none = server.execute("answer", json!({"content": []})).await.json();
    assert_eq!((&none["success"], &none["result"]), (&json!(true), &json!(null)));
    let alone = server.execute("answer", json!({"structuredContent": [1]})).await.json();
    assert_eq!(alone["result"], json!([1]));
}
