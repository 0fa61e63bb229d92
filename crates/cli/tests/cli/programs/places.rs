//! Where the three tools are available, and who may use which tools from a program.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Process, Scratch, Server, Version};

use super::{SERVE, THREE, TOOLYARD, Upstreams, executed, names};

#[tokio::test]
async fn the_yard_does_not_show_them_and_their_own_endpoint_shows_nothing_else() {
    let upstreams = Upstreams::start("").await;
    let server = upstreams.serve().await;
    let mut yard = Client::join(&server, Version::V2026_07_28).await;
    let listed = names(&mut yard).await;
    assert!(listed.contains(&"mcp__doc_retrieval__search_docs".to_owned()), "{listed:?}");
    assert!(!THREE.iter().any(|name| listed.contains(&(*name).to_owned())), "{listed:?}");
    let refused = yard.call("execute_program", json!({"code": "print(1)"})).await.answer;
    assert_eq!(refused.code(), -32602);
    for version in Version::NEWEST {
        let mut programs = Client::join(&server.with_path("/programs/mcp"), version).await;
        assert_eq!(names(&mut programs).await, THREE);
        let refused = programs.call("mcp__doc_retrieval__search_docs", json!({"query": "x"})).await.answer;
        assert_eq!(refused.code(), -32602);
    }
}

#[tokio::test]
async fn rest_shows_and_runs_them() {
    let upstreams = Upstreams::start("").await;
    let server = upstreams.serve().await;
    let listed = server.get("/mcp/tools?server=programs").await.json();
    let shown: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(shown, THREE);
    let done =
        server.execute("execute_program", json!({"code": "print(len(await search_docs(query='x')))"})).await;
    assert_eq!((done.status, &done.json()["result"]), (200, &json!("[Script executed successfully]\n2")));
    let failed = server.execute("execute_program", json!({"code": "1/0"})).await;
    assert_eq!(failed.refusal(), (500, "EXECUTION_ERROR".to_owned()));
    assert!(failed.text.contains("ZeroDivisionError"), "{}", failed.text);
}

#[tokio::test]
async fn over_stdio_they_may_stand_alone_or_beside_others() {
    let upstreams = Upstreams::start("").await;
    let version = Version::V2025_11_25;
    assert_eq!(names(&mut upstreams.exposing("programs", version).await).await, THREE);
    let mut both = upstreams.exposing("tools,programs", version).await;
    let listed = names(&mut both).await;
    assert!(THREE.iter().all(|name| listed.contains(&(*name).to_owned())), "{listed:?}");
    assert!(listed.contains(&"mcp__financial_data__query_financials".to_owned()), "{listed:?}");
    // Even if both kinds of tools are exposed, a program cannot start another program.
    let code = "try:\n    await call_tool('execute_program', {'code': 'print(1)'})\nexcept ToolError as error:\n    \
                print(error.type, error)";
    let (text, failed) = executed(&mut both, code).await;
    assert!(!failed && text.contains("forbidden"), "{text}");
    let listed = names(&mut upstreams.exposing("tester,programs", version).await).await;
    assert_eq!((listed.len(), listed.contains(&"connect_to_server".to_owned())), (12, true), "{listed:?}");
}

#[tokio::test]
async fn where_they_are_switched_off_they_are_nowhere() {
    let upstreams = Upstreams::start("[programs]\nenabled = false\n").await;
    let server = upstreams.serve().await;
    assert_eq!(server.get("/mcp/tools/execute_program").await.status, 404);
    assert_eq!(server.post("/programs/mcp", &json!({})).await.status, 404);
    let (mut process, _stdin, _stdout) =
        Process::start(TOOLYARD, &["stdio", "--expose", "programs", "--config", &upstreams.config]);
    assert_eq!(process.exit().await, Some(2));
    assert!(process.stderr().contains("programs are disabled in the configuration"), "{}", process.stderr());
}

#[tokio::test]
async fn where_there_is_no_python_the_answer_says_so_and_the_rest_works() {
    let upstreams = Upstreams::start("[programs]\npython = \"/nowhere/python3\"\n").await;
    let mut client = upstreams.exposing("programs", Version::V2025_11_25).await;
    let (text, failed) = executed(&mut client, "print(1)").await;
    assert!(failed && text.starts_with("[Script not executed] Programs are not available: "), "{text}");
    assert!(text.contains("/nowhere/python3") && text.contains("CPython 3.9 or newer"), "{text}");
    let found = client.call("search_tools", json!({"query": "documents"})).await.answer;
    assert!(found.content().contains("mcp__doc_retrieval__search_docs"), "{}", found.content());
}

#[tokio::test]
async fn a_token_is_good_for_the_same_tools_from_within_and_every_call_is_audited() {
    let scratch = Scratch::new();
    let audit = scratch.path("audit.jsonl");
    let digest = |token: &str| {
        use ring::digest::{SHA256, digest};
        HEXLOWER.encode(digest(&SHA256, token.as_bytes()).as_ref())
    };
    let more = format!(
        "[audit]\nfile = {audit:?}\n[[tokens]]\nname = \"some\"\nsha256 = \"{}\"\n\
         tools = [\"execute_program\", \"search_tools\", \"inspect_tool\", \"mcp__doc_retrieval__*\"]\n\
         [[tokens]]\nname = \"none\"\nsha256 = \"{}\"\nservers = [\"doc_retrieval\"]\n",
        digest("some-token-of-some-length"),
        digest("none-token-of-some-length")
    );
    let upstreams = Upstreams::start(&more).await;
    let server = Server::start(TOOLYARD, &[&SERVE[..], &["--config", &upstreams.config]].concat()).await;
    let endpoint = server.with_path("/programs/mcp");
    let version = Version::V2025_11_25;
    let mut some = Client::join_as(&endpoint, version, Some("some-token-of-some-length".to_owned())).await;
    let code = "print(len(await search_docs(query='x')))\n\
                print([tool['name'] for tool in await search_tools('financials')])\n\
                try:\n    await call_tool('mcp__financial_data__query_financials', {'ticker': 'A', 'statement': 'income'})\n\
                except ToolError as error:\n    print(error.type, error.tool)\n";
    assert_eq!(
        executed(&mut some, code).await.0,
        "[Script executed successfully]\n2\n[]\ntool_not_found mcp__financial_data__query_financials"
    );
    let absent = some.call("inspect_tool", json!({"tool_name": "query_financials"})).await.answer;
    assert!(absent.content().starts_with("[Tool not found]"), "{}", absent.content());
    // Access to servers does not include programs.
    let mut none = Client::join_as(&endpoint, version, Some("none-token-of-some-length".to_owned())).await;
    assert_eq!(names(&mut none).await, Vec::<String>::new());

    let text = std::fs::read_to_string(&audit).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let records: Vec<String> = lines
        .iter()
        .map(|line| format!("{} {} {}", line["principal"], line["name"], line["madeBy"]).replace('"', ""))
        .collect();
    assert_eq!(
        records,
        [
            "some mcp__doc_retrieval__search_docs program",
            "some mcp__financial_data__query_financials program",
            "some execute_program caller",
            "some inspect_tool caller",
        ]
    );
    drop(upstreams.scratch);
}
