//! Protocol violations of a server are reported where they happen and counted in the status.

use serde_json::{Value, json};
use toolyard_testkit::harness::Scratch;
use toolyard_testkit::odd::{Kind, start_in_process};
use toolyard_testkit::web::{Web, What};

use super::Tester;

/// A legacy server in Python that does what the name of the tool says.
const SERVER: &str = r#"
import json, sys

def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

def answer(id, result):
    say(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}))

TEXT = [{"type": "text", "text": "fine"}]
RESULTS = {
    "fine": {"content": TEXT},
    "null_result": None,
    "list_result": [1, 2],
    "no_content": {"structuredContent": {"a": 1}},
    "text_content": {"content": "words"},
    "bad_block": {"content": [{"type": "text"}, {"text": "no type"}, {"type": "image", "data": "aGk="}]},
    "bad_structured": {"content": TEXT, "structuredContent": [1]},
    "bad_error_flag": {"content": TEXT, "isError": "yes"},
}
OTHERS = ["stray_line", "wrong_id", "text_id", "twice", "bad_notification", "bad_progress", "bad_error"]
SCHEMA = {"type": "object"}
TOOLS = [{"name": name, "inputSchema": SCHEMA} for name in [*RESULTS, *OTHERS]]
ODD = [
    {"name": "uncompilable", "inputSchema": {"type": "object", "properties": {"a": {"pattern": "("}}}},
    {"name": "bad_output", "inputSchema": SCHEMA, "outputSchema": {"type": "objekt"}},
    {"name": "no_schema"},
    {"name": "array_schema", "inputSchema": {"type": "array"}},
    {"inputSchema": SCHEMA},
    {"name": "fine", "inputSchema": SCHEMA},
]
MODE = sys.argv[1] if len(sys.argv) > 1 else ""

