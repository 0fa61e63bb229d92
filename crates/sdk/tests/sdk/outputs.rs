//! Results for every return type of a tool.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use toolyard_hub::json as raw;
use toolyard_sdk::testing;
use toolyard_sdk::{Annotations, Audio, Content, Contents, Image, IntoOutput, Json, Outcome, Role, Tool};

async fn body<O: IntoOutput + Clone + Sync>(output: O) -> Value {
    let tool = Tool::new("t", move || {
        let output = output.clone();
        async move { Ok(output) }
    });
    testing::call(tool, json!({})).await.body()
}

#[derive(Clone, Serialize, JsonSchema)]
struct Sum {
    sum: u64,
}

#[tokio::test]
async fn every_return_type_becomes_content_blocks() {
    assert_eq!(body("text").await, json!({"content": [{"type": "text", "text": "text"}]}));
    assert_eq!(body("text".to_owned()).await, json!({"content": [{"type": "text", "text": "text"}]}));
    assert_eq!(body(()).await, json!({"content": []}));
    let data = vec![1, 2, 3];
    assert_eq!(
        body(Image { data: data.clone(), mime_type: "image/png".to_owned() }).await,
        json!({"content": [{"type": "image", "data": "AQID", "mimeType": "image/png"}]})
    );
    assert_eq!(
        body(Audio { data, mime_type: "audio/wav".to_owned() }).await,
        json!({"content": [{"type": "audio", "data": "AQID", "mimeType": "audio/wav"}]})
    );
    let blocks = vec![
        Content::text("a").annotations(&Annotations {
            audience: vec![Role::User, Role::Assistant],
            priority: Some(0.5),
            last_modified: None,
        }),
        Content::link("demo://about", "about").with("mimeType", "text/plain"),
        Content::resource("demo://a", "contents"),
        Content::resource("demo://b", Contents::bytes([1, 2, 3]).mime_type("image/png").uri("demo://c")),
    ];
    assert_eq!(
        body(blocks).await,
        json!({"content": [
            {"type": "text", "text": "a", "annotations": {"audience": ["user", "assistant"], "priority": 0.5}},
            {"type": "resource_link", "uri": "demo://about", "name": "about", "mimeType": "text/plain"},
            {"type": "resource", "resource": {"uri": "demo://a", "text": "contents"}},
            {"type": "resource", "resource": {"uri": "demo://c", "mimeType": "image/png", "blob": "AQID"}},
        ]})
    );
}

#[tokio::test]
async fn a_structured_result_is_repeated_as_text() {
    let text = r#"{"sum":9007199254740993}"#;
    assert_eq!(
        body(Json(Sum { sum: 9_007_199_254_740_993 })).await,
        json!({
            "content": [{"type": "text", "text": text}],
            "structuredContent": {"sum": 9_007_199_254_740_993_u64},
        })
    );
    assert_eq!(
        body(Json(vec![1, 2])).await,
        json!({
            "content": [{"type": "text", "text": r#"{"result":[1,2]}"#}],
            "structuredContent": {"result": [1, 2]},
        })
    );
}

#[tokio::test]
async fn a_custom_output_schema_prevents_wrapping() {
    let tool = Tool::new("t", || async { Ok(Json(json!({"any": "thing"}))) });
    let wrapped = testing::call(tool.clone(), json!({})).await;
    assert_eq!(wrapped.structured(), json!({"result": {"any": "thing"}}));
    let plain = testing::call(tool.output_schema(&json!({"type": "object"})), json!({})).await;
    assert_eq!(plain.structured(), json!({"any": "thing"}));
}

#[tokio::test]
async fn a_raw_result_is_sent_unchanged_and_can_report_a_failure() {
    let text = r#"{"content":[], "isError" : true,"x":9007199254740993}"#;
    let tool = Tool::raw("t", |_, _| async { Ok(raw::from_text(text.to_owned())) });
    let report = testing::call(tool, json!({})).await;
    assert!(report.is_failed());
    assert_eq!(report.outcome.unwrap().body.get(), text);
    let outcome =
        Tool::new("t", || async { Ok(Outcome::failure(raw::from_text(r#"{"content":[]}"#.to_owned()))) });
    assert!(testing::call(outcome, json!({})).await.is_failed());
}
