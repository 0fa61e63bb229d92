//! Everything that a server sends is returned unchanged.

use serde_json::{Value, json};
use toolyard_testkit::odd::{Kind, start_in_process};
use toolyard_testkit::probe::{ODD_DEFINITION, ODD_RESULT};

use super::Tester;

async fn against(kind: Kind) -> (Tester, toolyard_testkit::odd::Nearby) {
    let server = start_in_process(kind).await.unwrap();
    let mut tester = Tester::start().await;
    tester.connect(&server.url).await;
    (tester, server)
}

/// Returns an answer as it came over the wire, before a parser reorders or rounds anything.
async fn text(tester: &mut Tester, tool: &str, arguments: Value) -> String {
    tester.client.call(tool, arguments).await.answer.text
}

#[tokio::test]
async fn unknown_keys_odd_order_and_large_numbers_survive() {
    let (mut tester, _server) = against(Kind::UnknownKeys).await;
    let listed = text(&mut tester, "list_tools", json!({})).await;
    // Only the name `input_schema` comes from the specification of the tester.
    let expected = ODD_DEFINITION.replacen("\"inputSchema\"", "\"input_schema\"", 1);
    assert!(listed.contains(&expected), "{listed}");
    let called = text(&mut tester, "call_tool", json!({"name": "odd", "arguments": {}})).await;
    // A modern server adds the fields of its era at the start.
    assert!(called.contains(ODD_RESULT.strip_prefix('{').unwrap()), "{called}");
    for tool in ["list_resources", "list_prompts"] {
        let listed = text(&mut tester, tool, json!({})).await;
        assert!(listed.contains(r#""x-unknown":{"z":9007199254740993,"a":null}"#), "{listed}");
    }
    let read = text(&mut tester, "read_resource", json!({"uri": "odd://1"})).await;
    assert!(read.contains(r#""x-unknown":{"z":9007199254740993,"a":null}"#), "{read}");
    let sent = text(
        &mut tester,
        "call_tool",
        json!({"name": "echo", "arguments": {"b": 1, "a": 9_007_199_254_740_993_u64}}),
    )
    .await;
    assert!(sent.contains(r#""arguments":{"b":1,"a":9007199254740993}"#), "{sent}");
}

#[tokio::test]
async fn every_page_is_read() {
    let (mut tester, _server) = against(Kind::Pages).await;
    let listed = tester.uses("list_tools", json!({})).await;
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["echo", "requests", "first", "second", "third"]);
    assert_eq!((&listed["metadata"]["total_tools"], &listed["metadata"]["pages"]), (&json!(5), &json!(5)));
    let listed = tester.uses("list_resources", json!({})).await;
    assert_eq!(
        (&listed["metadata"]["total_resources"], listed["resource_templates"].as_array().unwrap().len()),
        (&json!(3), 2)
    );
    assert_eq!(tester.uses("list_prompts", json!({})).await["metadata"]["total_prompts"], 3);
    let read = tester.uses("read_resource", json!({"uri": "odd://2"})).await;
    assert_eq!(read["resource"]["content"], "the text of odd://2");
    assert_eq!(read["resource"]["contents"], json!([{"uri": "odd://2", "text": "the text of odd://2"}]));
    assert_eq!(read["metadata"]["content_size"], "the text of odd://2".len());
}

#[tokio::test]
async fn definitions_that_break_the_contract_are_told_beside_it_as_they_came() {
    let (mut tester, _server) = against(Kind::IllTyped).await;
    let listed = tester.uses("list_tools", json!({})).await;
    assert_eq!(listed["metadata"]["total_tools"], 4);
    assert_eq!(listed["tools"].as_array().unwrap().len(), 2);
    let malformed = listed["malformed"].as_array().unwrap();
    assert_eq!(malformed[0]["definition"]["description"], 5);
    assert_eq!(malformed[0]["problems"][0]["pointer"], "/description");
    assert_eq!(malformed[1]["definition"], 7);
    let read = tester.uses("read_resource", json!({"uri": "odd://1"})).await;
    assert_eq!(read["malformed"]["contents"][0]["uri"], 5);
    let got = tester.uses("get_prompt", json!({"name": "prompt_1"})).await;
    assert_eq!(got["malformed"]["messages"][0]["content"], json!(["words"]));
    let (mut tester, _server) = against(Kind::NullSchema).await;
    let listed = tester.uses("list_tools", json!({})).await;
    let null = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "null_schema").unwrap();
    assert_eq!((null.get("inputSchema"), null.get("input_schema")), (Some(&Value::Null), None));
    tester.calls("null_schema", json!({"any": "thing"})).await;
}

#[tokio::test]
async fn results_that_are_not_what_the_tool_promised_are_returned_untouched_with_the_violations_beside() {
    let (mut tester, _server) = against(Kind::WrongOutput).await;
    let answer = tester.uses("call_tool", json!({"name": "wrong", "arguments": {}})).await;
    assert_eq!(answer["success"], true);
    assert_eq!(answer["tool_call"]["result"]["structuredContent"], json!({"n": "one"}));
    let violations = &answer["metadata"]["output_schema_violations"];
    assert_eq!(
        violations,
        &json!([{"pointer": "/n", "reason": "\"one\" is not of type \"integer\"", "provided": "one"}])
    );
    let answer = tester.uses("call_tool", json!({"name": "missing", "arguments": {}})).await;
    let violations = &answer["metadata"]["output_schema_violations"];
    assert_eq!(violations, &json!([{"pointer": "", "reason": "structuredContent is missing"}]));
    let (mut tester, _server) = against(Kind::ArrayOutput).await;
    let answer = tester.uses("call_tool", json!({"name": "array", "arguments": {}})).await;
    assert_eq!(answer["tool_call"]["result"]["structuredContent"], json!([1, 2, 3]));
    assert_eq!(answer["metadata"].get("output_schema_violations"), None);
}

#[tokio::test]
async fn content_of_unknown_types_and_results_of_megabytes_come_through() {
    let (mut tester, _server) = against(Kind::OddContent).await;
    let result = tester.calls("hologram", json!({})).await;
    assert_eq!(result["content"][1]["type"], "hologram");
    let result = tester.calls("list_tools", json!({})).await;
    assert_eq!(result["tools"][0]["name"], "inner");
    let (mut tester, _server) = against(Kind::Huge).await;
    let result = tester.calls("huge", json!({"megabytes": 3})).await;
    assert_eq!(result["content"][0]["text"].as_str().unwrap().len(), 3_000_000);
}

#[tokio::test]
async fn a_list_without_an_end_is_refused_with_the_name_of_the_limit() {
    let server = start_in_process(Kind::EndlessPages).await.unwrap();
    let limits = "[limits]\ndefinition_bytes_per_source = 3_000_000\n";
    let mut tester = Tester::with(limits).await;
    tester.connect(&server.url).await;
    let refused = tester.uses("list_tools", json!({})).await;
    assert_eq!(refused["success"], false);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("limits.definition_bytes_per_source"), "{message}");
    // The connection still works.
    let answer = tester.uses("get_connection_status", json!({})).await;
    assert_eq!(answer["connected"], true, "{answer}");
}
