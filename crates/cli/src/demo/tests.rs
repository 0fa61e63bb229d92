//! The demo yard as callers see it.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_hub::{CallTarget, CompletionReference, ErrorKind, Yard, json as raw};
use toolyard_sdk::Progress;
use toolyard_sdk::testing::{TestCaller, TestReport};

fn yard() -> Arc<Yard> {
    Yard::with_sources([super::source()])
}

async fn call_as(caller: TestCaller, name: &str, arguments: Value) -> TestReport {
    let target = CallTarget::Tool { name: name.to_owned(), arguments: Some(raw::to_raw(&arguments)) };
    caller.request(&yard(), target).await
}

async fn call(name: &str, arguments: Value) -> TestReport {
    call_as(TestCaller::new(), name, arguments).await
}

#[test]
fn offers_these_tools_and_describes_every_parameter() {
    let catalog = yard().catalog();
    let names: Vec<&str> = catalog.tools().iter().map(|tool| tool.raw_name.as_str()).collect();
    let expect = "add convert_temperature count_down stream_words draw_swatch fail admin_report ask_name";
    assert_eq!(names.join(" "), expect);
    for tool in catalog.tools() {
        assert!(tool.description.is_some(), "{}", tool.raw_name);
        let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap();
        for (name, parameter) in schema["properties"].as_object().unwrap() {
            assert!(parameter["description"].is_string(), "{}: {name}", tool.raw_name);
        }
        assert_eq!(tool.schema_problem(), None);
    }
}

#[tokio::test]
async fn adds() {
    assert_eq!(call("add", json!({"a": 2, "b": 0.5})).await.structured(), json!({"sum": 2.5}));
    assert_eq!(
        call("add", json!({"a": "2", "b": 0.5})).await.error_kind(),
        Some(ErrorKind::InvalidArguments)
    );
}

#[tokio::test]
async fn converts_temperatures() {
    let convert = async |value: f64, from: &str, to: &str, precision: u8| {
        let arguments = json!({"value": value, "from": from, "to": to, "precision": precision});
        call("convert_temperature", arguments).await.structured()
    };
    assert_eq!(
        convert(100.0, "celsius", "fahrenheit", 2).await,
        json!({"value": 212.0, "unit": "fahrenheit"})
    );
    assert_eq!(convert(-459.67, "fahrenheit", "kelvin", 2).await, json!({"value": 0.0, "unit": "kelvin"}));
    assert_eq!(convert(0.0, "fahrenheit", "celsius", 4).await, json!({"value": -17.7778, "unit": "celsius"}));
    assert_eq!(convert(-0.4, "celsius", "celsius", 0).await.to_string(), r#"{"value":0.0,"unit":"celsius"}"#);
    let default =
        call("convert_temperature", json!({"value": 1, "from": "kelvin", "to": "fahrenheit"})).await;
    assert_eq!(default.structured(), json!({"value": -457.87, "unit": "fahrenheit"}));
}

#[tokio::test]
async fn refuses_temperatures_and_units_that_do_not_exist() {
    let cold = call("convert_temperature", json!({"value": -1, "from": "kelvin", "to": "celsius"})).await;
    let details = json!({"field": "value", "reason": "is below absolute zero", "provided": -1.0});
    assert_eq!(cold.outcome.unwrap_err().details(), Some(&details));
    for arguments in [
        json!({"value": 1, "from": "rankine", "to": "celsius"}),
        json!({"value": 1, "from": "kelvin", "to": "celsius", "precision": 11}),
    ] {
        let report = call("convert_temperature", arguments).await;
        assert_eq!(report.error_kind(), Some(ErrorKind::InvalidArguments));
    }
}

#[tokio::test]
async fn counts_down_with_progress_at_every_number() {
    let report = call("count_down", json!({"from": 4, "delay_ms": 0})).await;
    assert_eq!(report.text(), "Lift-off!");
    let progress = |percent: f64, message: &str| Progress {
        progress: percent,
        total: Some(100.0),
        message: Some(message.to_owned()),
    };
    let expect = [progress(25.0, "4…"), progress(50.0, "3…"), progress(75.0, "2…"), progress(100.0, "1…")];
    assert_eq!(report.progress, expect);
    for arguments in [json!({"from": 0}), json!({"from": 101}), json!({"from": 1, "delay_ms": 10_001})] {
        assert_eq!(call("count_down", arguments).await.error_kind(), Some(ErrorKind::InvalidArguments));
    }
}

#[tokio::test]
async fn streams_the_words_of_a_text() {
    let report = call("stream_words", json!({"text": " one  two\nthree"})).await;
    assert_eq!(
        (report.chunks, report.outcome.is_ok()),
        (vec![json!("one"), json!("two"), json!("three")], true)
    );
    assert_eq!(call("stream_words", json!({"text": "one two"})).await.text(), "2 words");
    assert_eq!(call("stream_words", json!({"text": "one"})).await.text(), "1 word");
}

#[tokio::test]
async fn has_a_tool_in_two_versions_of_which_the_older_one_is_deprecated() {
    let catalog = yard().catalog();
    let tool = catalog.tools().iter().find(|tool| tool.raw_name == "stream_words").unwrap();
    assert_eq!((tool.version(), &tool.deprecated_by), (Some("2.0.0"), &None));
    let older: Vec<_> = tool.older.iter().map(|old| (old.version(), old.deprecated_by.as_deref())).collect();
    assert_eq!(older, [(Some("1.0.0"), Some("2.0.0"))]);
    // The tool is listed once, so counts and completions have no duplicates.
    let report = call_as(TestCaller::new().permissions(["admin"]), "admin_report", json!({})).await;
    assert_eq!(report.structured()["tools"], 8);
}

#[tokio::test]
async fn draws_a_swatch() {
    let report = call("draw_swatch", json!({"color": "#FF8000", "size": 1})).await;
    let block = report.body()["content"][0].clone();
    assert_eq!((&block["type"], &block["mimeType"]), (&json!("image"), &json!("image/png")));
    assert!(block["data"].as_str().unwrap().starts_with("iVBORw0KGgo"));
    for arguments in [json!({"color": "red"}), json!({"color": "#ff8000", "size": 257})] {
        assert_eq!(call("draw_swatch", arguments).await.error_kind(), Some(ErrorKind::InvalidArguments));
    }
}

#[tokio::test]
async fn fails_with_the_given_words() {
    let report = call("fail", json!({"message": "out of paper"})).await;
    assert_eq!((report.is_failed(), report.text().as_str()), (true, "out of paper"));
}

#[tokio::test]
async fn reports_to_administrators_only() {
    let refused = call_as(TestCaller::new().permissions(["write"]), "admin_report", json!({})).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::Forbidden));
    let report = call_as(TestCaller::new().permissions(["admin"]), "admin_report", json!({})).await;
    assert_eq!(report.structured(), json!({"tools": 8, "resources": 1, "prompts": 1}));
}

