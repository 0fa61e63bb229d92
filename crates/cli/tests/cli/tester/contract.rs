//! The tester advertises exactly what the specification says, wherever it is served.

use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Server, Version};

use super::{SERVE, TOOLYARD, Tester, document, needing_a_connection};

/// Returns the advertised tools in the form of the specification. The line about local servers is
/// an addition.
fn expected() -> Vec<Value> {
    let document = document();
    let prefix = document["prefix"].as_str().unwrap();
    let tools = document["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| {
            json!({
                "name": tool["name"].as_str().unwrap().strip_prefix(prefix).unwrap(),
                "description": without_local(tool["description"].as_str().unwrap()),
                "inputSchema": tool["inputSchema"],
                "outputSchema": tool["returnSchema"],
            })
        })
        .collect()
}

fn without_local(description: &str) -> String {
    let lines = description.lines().filter(|line| !line.starts_with("For local servers, "));
    lines.collect::<Vec<_>>().join("\n")
}

fn advertised(listed: &Value) -> Vec<Value> {
    let tools = listed["tools"].as_array().unwrap().iter().cloned();
    tools
        .map(|mut tool| {
            tool["description"] = without_local(tool["description"].as_str().unwrap()).into();
            tool
        })
        .collect()
}

#[tokio::test]
async fn the_nine_tools_are_those_of_the_document_over_stdio_and_http_in_both_eras() {
    let mut tester = Tester::start().await;
    let listed = tester.client.ask("tools/list", "{}").await.answer;
    assert_eq!(advertised(listed.result()), expected());
    let server = Server::start(TOOLYARD, &SERVE).await;
    for version in Version::NEWEST {
        let mut tester = Tester::join(&server, version).await;
        let listed = tester.client.ask("tools/list", "{}").await.answer;
        assert_eq!(advertised(listed.result()), expected(), "{version}");
    }
}

#[tokio::test]
async fn it_calls_itself_mcp_test_mcp() {
    let server = Server::start(TOOLYARD, &SERVE).await;
    let mut client = Client::join(&server.with_path("/tester/mcp"), Version::V2026_07_28).await;
    let discovered = client.ask("server/discover", "{}").await.answer;
    let info = &discovered.result()["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "mcp-test-mcp");
}

#[tokio::test]
async fn the_tester_is_no_part_of_the_yard_unless_both_are_exposed() {
    let server = Server::start(TOOLYARD, &SERVE).await;
    let mut client = Client::join(&server, Version::V2026_07_28).await;
    let names = |listed: &Value| -> Vec<String> {
        let tools = listed["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let of_the_yard = names(client.ask("tools/list", "{}").await.answer.result());
    assert!(!of_the_yard.contains(&"connect_to_server".to_owned()), "{of_the_yard:?}");
    let (version, both) = (Version::V2025_11_25, ["stdio", "--expose", "tools,tester"]);
    let line = toolyard_testkit::harness::Line::start(TOOLYARD, &both, version);
    let mut client = Client::over_stdio(line, version).await;
    let all = names(client.ask("tools/list", "{}").await.answer.result());
    assert_eq!(all.len(), of_the_yard.len() + 9, "{all:?}");
}

#[tokio::test]
async fn without_a_connection_everything_says_so() {
    let mut tester = Tester::start().await;
    for (tool, arguments) in needing_a_connection() {
        let error = tester.fails("not_connected", tool, arguments).await;
        assert_eq!(error["suggestion"], "call connect_to_server first", "{tool}");
    }
    let status = tester.uses("get_connection_status", json!({})).await;
    assert_eq!(status["connected"], false);
    let none = json!({
        "tools_called": 0, "resources_read": 0, "prompts_retrieved": 0, "protocol_violations": 0,
    });
    assert_eq!(status["statistics"], none);
}
