//! Servers that break after connecting: the right error, in time, and the next connection works.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolyard_testkit::harness::{Scratch, within_timeout};
use toolyard_testkit::odd::{Kind, start_in_process};
use toolyard_testkit::web::{Web, What};

use super::{Tester, demo};

/// Every tool that sends a request to the server, with arguments that are valid for `Kind::Pages`.
fn asking() -> [(&'static str, Value); 6] {
    [
        ("list_tools", json!({})),
        ("call_tool", json!({"name": "first", "arguments": {}})),
        ("list_resources", json!({})),
        ("read_resource", json!({"uri": "odd://1"})),
        ("list_prompts", json!({})),
        ("get_prompt", json!({"name": "prompt_1"})),
    ]
}

#[tokio::test]
async fn whatever_happens_to_a_server_over_http_every_tool_says_it_in_time() {
    let server = start_in_process(Kind::Pages).await.unwrap();
    let address = server.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let wrong_id = r#"{"jsonrpc":"2.0","id":"another","result":{}}"#;
    let half = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{\"json";
    let cut = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"json";
    let cases = [
        (
            "transport_error",
            Web::answer("200 OK", "content-type: text/html\r\n", "<h1>hello</h1>"),
            json!({}),
        ),
        ("transport_error", Web::answer("200 OK", "content-type: application/json\r\n", wrong_id), json!({})),
        (
            "transport_error",
            Web::answer("401 Unauthorized", "www-authenticate: Bearer\r\n", ""),
            json!({"http_status": 401}),
        ),
        ("transport_error", Web::answer("403 Forbidden", "", "go away"), json!({"http_status": 403})),
        (
            "transport_error",
            Web::answer("302 Found", "location: /elsewhere\r\n", ""),
            json!({"http_status": 302}),
        ),
        (
            "transport_error",
            Web::answer("502 Bad Gateway", "", "no backend"),
            json!({"http_status": 502, "body": "no backend"}),
        ),
        ("transport_error", What::Says(half.to_owned()), json!({})),
        ("transport_error", What::Says(cut.to_owned()), json!({})),
        ("transport_error", What::Says("what?\r\n".to_owned()), json!({})),
        ("timeout", What::Silence, json!({})),
    ];
    let mut tester = Tester::start().await;
    for (kind, what, details) in cases {
        let web = Web::start(What::Server(address.clone())).await;
        tester.connect(&web.url()).await;
        // The known tools must not prevent the call.
        tester.uses("list_tools", json!({})).await;
        web.switch(what.clone());
        // Open connections break, which the tester notices a moment later.
        tokio::time::sleep(Duration::from_millis(200)).await;
        for (tool, arguments) in asking() {
            let began = Instant::now();
            let error = tester.fails(kind, tool, arguments).await;
            assert!(began.elapsed() < Duration::from_secs(10), "{tool} {what:?} took {:?}", began.elapsed());
            for (key, value) in details.as_object().unwrap() {
                assert_eq!(&error["details"][key], value, "{tool} {what:?}: {error:#}");
            }
        }
        let left = tester.uses("disconnect", json!({})).await;
        assert_eq!(left["success"], true, "{left:#}");
    }
}

#[tokio::test]
async fn a_server_over_http_that_is_gone_is_not_connected_any_more_and_needs_no_disconnect() {
    let server = start_in_process(Kind::Pages).await.unwrap();
    let address = server.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let web = Web::start(What::Server(address)).await;
    let mut tester = Tester::start().await;
    tester.connect(&web.url()).await;
    drop(web);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let error = tester.fails("transport_error", "list_tools", json!({})).await;
    assert!(error["message"].as_str().unwrap().contains("refused"), "{error:#}");
    let status = tester.uses("get_connection_status", json!({})).await;
    assert_eq!(status["connected"], false);
    assert!(status["lost"].as_str().unwrap().contains("refused"), "{status:#}");
    let scratch = Scratch::new();
    tester.connect(&demo(&scratch)).await;
    tester.calls("add", json!({"a": 1, "b": 2})).await;
}

#[tokio::test]
async fn a_dropped_session_is_reported_and_can_be_reopened() {
    let server = start_in_process(Kind::ForgetsSession).await.unwrap();
    let mut tester = Tester::start().await;
    tester.connect(&server.url).await;
    for _ in 0..10 {
        tester.calls("echo", json!({})).await;
    }
    let call = json!({"name": "echo", "arguments": {}});
    let error = tester.fails("transport_error", "call_tool", call).await;
    assert_eq!(error["details"]["http_status"], 404, "{error:#}");
    tester.connect(&server.url).await;
    tester.calls("echo", json!({})).await;
}

#[tokio::test]
async fn a_process_that_dies_is_told_with_its_exit_code_and_last_words() {
    let scratch = Scratch::new();
    let demo = demo(&scratch);
    // The server runs until the file exists, and then exits with a message.
    let goodbye = scratch.path("goodbye");
    let script = format!(
        "exec 3<&0\n{demo} <&3 & server=$!\nwhile [ ! -e '{0}' ]; do sleep 0.05; done\nkill -9 $server\necho farewell >&2\nexit 9\n",
        goodbye.display()
    );
    let path = scratch.file("server.sh", &script);
    let mut tester = Tester::start().await;
    tester.connect(&path).await;
    tester.calls("add", json!({"a": 1, "b": 2})).await;
    std::fs::write(&goodbye, "").unwrap();
    let gone = async {
        while tester.uses("get_connection_status", json!({})).await["connected"] == true {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within_timeout("the server to be gone", gone).await;
    for (tool, arguments) in asking() {
        let error = tester.fails("transport_error", tool, arguments).await;
        assert_eq!(error["details"]["exit_code"], 9, "{tool}: {error:#}");
        assert_eq!(error["details"]["stderr"], json!(["farewell"]), "{tool}: {error:#}");
        assert!(error["message"].as_str().unwrap().contains("exited with code 9"), "{tool}: {error:#}");
    }
    tester.connect(&demo).await;
    tester.calls("add", json!({"a": 1, "b": 2})).await;
}

#[tokio::test]
async fn a_call_that_is_never_answered_times_out_and_others_go_on() {
    let server = start_in_process(Kind::NeverAnswers).await.unwrap();
    let mut tester = Tester::start().await;
    tester.connect(&server.url).await;
    let answer = tester.uses("call_tool", json!({"name": "never", "arguments": {}})).await;
    assert_eq!(answer["error"]["type"], "timeout");
    let execution = &answer["tool_call"]["execution"];
    assert_eq!(execution["success"], false);
    assert!(execution["duration_ms"].as_u64().unwrap() >= 1_000, "{execution:#}");
    assert!(answer["metadata"]["request_time_ms"].as_u64().unwrap() >= 1_000);
    assert_eq!(tester.uses("list_tools", json!({})).await["success"], true);
}

#[tokio::test]
async fn an_error_of_the_tool_and_one_of_the_server_are_execution_errors_with_everything_they_said() {
    let scratch = Scratch::new();
    let mut tester = Tester::start().await;
    tester.connect(&demo(&scratch)).await;
    let call = json!({"name": "fail", "arguments": {"message": "on purpose"}});
    let answer = tester.uses("call_tool", call).await;
    assert_eq!(answer["error"]["type"], "execution_error");
    assert!(answer["error"]["message"].as_str().unwrap().contains("on purpose"), "{answer:#}");
    assert_eq!(answer["tool_call"]["result"]["isError"], true);
    assert_eq!(answer["tool_call"]["execution"]["success"], false);
    // A server without resources returns an error. Its lists show that it has none.
    tester.uses("disconnect", json!({})).await;
    let server = start_in_process(Kind::LegacyOnly).await.unwrap();
    tester.connect(&server.url).await;
    let error = tester.fails("resource_not_found", "read_resource", json!({"uri": "odd://1"})).await;
    assert_eq!(error["details"]["rpc_error"]["code"], -32601);
    let listed = tester.uses("list_resources", json!({})).await;
    assert_eq!(
        (&listed["resources"], &listed["metadata"]["notes"]),
        (&json!([]), &json!(["the server has no resources"]))
    );
}
