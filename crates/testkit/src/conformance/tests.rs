//! In-process versions of what the suite checks.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolyard_hub::{
    CallTarget, ClientCapabilities, CompletionReference, ErrorKind, Yard, YardEvent, json as raw,
};
use toolyard_sdk::testing::{TestCaller, TestReport};

use super::yard;

async fn call_as(caller: TestCaller, yard: &Arc<Yard>, name: &str, arguments: Value) -> TestReport {
    let what = CallTarget::Tool { name: name.to_owned(), arguments: Some(raw::to_raw(&arguments)) };
    caller.request(yard, what).await
}

async fn call(name: &str) -> TestReport {
    call_as(TestCaller::new(), &yard(), name, json!({})).await
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call sites")]
fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn sampled(text: &str) -> Value {
    let content = json!({"type": "text", "text": text});
    json!({"role": "assistant", "content": content, "model": "test-model", "stopReason": "endTurn"})
}

fn roots() -> Value {
    json!({"roots": [{"uri": "file:///test/root", "name": "Test Root"}]})
}

fn params(report: &TestReport, at: usize) -> Value {
    serde_json::from_str(report.questions[at].params.get()).unwrap()
}

#[test]
fn lists_a_tool_that_needs_no_arguments_first_and_describes_everything() {
    let catalog = yard().catalog();
    assert_eq!(catalog.tools()[0].raw_name, "test_simple_text");
    assert!(catalog.tools().iter().all(|tool| tool.description.is_some() && tool.schema_problem().is_none()));
    assert_eq!(catalog.warnings(), []);
    let described = |definition: &raw::Raw| definition.get().contains(r#""description":"#);
    assert!(catalog.prompts().iter().all(|prompt| described(&prompt.definition)));
    assert!(catalog.supports_completion());
}

#[tokio::test]
async fn answers_with_every_kind_of_content() {
    assert_eq!(call("test_simple_text").await.text(), "This is a simple text response for testing.");
    let block = async |name| call(name).await.body()["content"][0].clone();
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
    let image = json!({"type": "image", "data": png, "mimeType": "image/png"});
    assert_eq!(block("test_image_content").await, image);
    let wav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
    assert_eq!(
        block("test_audio_content").await,
        json!({"type": "audio", "data": wav, "mimeType": "audio/wav"})
    );
    assert_eq!(
        block("test_embedded_resource").await,
        json!({"type": "resource", "resource": {
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content.",
        }})
    );
    assert_eq!(
        call("test_multiple_content_types").await.body()["content"],
        json!([{"type": "text", "text": "Multiple content types test:"}, image, {"type": "resource", "resource": {
            "uri": "test://mixed-content-resource",
            "mimeType": "application/json",
            "text": r#"{"test":"data","value":123}"#,
        }}])
    );
    let failed = call("test_error_handling").await;
    assert!(failed.is_failed());
    assert_eq!(failed.text(), "This tool intentionally returns an error for testing");
}

#[tokio::test]
async fn reports_logs_and_lets_go() {
    let progress: Vec<f64> =
        call("test_tool_with_progress").await.progress.iter().map(|p| p.progress).collect();
    assert_eq!(progress, [0.0, 50.0, 100.0]);
    let log: Vec<Value> =
        call("test_tool_with_logging").await.log.into_iter().map(|line| line.data).collect();
    assert_eq!(log, ["Tool execution started", "Tool processing data", "Tool execution completed"]);
    let quiet = TestCaller::new().capabilities(ClientCapabilities::default());
    let report = call_as(quiet, &yard(), "test_logging_tool", json!({})).await;
    assert_eq!((report.log.len(), report.text().as_str()), (0, "Logging evaluated"));
    assert_eq!(call("test_reconnection").await.pauses, [Duration::from_millis(500)]);
}

#[tokio::test]
async fn asks_the_person_the_model_and_for_the_roots() {
    let yard = yard();
    let ask = async |caller, name, arguments| call_as(caller, &yard, name, arguments).await;
    let report = ask(
        TestCaller::new().answer("sampling", sampled("Paris")),
        "test_sampling",
        json!({"prompt": "Test"}),
    )
    .await;
    assert_eq!(report.text(), "LLM response: Paris");
    let message = json!({"role": "user", "content": {"type": "text", "text": "Test"}});
    assert_eq!(params(&report, 0), json!({"messages": [message], "maxTokens": 100}));

    let user = accept(json!({"username": "testuser", "email": "test@example.com"}));
    let report =
        ask(TestCaller::new().answer("user", user), "test_elicitation", json!({"message": "Please"})).await;
    assert_eq!(
        report.text(),
        r#"User response: action=accept, content={"username":"testuser","email":"test@example.com"}"#
    );
    for (name, key) in
        [("test_elicitation_sep1034_defaults", "defaults"), ("test_elicitation_sep1330_enums", "enums")]
    {
        let report = ask(TestCaller::new().answer(key, json!({"action": "decline"})), name, json!({})).await;
        assert_eq!(report.text(), "Elicitation completed: action=decline, content={}");
    }
}

#[tokio::test]
async fn asks_under_the_keys_of_the_suite() {
    let yard = yard();
    let ask = async |caller, name: &str| {
        let report = call_as(caller, &yard, &format!("test_input_required_result_{name}"), json!({})).await;
        let keys: Vec<String> = report.questions.iter().map(|question| question.key.clone()).collect();
        (report.text(), keys.join(" "))
    };
    let answer = |text: &str, keys: &str| (text.to_owned(), keys.to_owned());
    let alice = || TestCaller::new().answer("user_name", accept(json!({"name": "Alice"})));
    assert_eq!(ask(alice(), "elicitation").await, answer("Hello, Alice!", "user_name"));
    let paris = TestCaller::new().answer("capital_question", sampled("Paris"));
    assert_eq!(ask(paris, "sampling").await, answer("Sampling result: Paris", "capital_question"));
    let listed = TestCaller::new().answer("client_roots", roots());
    assert_eq!(ask(listed, "list_roots").await, answer("Found 1 root(s)", "client_roots"));
    let sure = || TestCaller::new().answer("confirm", accept(json!({"ok": true})));
    assert_eq!(ask(sure(), "request_state").await, answer("state-ok, confirmed: true", "confirm"));
    assert_eq!(ask(sure(), "tampered_state").await, answer("integrity-ok, confirmed: true", "confirm"));
    let all = alice().answer("greeting", sampled("Hi")).answer("client_roots", roots());
    let expect = answer("Hi Alice, 1 root(s)", "user_name greeting client_roots");
    assert_eq!(ask(all, "multiple_inputs").await, expect);
    let rounds = TestCaller::new()
        .answer("step1", accept(json!({"name": "Alice"})))
        .answer("step2", accept(json!({"color": "blue"})));
    assert_eq!(ask(rounds, "multi_round").await, answer("Alice likes blue", "step1 step2"));
    let only_sampling = ClientCapabilities { sample: true, ..ClientCapabilities::default() };
    let caller = TestCaller::new().capabilities(only_sampling).answer("greeting", sampled("Hi"));
    assert_eq!(ask(caller, "capabilities").await, answer("Hi", "greeting"));
}

#[tokio::test]
async fn asks_for_a_name_with_the_form_of_the_suite() {
    let caller = TestCaller::new().answer("user_name", accept(json!({"name": "Alice"})));
    let report = call_as(caller, &yard(), "test_input_required_result_elicitation", json!({})).await;
    assert_eq!(
        params(&report, 0),
        json!({
            "message": "What is your name?",
            "requestedSchema": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
        })
    );
}

#[tokio::test]
async fn names_the_capability_that_a_client_lacks() {
    let caller = || TestCaller::new().capabilities(ClientCapabilities::default());
    let error = call_as(caller(), &yard(), "test_missing_capability", json!({})).await.outcome.unwrap_err();
    assert_eq!((error.kind(), error.details()), (ErrorKind::ClientCannot, Some(&json!({"sampling": {}}))));
    assert_eq!(call("test_missing_capability").await.text(), "Success");
    assert_eq!(
        call_as(caller(), &yard(), "test_streaming_elicitation", json!({})).await.text(),
        "Streaming complete"
    );
}

#[tokio::test]
async fn changes_its_lists_at_their_end_and_back_again() {
    let yard = yard();
    let mut events = yard.events().subscribe();
    let before = yard.catalog().tools().len();
    for (tool, more) in [("test_trigger_tool_change", 1), ("test_trigger_tool_change", 0)] {
        call_as(TestCaller::new(), &yard, tool, json!({})).await.outcome.unwrap();
        assert_eq!(yard.catalog().tools().len(), before + more);
        assert_eq!(yard.catalog().tools()[0].raw_name, "test_simple_text");
    }
    call_as(TestCaller::new(), &yard, "test_trigger_prompt_change", json!({})).await.outcome.unwrap();
    let mut changes = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let YardEvent::CatalogChanged(change, _) = &*event {
            changes.push((change.tools, change.prompts));
        }
    }
    assert_eq!(changes, [(true, false), (true, false), (false, true)]);
}

#[tokio::test]
async fn keeps_the_schema_of_2020_12_as_it_is_and_obeys_it() {
    let yard = yard();
    let arguments = json!({"contactMethod": "phone", "phone": "1"});
    let report = call_as(TestCaller::new(), &yard, "json_schema_2020_12_tool", arguments).await;
    assert_eq!(report.text(), r#"{"contactMethod":"phone","phone":"1"}"#);
    let report = call_as(TestCaller::new(), &yard, "json_schema_2020_12_tool", json!({})).await;
    assert_eq!(report.error_kind(), Some(ErrorKind::InvalidArguments));
    let schema = |name: &str| {
        let catalog = yard.catalog();
        let tool = catalog.tools().iter().find(|tool| tool.raw_name == name).unwrap();
        serde_json::from_str::<Value>(tool.input_schema.get()).unwrap()
    };
    assert_eq!(schema("json_schema_2020_12_tool")["$defs"]["address"]["$anchor"], "addressDef");
    assert_eq!(
        schema("test_x_mcp_header")["properties"]["region"],
        json!({
            "type": "string",
            "default": "",
            "x-mcp-header": "Region",
            "description": "Also travels as the header `Mcp-Param-Region`.",
        })
    );
}

#[tokio::test]
async fn has_the_resources_and_prompts_of_the_suite() {
    let yard = yard();
    let read = async |uri: &str| {
        let report = TestCaller::new().request(&yard, CallTarget::Resource { uri: uri.to_owned() }).await;
        report.body()["contents"][0].clone()
    };
    let text = "This is the content of the static text resource.";
    let expect = json!({"uri": "test://static-text", "mimeType": "text/plain", "text": text});
    assert_eq!(read("test://static-text").await, expect);
    assert_eq!(read("test://static-binary").await["mimeType"], "image/png");
    assert_eq!(
        read("test://template/123/data").await["text"],
        r#"{"id":"123","templateTest":true,"data":"Data for ID: 123"}"#
    );

    let get = async |caller: TestCaller, name: &str, arguments: Value| {
        let what = CallTarget::Prompt { name: name.to_owned(), arguments: Some(raw::to_raw(&arguments)) };
        caller.request(&yard, what).await.body()["messages"].clone()
    };
    let arguments = json!({"arg1": "testValue1", "arg2": "testValue2"});
    let text = "Prompt with arguments: arg1='testValue1', arg2='testValue2'";
    assert_eq!(
        get(TestCaller::new(), "test_prompt_with_arguments", arguments).await[0]["content"]["text"],
        text
    );
    let embedded = json!({"resourceUri": "test://example-resource"});
    let messages = get(TestCaller::new(), "test_prompt_with_embedded_resource", embedded).await;
    assert_eq!(messages[0]["content"]["resource"]["uri"], "test://example-resource");
    assert_eq!(
        get(TestCaller::new(), "test_prompt_with_image", json!({})).await[0]["content"]["type"],
        "image"
    );
    let answering = TestCaller::new().answer("user_context", accept(json!({"context": "test context"})));
    let messages = get(answering, "test_input_required_result_prompt", json!({})).await;
    assert_eq!(messages[0]["content"]["text"], "Use this context: test context");

    let what = CallTarget::Completion {
        reference: CompletionReference::Prompt("test_prompt_with_arguments".to_owned()),
        argument: "arg1".to_owned(),
        value: "test".to_owned(),
        context: None,
    };
    let body = TestCaller::new().request(&yard, what).await.body();
    let expect = json!({"completion": {"values": ["test", "testValue1"], "total": 2, "hasMore": false}});
    assert_eq!(body, expect);
}
