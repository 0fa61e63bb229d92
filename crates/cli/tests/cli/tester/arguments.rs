//! Arguments are validated against the advertised schemas before they are sent.

use serde_json::{Value, json};
use toolyard_testkit::harness::Scratch;
use toolyard_testkit::odd::{Kind, start_in_process};

use super::{Tester, demo};

#[tokio::test]
async fn each_violation_is_named_with_its_pointer_and_the_schema_of_the_argument() {
    let scratch = Scratch::new();
    let mut tester = Tester::start().await;
    tester.connect(&demo(&scratch)).await;
    let listed = tester.uses("list_tools", json!({})).await;
    let add = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "add").unwrap();
    let call = json!({"name": "add", "arguments": {"a": "one"}});
    let error = tester.fails("invalid_arguments", "call_tool", call).await;
    let mut violations = error["details"]["violations"].as_array().unwrap().clone();
    violations.sort_by_key(|violation| violation["pointer"].as_str().unwrap().to_owned());
    let pointers: Vec<&Value> = violations.iter().map(|violation| &violation["pointer"]).collect();
    assert_eq!(pointers, ["/a", "/b"], "{error:#}");
    assert_eq!(violations[0]["provided"], "one");
    assert_eq!(violations[0]["schema"], add["input_schema"]["properties"]["a"]);
    assert_eq!(error["details"]["input_schema"], add["input_schema"]);
    let slip = json!({"name": "fail", "arguments": {"mesage": "no"}});
    let listed_fail = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "fail").unwrap();
    if listed_fail["input_schema"]["required"] == json!(["message"]) {
        let error = tester.fails("invalid_arguments", "call_tool", slip).await;
        assert_eq!(error["suggestion"], "did you mean `message` instead of `mesage`?");
    }
}

#[tokio::test]
async fn arguments_of_the_nine_tools_themselves_are_refused_in_the_same_form() {
    let mut tester = Tester::start().await;
    for (tool, arguments, pointer) in [
        ("connect_to_server", json!({}), "/url"),
        ("connect_to_server", json!({"url": 7}), "/url"),
        ("call_tool", json!({"name": "x"}), "/arguments"),
        ("call_tool", json!({"name": "x", "arguments": "{}"}), "/arguments"),
        ("call_tool", json!({"name": ["x"], "arguments": {}}), "/name"),
        ("read_resource", json!({"url": "x"}), "/uri"),
        ("get_prompt", json!({"arguments": {}}), "/name"),
    ] {
        let error = tester.fails("invalid_arguments", tool, arguments).await;
        assert_eq!(error["details"]["violations"][0]["pointer"], pointer, "{error:#}");
        assert!(error["details"]["input_schema"]["properties"].is_object(), "{error:#}");
    }
}

#[tokio::test]
async fn a_schema_that_cannot_be_compiled_is_noted_and_the_tool_called_anyway() {
    let server = start_in_process(Kind::BadSchema).await.unwrap();
    let mut tester = Tester::start().await;
    tester.connect(&server.url).await;
    let answer = tester.uses("call_tool", json!({"name": "bad_schema", "arguments": {"a": 1}})).await;
    assert_eq!(answer["success"], true, "{answer:#}");
    let note = answer["metadata"]["notes"][0].as_str().unwrap();
    assert!(note.starts_with("the input schema of bad_schema cannot be compiled"), "{note}");
}

#[tokio::test]
async fn names_that_are_almost_right_get_the_right_one() {
    let scratch = Scratch::new();
    let mut tester = Tester::start().await;
    tester.connect(&demo(&scratch)).await;
    let error =
        tester.fails("tool_not_found", "call_tool", json!({"name": "count_dow", "arguments": {}})).await;
    assert_eq!(error["suggestion"], "did you mean `count_down`?");
    assert!(error["details"]["available"].as_array().unwrap().contains(&json!("count_down")));
    let error = tester.fails("prompt_not_found", "get_prompt", json!({"name": "explain_too"})).await;
    assert_eq!(error["suggestion"], "did you mean `explain_tool`?");
    let listed = tester.uses("list_resources", json!({})).await;
    let uri = listed["resources"][0]["uri"].as_str().unwrap();
    let error =
        tester.fails("resource_not_found", "read_resource", json!({"uri": &uri[..uri.len() - 1]})).await;
    assert_eq!(error["suggestion"], format!("did you mean `{uri}`?"));
}

#[tokio::test]
async fn arguments_of_prompts_are_checked_too() {
    let scratch = Scratch::new();
    let mut tester = Tester::start().await;
    tester.connect(&demo(&scratch)).await;
    let listed = tester.uses("list_prompts", json!({})).await;
    let argument = listed["prompts"][0]["arguments"][0]["name"].as_str().unwrap().to_owned();
    let error = tester.fails("invalid_arguments", "get_prompt", json!({"name": "explain_tool"})).await;
    assert_eq!(
        error["details"]["violations"],
        json!([{"pointer": format!("/{argument}"), "reason": "is required"}])
    );
    let number = json!({"name": "explain_tool", "arguments": {argument.as_str(): 7}});
    let error = tester.fails("invalid_arguments", "get_prompt", number).await;
    assert_eq!(error["details"]["violations"][0]["reason"], "must be a string, not 7");
}