for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if id is None:
        continue
    if method == "initialize":
        info = {"name": "rule-breaker", "version": "1"}
        capabilities = {"tools": {}, "prompts": {}, "resources": {}}
        answer(id, {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info})
    elif method == "tools/list" and MODE == "null_list":
        answer(id, None)
    elif method == "tools/list" and MODE == "no_list":
        answer(id, {})
    elif method == "tools/list":
        answer(id, {"tools": TOOLS + ODD if MODE == "odd" else TOOLS})
    elif method == "prompts/list":
        answer(id, {"prompts": [{"name": "empty", "description": "says nothing"}, {"description": "nameless"}]})
    elif method == "prompts/get":
        answer(id, {"description": "no messages"})
    elif method == "resources/list":
        answer(id, {"resources": [{"uri": "odd://1", "name": "one"}, {"name": "nowhere"}]})
    elif method == "resources/templates/list":
        answer(id, {"resourceTemplates": []})
    elif method == "resources/read":
        answer(id, {})
    elif method == "tools/call":
        name = message["params"]["name"]
        if name in RESULTS:
            answer(id, RESULTS[name])
        elif name == "wrong_id":
            answer(id + 1000, {"content": TEXT})
        elif name == "text_id":
            answer(str(id), {"content": TEXT})
        elif name == "bad_error":
            say(json.dumps({"jsonrpc": "2.0", "id": id, "error": "broken"}))
        else:
            if name == "stray_line":
                say("Starting up...")
            elif name == "bad_notification":
                say('{"method": "notifications/message", "params": {"level": "info"}}')
                say('{"jsonrpc": "2.0", "method": "notifications/message", "params": [1]}')
            elif name == "bad_progress":
                say('{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": "half"}}')
                say('{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "loud", "data": 1}}')
            answer(id, {"content": TEXT})
            if name == "twice":
                answer(id, {"content": TEXT})
    else:
        say(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown method"}}))
"#;

/// Starts a tester that is connected to the server in one of its modes.
async fn against(mode: &str) -> (Tester, Scratch) {
    let scratch = Scratch::new();
    let mut tester = Tester::start().await;
    let path = scratch.file("server.py", SERVER);
    tester.connect(&format!("python3 '{path}' {mode}")).await;
    (tester, scratch)
}

async fn call(tester: &mut Tester, name: &str) -> Value {
    tester.uses("call_tool", json!({"name": name, "arguments": {}})).await
}

fn notes(answer: &Value) -> Vec<String> {
    let notes = answer["metadata"]["notes"].as_array().cloned().unwrap_or_default();
    notes.iter().map(|note| note.as_str().unwrap().to_owned()).collect()
}

/// Whether one of the notes contains these words.
fn noted(answer: &Value, words: &str) -> bool {
    notes(answer).iter().any(|note| note.contains(words))
}

async fn violations(tester: &mut Tester) -> u64 {
    let status = tester.uses("get_connection_status", json!({})).await;
    status["statistics"]["protocol_violations"].as_u64().unwrap_or_else(|| panic!("{status:#}"))
}

#[tokio::test]
async fn a_result_that_is_not_an_object_is_a_transport_error() {
    let (mut tester, _server) = against("").await;
    for name in ["null_result", "list_result"] {
        let before = violations(&mut tester).await;
        let answer = call(&mut tester, name).await;
        assert_eq!(answer["error"]["type"], "transport_error", "{answer:#}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("tools/call") && message.contains("must be an object"), "{message}");
        assert_eq!(answer["tool_call"]["execution"]["success"], false);
        assert_eq!(violations(&mut tester).await, before + 1);
    }
    // The connection still works.
    assert_eq!(call(&mut tester, "fine").await["success"], true);
}

#[tokio::test]
async fn a_result_without_proper_content_is_noted_with_the_rule() {
    let (mut tester, _server) = against("").await;
    assert_eq!(violations(&mut tester).await, 0);
    let answer = call(&mut tester, "fine").await;
    assert_eq!((notes(&answer), violations(&mut tester).await), (Vec::new(), 0));
    let cases: [(&str, &[&str]); 5] = [
        ("no_content", &["the result of tools/call has no `content`"]),
        ("text_content", &["`content` must be a list"]),
        (
            "bad_block",
            &[
                "content[0]: `text` is missing",
                "content[1]: `type` is missing",
                "content[2]: `mimeType` is missing",
            ],
        ),
        ("bad_structured", &["`structuredContent` must be an object"]),
        ("bad_error_flag", &["`isError` must be true or false"]),
    ];
    let mut count = 0;
    for (name, words) in cases {
        let answer = call(&mut tester, name).await;
        assert_eq!(answer["success"], true, "{answer:#}");
        for words in words {
            assert!(noted(&answer, words), "{name}: {:?}", notes(&answer));
        }
        count += words.len() as u64;
        assert_eq!((notes(&answer).len(), violations(&mut tester).await), (words.len(), count), "{answer:#}");
    }
}

#[tokio::test]
async fn a_stray_line_on_standard_output_is_noted() {
    let (mut tester, _server) = against("").await;
    let answer = call(&mut tester, "stray_line").await;
    assert_eq!(answer["success"], true, "{answer:#}");
    assert!(noted(&answer, "standard output must contain only JSON-RPC messages"), "{answer:#}");
    assert!(noted(&answer, "Starting up..."), "{answer:#}");
    let status = tester.uses("get_connection_status", json!({})).await;
    assert_eq!(status["statistics"]["protocol_violations"], 1);
    assert!(status["protocol_violations"][0].as_str().unwrap().contains("Starting up..."), "{status:#}");
}

#[tokio::test]
async fn wrong_ids_are_named_and_not_waited_for() {
    let (mut tester, _server) = against("").await;
    for (name, words) in [("wrong_id", "matches no request"), ("text_id", "matches no request")] {
        let answer = call(&mut tester, name).await;
        assert_eq!(answer["error"]["type"], "transport_error", "{name}: {answer:#}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{name}: {message}");
        assert!(answer["connection"]["server_url"].is_string(), "{answer:#}");
    }
    let mut all = Vec::new();
    for name in ["twice", "fine"] {
        all.extend(notes(&call(&mut tester, name).await));
    }
    assert!(all.iter().any(|note| note.contains("answered twice")), "{all:?}");
    assert_eq!(violations(&mut tester).await, 3);
}

#[tokio::test]
async fn bad_notifications_and_errors_are_noted() {
    let (mut tester, _server) = against("").await;
    let answer = call(&mut tester, "bad_notification").await;
    assert_eq!(answer["success"], true);
    assert!(
        noted(&answer, "`jsonrpc` must be \"2.0\"") && noted(&answer, "`params` must be an object"),
        "{answer:#}"
    );
    let answer = call(&mut tester, "bad_progress").await;
    assert!(
        noted(&answer, "notifications/progress") && noted(&answer, "notifications/message"),
        "{answer:#}"
    );
    let answer = call(&mut tester, "bad_error").await;
    assert_eq!(answer["success"], false);
    assert!(noted(&answer, "an error must have an integer `code` and a string `message`"), "{answer:#}");
    assert_eq!(violations(&mut tester).await, 5);
}

#[tokio::test]
async fn violations_in_lists_are_named_as_in_calls() {
    let (mut tester, _server) = against("odd").await;
    let answer = tester.uses("list_tools", json!({})).await;
    assert_eq!(answer["success"], true, "{answer:#}");
    let rules = [
        "the input schema of uncompilable cannot be compiled",
        "the output schema of bad_output cannot be compiled",
        "tools[17] (no_schema): `inputSchema` is missing",
        "tools[18] (array_schema): the `type` of `inputSchema` must be \"object\"",
        "tools[19]: `name` is missing",
        "tools[20] (fine): another tool has the same name",
    ];
    for rule in rules {
        assert!(noted(&answer, rule), "{rule}: {:#?}", notes(&answer));
    }
    assert_eq!(violations(&mut tester).await, rules.len() as u64, "{:#?}", notes(&answer));
    // The same when it is called.
    let answer = call(&mut tester, "uncompilable").await;
    let rule = "the input schema of uncompilable cannot be compiled, so nothing was checked";
    assert!(answer["success"] == true && noted(&answer, rule), "{answer:#}");
    assert_eq!(violations(&mut tester).await, rules.len() as u64 + 1);
    let answer = tester.uses("list_prompts", json!({})).await;
    assert!(noted(&answer, "prompts[1]: `name` is missing"), "{answer:#}");
    let answer = tester.uses("list_resources", json!({})).await;
    assert!(noted(&answer, "resources[1] (nowhere): `uri` is missing"), "{answer:#}");
    let answer = tester.uses("get_prompt", json!({"name": "empty"})).await;
    assert!(noted(&answer, "the result of prompts/get has no `messages`"), "{answer:#}");
    let answer = tester.uses("read_resource", json!({"uri": "odd://1"})).await;
    assert!(noted(&answer, "the result of resources/read has no `contents`"), "{answer:#}");
    let (mut tester, _server) = against("null_list").await;
    let error = tester.fails("transport_error", "list_tools", json!({})).await;
    assert!(error["message"].as_str().unwrap().contains("tools/list"), "{error:#}");
    assert_eq!(violations(&mut tester).await, 1);
    let (mut tester, _server) = against("no_list").await;
    let answer = tester.uses("list_tools", json!({})).await;
    assert!(noted(&answer, "the result of tools/list has no `tools`"), "{answer:#}");
}

#[tokio::test]
async fn what_is_no_message_is_noted_over_http_too() {
    let server = start_in_process(Kind::Noisy).await.unwrap();
    let mut tester = Tester::start().await;
    tester.connect(&server.url).await;
    let answer = call(&mut tester, "echo").await;
    assert_eq!(answer["success"], true, "{answer:#}");
    let status = tester.uses("get_connection_status", json!({})).await;
    assert!(status["statistics"]["protocol_violations"].as_u64().unwrap() > 0, "{status:#}");
}

#[tokio::test]
async fn a_lost_http_session_is_a_transport_error_with_its_connection() {
    let server = start_in_process(Kind::LegacyOnly).await.unwrap();
    let address = server.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    // The responses of the TypeScript SDK, the Python SDK and plain servers.
    let responses = [
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#,
        ),
        (
            "404 Not Found",
            r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#,
        ),
        ("400 Bad Request", "Invalid or missing session ID"),
        ("404 Not Found", ""),
    ];
    for (status, body) in responses {
        let web = Web::start(What::Server(address.clone())).await;
        let mut tester = Tester::start().await;
        tester.connect(&web.url()).await;
        call(&mut tester, "echo").await;
        web.switch(Web::answer(status, "content-type: application/json\r\n", body));
        let lost = async {
            loop {
                let answer = call(&mut tester, "echo").await;
                // The open connection breaks first.
                if answer["error"]["message"].as_str().is_some_and(|message| message.contains("session")) {
                    return answer;
                }
            }
        };
        let answer = toolyard_testkit::harness::within_timeout("the session to be lost", lost).await;
        assert_eq!(answer["error"]["type"], "transport_error", "{status} {body}: {answer:#}");
        assert_eq!(answer["connection"]["server_url"], web.url(), "{answer:#}");
        assert_eq!(tester.uses("get_connection_status", json!({})).await["connected"], false);
        // Nothing prevents the next connection.
        tester.connect(&server.url).await;
    }
}

#[tokio::test]
async fn every_error_while_connected_has_the_connection() {
    let (mut tester, server) = against("").await;
    let url = format!("python3 '{}' ", server.path("server.py").display());
    let wrong: [(&str, Value); 9] = [
        ("connect_to_server", json!({"url": "http://127.0.0.1:9/mcp"})),
        ("connect_to_server", json!({})),
        ("call_tool", json!({"name": 5, "arguments": {}})),
        ("call_tool", json!({"arguments": {}})),
        ("call_tool", json!({"name": "unknown", "arguments": {}})),
        ("call_tool", json!({"name": "null_result", "arguments": {}})),
        ("read_resource", json!({})),
        ("get_prompt", json!({"name": "unknown"})),
        ("get_prompt", json!({"name": "empty", "arguments": {"a": 1}})),
    ];
    for (tool, arguments) in wrong {
        let answer = tester.uses(tool, arguments.clone()).await;
        assert_eq!(answer["success"], false, "{tool} {arguments}");
        assert_eq!(answer["connection"]["server_url"], url, "{tool} {arguments}: {answer:#}");
    }
}

#[tokio::test]
async fn only_calls_that_reached_the_server_are_counted() {
    let server = start_in_process(Kind::LegacyOnly).await.unwrap();
    let address = server.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let web = Web::start(What::Server(address)).await;
    let mut tester = Tester::start().await;
    tester.connect(&web.url()).await;
    let called = async |tester: &mut Tester| {
        tester.uses("get_connection_status", json!({})).await["statistics"]["tools_called"].as_u64().unwrap()
    };
    assert_eq!(call(&mut tester, "echo").await["success"], true);
    assert_eq!(called(&mut tester).await, 1);
    assert_eq!(call(&mut tester, "no_such_tool").await["error"]["type"], "tool_not_found");
    assert_eq!(called(&mut tester).await, 1);
    web.switch(Web::answer("401 Unauthorized", "www-authenticate: Bearer\r\n", ""));
    let refused =
        async { while call(&mut tester, "echo").await["error"]["details"]["http_status"] != 401 {} };
    toolyard_testkit::harness::within_timeout("the server to refuse", refused).await;
    let before = called(&mut tester).await;
    call(&mut tester, "echo").await;
    assert_eq!(called(&mut tester).await, before, "a rejected call is counted");
    let (mut tester, _server) = against("").await;
    for name in ["fine", "null_result", "bad_error"] {
        call(&mut tester, name).await;
    }
    assert_eq!(called(&mut tester).await, 3);
}

#[tokio::test]
async fn a_malformed_definition_is_as_it_came() {
    let server = start_in_process(Kind::IllTyped).await.unwrap();
    let mut tester = Tester::start().await;
    tester.connect(&server.url).await;
    let listed = tester.uses("list_tools", json!({})).await;
    let definition = &listed["malformed"][0]["definition"];
    assert!(definition.get("inputSchema").is_some(), "{definition:#}");
    assert_eq!(definition.get("input_schema"), None, "{definition:#}");
}

#[tokio::test]
async fn errors_of_get_prompt_keep_the_descriptions_of_arguments() {
    let scratch = Scratch::new();
    let mut tester = Tester::start().await;
    tester.connect(&super::demo(&scratch)).await;
    let listed = tester.uses("list_prompts", json!({})).await;
    let prompt = listed["prompts"].as_array().unwrap().iter().find(|prompt| prompt["arguments"].is_array());
    let prompt = prompt.unwrap_or_else(|| panic!("{listed:#}"));
    let arguments = json!({"name": prompt["name"], "arguments": {"nothing": 5}});
    let error = tester.fails("invalid_arguments", "get_prompt", arguments).await;
    assert_eq!(error["details"]["arguments"], prompt["arguments"], "{error:#}");
    assert!(error["details"]["arguments"][0]["description"].is_string(), "{error:#}");
    let error = tester.fails("prompt_not_found", "get_prompt", json!({"name": "nowhere"})).await;
    assert_eq!(error["details"]["available"], json!(["explain_tool"]), "{error:#}");
}

#[tokio::test]
async fn a_connection_that_failed_names_the_address() {
    let mut tester = Tester::start().await;
    let web = Web::start(Web::answer("404 Not Found", "", "no such page")).await;
    for url in ["http://127.0.0.1:9/mcp".to_owned(), web.url(), "/nowhere/server --flag".to_owned()] {
        let error = tester.fails("connection_failed", "connect_to_server", json!({"url": url})).await;
        assert!(error["message"].as_str().unwrap().contains(&url), "{error:#}");
        assert_eq!(error["details"]["server_url"], url, "{error:#}");
    }
}

#[tokio::test]
async fn a_listed_schema_comes_once_in_each_form_and_all_other_keys_byte_for_byte() {
    let server = start_in_process(Kind::UnknownKeys).await.unwrap();
    let mut tester = Tester::start().await;
    tester.connect(&server.url).await;
    let listed = tester.client.call("list_tools", json!({})).await.answer;
    let tools = listed.result()["structuredContent"]["tools"].as_array().unwrap().clone();
    for tool in &tools {
        assert_eq!((tool.get("inputSchema"), tool["input_schema"].is_object()), (None, true), "{tool:#}");
    }
    let expected = toolyard_testkit::probe::ODD_DEFINITION.replacen("\"inputSchema\"", "\"input_schema\"", 1);
    assert!(listed.text.contains(&expected), "{}", listed.text);
    // The text contains the same again, inside a string.
    let quoted = serde_json::to_string(&expected).unwrap();
    assert!(listed.text.contains(quoted.trim_matches('"')), "{}", listed.text);
    assert!(!listed.text.contains("inputSchema"), "{}", listed.text);
}
