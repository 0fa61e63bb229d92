//! The examples of the specification, over both transports and in both eras.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Version};

use super::{Upstreams, executed, texts};

fn document() -> Value {
    serde_json::from_str(include_str!("../../../../../tests/data/spec/inspect-tool.json")).unwrap()
}

/// Returns the output of `json.dumps(result, indent=2)`, from Python itself.
fn dumps(value: &Value) -> String {
    let script = "import json, sys; sys.stdout.write(json.dumps(json.load(sys.stdin), indent=2))";
    let mut python = Command::new("python3");
    let mut child =
        python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
    child.stdin.take().unwrap().write_all(value.to_string().as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

/// Checks the definition, the three answers of `inspect_tool` and both interaction patterns.
async fn as_the_document_says(client: &mut Client) {
    let document = document();
    let listed = client.ask("tools/list", "{}").await.answer;
    assert_eq!(listed.result()["tools"][0].to_string(), document["definition"].to_string());
    let inspected = async |client: &mut Client, name: &str| {
        let answer = client.call("inspect_tool", json!({"tool_name": name})).await.answer;
        let (texts, failed) = texts(answer.result());
        assert!(!failed);
        texts.into_iter().map(ToOwned::to_owned).collect::<Vec<String>>()
    };

    let lines = inspected(client, "mcp__financial_data__query_financials").await;
    assert_eq!(lines[0], dumps(&document["found"]));
    assert_eq!(
        lines[1].lines().next().unwrap(),
        "async def query_financials(ticker: str, statement: Literal[\"income\", \"balance\", \"cashflow\"], \
         period: Literal[\"annual\", \"quarter\"] | None = None, limit: int | None = None) -> list[dict]:"
    );
    let none = inspected(client, "mcp__doc_retrieval__search_docs").await;
    assert_eq!(none[0], dumps(&document["noSchema"]));
    // A unique bare name works too.
    assert_eq!(inspected(client, "search_docs").await, none);
    let absent = &document["notFound"];
    let lines = inspected(client, absent["name"].as_str().unwrap()).await;
    assert_eq!(lines[0], absent["text"].as_str().unwrap());

    let code = "quarters = await query_financials(ticker=\"AAPL\", statement=\"income\", period=\"quarter\", limit=2)\n\
                for q in quarters:\n    print(q['revenue'])\n";
    let output = "[Script executed successfully]\n170000000000\n165300000000";
    assert_eq!(executed(client, code).await, (output.to_owned(), false));
    let code = "r = await mcp__doc_retrieval__search_docs(query=\"leave\")\nprint(type(r), r[0].keys(), sep=\"\\n\")";
    let output =
        "[Script executed successfully]\n<class 'list'>\ndict_keys(['title', 'content', 'score', 'doc_id'])";
    assert_eq!(executed(client, code).await, (output.to_owned(), false));
}

#[tokio::test]
async fn the_examples_of_the_document_hold_everywhere() {
    let upstreams = Upstreams::start("").await;
    for over in Client::BOTH {
        for version in Version::NEWEST {
            as_the_document_says(&mut upstreams.client(over, version).await).await;
        }
    }
}

#[tokio::test]
async fn names_that_are_not_there_have_close_ones_beside_the_text() {
    let upstreams = Upstreams::start("").await;
    let mut client = upstreams.client(Client::BOTH[0], Version::V2025_11_25).await;
    let answer = client
        .call("inspect_tool", json!({"tool_name": "mcp__financial_data__query_financial"}))
        .await
        .answer;
    let (texts, failed) = texts(answer.result());
    assert_eq!((texts.len(), failed), (2, false));
    assert_eq!(
        texts[0],
        "[Tool not found] 'mcp__financial_data__query_financial' is not available in execute_program"
    );
    let close = "Similar names: mcp__financial_data__query_financials, ";
    assert!(texts[1].starts_with(close), "{}", texts[1]);
}