#[tokio::test]
async fn asks_for_a_name() {
    let answering = |answer: Value| TestCaller::new().answer("name", answer);
    let accepted = answering(json!({"action": "accept", "content": {"name": "Ada"}}));
    assert_eq!(call_as(accepted.clone(), "ask_name", json!({})).await.text(), "Hello, Ada!");
    assert_eq!(call_as(accepted, "ask_name", json!({"greeting": "Moin"})).await.text(), "Moin, Ada!");
    let declined = call_as(answering(json!({"action": "decline"})), "ask_name", json!({})).await;
    assert_eq!(declined.text(), "Hello, stranger. No name needed.");
}

#[tokio::test]
async fn has_things_to_read() {
    let read = async |uri: &str| {
        TestCaller::new().request(&yard(), CallTarget::Resource { uri: uri.to_owned() }).await
    };
    let about = read("demo://about").await.body();
    assert_eq!(about["contents"][0]["mimeType"], "text/markdown");
    assert_eq!(
        read("demo://squares/-12").await.body(),
        json!({"contents": [{"uri": "demo://squares/-12", "mimeType": "text/plain", "text": "144"}]})
    );
    let none = read("demo://squares/twelve").await.outcome.unwrap_err();
    let uri = json!({"uri": "demo://squares/twelve"});
    assert_eq!((none.kind(), none.details()), (ErrorKind::UnknownResource, Some(&uri)));
}

#[tokio::test]
async fn has_a_prompt_that_explains_tools_and_completes_its_arguments() {
    let get = async |arguments: Value| {
        let target =
            CallTarget::Prompt { name: "explain_tool".to_owned(), arguments: Some(raw::to_raw(&arguments)) };
        TestCaller::new().request(&yard(), target).await
    };
    let text =
        get(json!({"tool": "fail", "audience": "expert"})).await.body()["messages"][0]["content"]["text"]
            .clone();
    assert!(text.as_str().unwrap().starts_with("Explain the tool `fail` to this audience: expert."));
    assert_eq!(get(json!({"tool": "sing"})).await.error_kind(), Some(ErrorKind::InvalidArguments));
    assert_eq!(get(json!({})).await.error_kind(), Some(ErrorKind::InvalidArguments));

    let complete = async |argument: &str, value: &str| {
        let target = CallTarget::Completion {
            reference: CompletionReference::Prompt("explain_tool".to_owned()),
            argument: argument.to_owned(),
            value: value.to_owned(),
            context: None,
        };
        TestCaller::new().request(&yard(), target).await.body()["completion"]["values"].clone()
    };
    assert_eq!(complete("tool", "a").await, json!(["add", "admin_report", "ask_name"]));
    assert_eq!(complete("audience", "e").await, json!(["expert"]));
}
