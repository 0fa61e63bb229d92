//! The REST front of the real binary: the demo yard, and another yard behind it.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde_json::json;
use toolyard_testkit::harness::{Client, Scratch, Server, Version};
use toolyard_testkit::odd::{Kind, start_in_process};

use super::{SERVE, TOOLYARD};

#[tokio::test]
async fn the_demo_yard_is_served_over_plain_http() {
    let server = Server::start(TOOLYARD, &[&SERVE[..], &["--auth", "none"]].concat()).await;
    let tools = server.get("/mcp/tools").await.json();
    assert_eq!((&tools["version"], tools["tools"].as_array().unwrap().len()), (&json!("1.0"), 11));
    let tool = server.get("/mcp/tools/convert_temperature").await.json();
    let metadata = json!({"category": "numbers", "tags": ["celsius", "fahrenheit", "kelvin"]});
    assert_eq!((&tool["title"], &tool["metadata"]), (&json!("Convert temperature"), &metadata));
    let added = server.execute("add", json!({"a": 2, "b": 3})).await;
    assert_eq!((added.status, &added.json()["result"]), (200, &json!({"sum": 5.0})));
    let failed = server.execute("fail", json!({"message": "on purpose"})).await;
    assert_eq!(failed.refusal(), (500, "EXECUTION_ERROR".to_owned()));
    assert_eq!(failed.json()["error"]["message"], "on purpose");
    let below = server
        .execute("convert_temperature", json!({"value": -300, "from": "celsius", "to": "kelvin"}))
        .await;
    assert_eq!(below.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    assert_eq!(below.json()["error"]["details"]["reason"], "is below absolute zero");
    let words = server.execute("stream_words", json!({"text": "one two"})).await.json();
    assert_eq!((&words["chunks"], &words["result"]), (&json!(["one", "two"]), &json!("2 words")));
    let swatch = server.execute("draw_swatch", json!({"color": "#ff0000"})).await.json()["result"].clone();
    assert_eq!((&swatch["type"], &swatch["mimeType"]), (&json!("image"), &json!("image/png")));
    let telling =
        server.listen("/mcp/tools/count_down/execute", &json!({"params": {"from": 3, "delay_ms": 1}})).await;
    let names: Vec<String> = telling.all().await.into_iter().map(|event| event.name).collect();
    assert_eq!(names, ["progress", "progress", "progress", "result"]);
    assert_eq!(server.execute("ask_name", json!({})).await.status, 501);
}

#[tokio::test]
async fn the_token_that_is_printed_opens_and_no_other() {
    let server = Server::start(TOOLYARD, &SERVE).await;
    assert_eq!(server.get("/mcp/tools").await.refusal(), (401, "AUTHENTICATION_ERROR".to_owned()));
    let token = format!("Bearer {}", server.token.as_deref().unwrap());
    let headers = [("authorization", token.as_str())];
    assert_eq!(server.request("GET", "/mcp/tools", &headers, b"").await.status, 200);
    assert_eq!(server.get("/health").await.status, 200);
}

#[tokio::test]
async fn a_yard_behind_it_and_permissions_of_the_configuration() {
    let scratch = Scratch::new();
    let demo = scratch.file("demo.toml", "demo = true\n");
    let config = scratch.file(
        "toolyard.toml",
        &format!(
            "demo = true\npermissions = []\n[servers.inner]\ncommand = \"{TOOLYARD}\"\n\
             args = [\"stdio\", \"--config\", \"{demo}\"]\n"
        ),
    );
    let server =
        Server::start(TOOLYARD, &[&SERVE[..], &["--auth", "none", "--config", &config]].concat()).await;
    let listed = server.get("/mcp/tools?server=inner&category=numbers").await.json();
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["mcp__inner__add", "mcp__inner__convert_temperature"]);
    let added = server.execute("mcp__inner__add", json!({"a": 1, "b": 2})).await;
    assert_eq!(added.json()["result"], json!({"sum": 3.0}));
    let refused = server.execute("admin_report", json!({})).await;
    assert_eq!(refused.refusal(), (403, "PERMISSION_ERROR".to_owned()));
    let servers = server.get("/mcp/servers").await.json();
    assert_eq!(servers["servers"].as_array().unwrap().len(), 3);
}

/// Starts a yard with the demo yard behind it, over stdio.
async fn serve_in_front(scratch: &Scratch, config: &str, of_server: &str) -> Arc<Server> {
    let demo = scratch.file("demo.toml", "demo = true\n");
    let server = format!(
        "[servers.inner]\ncommand = \"{TOOLYARD}\"\nargs = [\"stdio\", \"--config\", \"{demo}\"]\n{of_server}"
    );
    serve(scratch, &format!("{config}{server}")).await
}

#[tokio::test]
async fn permissions_of_a_tool_survive_a_second_yard_and_can_only_be_added_to() {
    let scratch = Scratch::new();
    for (held, of_server, add, report) in [
        ("[]", "", 200, 403),
        ("[\"admin\"]", "", 200, 200),
        // The configuration requires more than the server does, and the server cannot relax it.
        ("[\"admin\"]", "permissions = [\"staff\"]\n", 403, 403),
        ("[\"staff\"]", "permissions = [\"staff\"]\n", 200, 403),
        ("[\"admin\", \"staff\"]", "permissions = [\"staff\"]\n", 200, 200),
    ] {
        let server = serve_in_front(&scratch, &format!("permissions = {held}\n"), of_server).await;
        let names = server.get("/mcp/tools").await.text;
        assert_eq!(names.contains("mcp__inner__admin_report"), report == 200, "{held} {of_server}: {names}");
        let added = server.execute("mcp__inner__add", json!({"a": 1, "b": 2})).await;
        assert_eq!(added.status, add, "{held} {of_server}: {}", added.text);
        let reported = server.execute("mcp__inner__admin_report", json!({})).await;
        assert_eq!(reported.status, report, "{held} {of_server}: {}", reported.text);
    }
    let server = serve_in_front(&scratch, "", "permissions = [\"staff\"]\n").await;
    let shown = server.get("/mcp/tools/mcp__inner__admin_report").await.json();
    assert_eq!(shown["permissions"], json!(["staff", "admin"]));
}

#[tokio::test]
async fn every_version_of_a_tool_can_be_asked_for_also_through_a_second_yard() {
    let scratch = Scratch::new();
    let alone = serve(&scratch, "demo = true\n").await;
    let front = serve_in_front(&scratch, "", "").await;
    let words = |server: &Arc<Server>, tool: &str, version: &str| {
        let body = json!({"params": {"text": "one two"}, "context": {"version": version}});
        let (server, path) = (Arc::clone(server), format!("/mcp/tools/{tool}/execute"));
        async move { server.post(&path, &body).await }
    };
    for (server, tool) in [(&alone, "stream_words"), (&front, "mcp__inner__stream_words")] {
        let shown = server.get(&format!("/mcp/tools/{tool}")).await.json();
        assert_eq!(shown["metadata"]["version"], "2.0.0", "{shown}");
        assert_eq!(shown["metadata"]["deprecates"], "1.0.0", "{shown}");
        let listed = json!([{"version": "2.0.0"}, {"version": "1.0.0", "deprecatedBy": "2.0.0"}]);
        assert_eq!(shown["versions"], listed, "{shown}");
        let newest = words(server, tool, "2.0.0").await;
        assert_eq!((newest.status, newest.header("deprecation")), (200, None), "{}", newest.text);
        assert!(newest.text.contains(r#""one""#), "{}", newest.text);
        let old = words(server, tool, "1.0.0").await;
        assert_eq!((old.status, &old.json()["result"]), (200, &json!("2 words")), "{}", old.text);
        let headers = (old.header("deprecation"), old.header("x-tool-successor-version"));
        assert_eq!(headers, (Some("true"), Some("2.0.0")));
        assert_eq!(old.json().get("chunks"), None);
        let none = words(server, tool, "3.0.0").await;
        assert_eq!(none.refusal(), (404, "TOOL_NOT_FOUND".to_owned()));
        let suggestion = none.json()["error"]["details"]["suggestion"].clone();
        assert_eq!(suggestion, "use one of the versions 2.0.0, 1.0.0");
    }
    // Over MCP, the version is requested in `_meta`.
    let mut client = Client::join(&front, Version::V2025_11_25).await;
    let call = |version: &str| {
        json!({"name": "mcp__inner__stream_words", "arguments": {"text": "one two"},
               "_meta": {"dev.toolyard/version": version}})
    };
    let old = client.ask("tools/call", &call("1.0.0").to_string()).await.answer;
    assert_eq!(old.result()["content"], json!([{"type": "text", "text": "2 words"}]));
    let newest = client.ask("tools/call", &call("2.0.0").to_string()).await.answer;
    assert_eq!(newest.result()["content"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn metadata_of_a_tool_survives_a_second_yard() {
    let scratch = Scratch::new();
    let alone = serve(&scratch, "demo = true\n").await;
    let front = serve_in_front(&scratch, "", "").await;
    for tool in ["convert_temperature", "stream_words", "add"] {
        let here = alone.get(&format!("/mcp/tools/{tool}")).await.json()["metadata"].clone();
        assert!(here["category"].is_string(), "{here}");
        assert_eq!(front.get(&format!("/mcp/tools/mcp__inner__{tool}")).await.json()["metadata"], here);
    }
}

/// Starts a yard with this configuration and without authentication.
async fn serve(scratch: &Scratch, config: &str) -> Arc<Server> {
    let config = scratch.file("toolyard.toml", config);
    Server::start(TOOLYARD, &[&SERVE[..], &["--auth", "none", "--config", &config]].concat()).await
}

#[tokio::test]
async fn what_is_left_of_a_rate_is_in_every_answer() {
    let scratch = Scratch::new();
    let rate = "demo = true\n[limits.rate]\nper_second = 0.01\nburst = 2.0\n";
    let server = serve(&scratch, rate).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let answer = server.execute("add", json!({"a": 1, "b": 2})).await;
        let number = |name: &str| answer.header(name).map(|value| value.parse::<u64>().unwrap());
        assert!(number("ratelimit-reset").is_some_and(|seconds| (1..=200).contains(&seconds)));
        seen.push((answer.status, number("ratelimit-limit"), number("ratelimit-remaining")));
        assert_eq!(answer.status == 429, number("retry-after").is_some());
    }
    assert_eq!(seen, [(200, Some(2), Some(1)), (200, Some(2), Some(0)), (429, Some(2), Some(0))]);
}

#[tokio::test]
async fn results_that_break_their_promise_are_told_or_refused_as_configured() {
    let scratch = Scratch::new();
    let odd = start_in_process(Kind::WrongOutput).await.unwrap();
    for (mode, status) in [("off", 200), ("warn", 200), ("enforce", 500)] {
        let config = format!("check_results = \"{mode}\"\n[servers.odd]\nurl = \"{}\"\n", odd.url);
        let answer = serve(&scratch, &config).await.execute("mcp__odd__wrong", json!({})).await;
        assert_eq!(answer.status, status, "{mode}: {}", answer.text);
        let violations = answer.json()["metadata"]["resultViolations"].clone();
        assert_eq!(violations.is_array(), mode == "warn", "{mode}: {}", answer.text);
        if status == 200 {
            assert_eq!(answer.json()["result"], json!({"n": "one"}), "{mode}");
        }
    }
}

#[tokio::test]
async fn a_server_that_a_caller_is_not_shown_is_not_there_for_them() {
    let scratch = Scratch::new();
    let odd = start_in_process(Kind::Pages).await.unwrap();
    let digest = |secret: &str| {
        let digest = ring::digest::digest(&ring::digest::SHA256, secret.as_bytes());
        HEXLOWER.encode(digest.as_ref())
    };
    let config = scratch.file(
        "toolyard.toml",
        &format!(
            "demo = true\n[servers.odd]\nurl = \"{}\"\n\
             [[tokens]]\nname = \"some\"\nsha256 = \"{}\"\nservers = [\"demo\"]\n\
             [[tokens]]\nname = \"all\"\nsha256 = \"{}\"\npermissions = [\"*\"]\n",
            odd.url,
            digest("some"),
            digest("all")
        ),
    );
    let server = Server::start(TOOLYARD, &[&SERVE[..], &["--config", &config]].concat()).await;
    let as_who = async |who: &str, method: &str, path: &str| {
        let token = format!("Bearer {who}");
        let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
        server.request(method, path, &headers, b"{}").await.read_body().await
    };
    // Until the server has started, its tools are unknown.
    while as_who("all", "GET", "/ready").await.status != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let servers = async |who: &str| {
        let listed = as_who(who, "GET", "/mcp/servers").await.json();
        let names = listed["servers"].as_array().unwrap().iter().map(|server| server["name"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(servers("all").await, ["demo", "programs", "odd"]);
    assert_eq!(servers("some").await, ["demo"]);
    let execute = "/mcp/tools/mcp__odd__first/execute";
    assert_eq!(as_who("all", "POST", execute).await.status, 200);
    assert_eq!(as_who("some", "POST", execute).await.refusal(), (404, "TOOL_NOT_FOUND".to_owned()));
    assert_eq!(as_who("some", "POST", "/servers/odd/mcp").await.status, 404);
    assert_ne!(as_who("all", "POST", "/servers/odd/mcp").await.status, 404);
}

#[tokio::test]
async fn pages_of_configured_origins_may_use_it_and_no_others() {
    let scratch = Scratch::new();
    let config = scratch.file("toolyard.toml", "demo = true\norigins = [\"https://app.example\"]\n");
    let server = Server::start(TOOLYARD, &[&SERVE[..], &["--config", &config]].concat()).await;
    let asks = async |method: &str, origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization,x-custom"),
        ];
        let answer = server.request(method, "/mcp/tools/add/execute", &headers, b"").await.read_body().await;
        let header = |name: &str| answer.header(name).map(ToOwned::to_owned);
        (answer.status, header("access-control-allow-origin"), header("access-control-allow-headers"))
    };
    let app = Some("https://app.example".to_owned());
    let headers = Some("authorization,x-custom".to_owned());
    // A browser sends the preflight request without a token and learns what the page may do.
    assert_eq!(asks("OPTIONS", "https://app.example").await, (204, app.clone(), headers));
    // The page itself needs a token, and may read the refusal.
    assert_eq!(asks("POST", "https://app.example").await, (401, app, None));
    assert_eq!(asks("OPTIONS", "https://evil.example").await, (403, None, None));
    // A local page that is not configured is not rejected, but its browser gets no CORS headers.
    assert_eq!(asks("OPTIONS", "http://localhost:3000").await, (401, None, None));
}

/// The tools of the specification's examples, as a server for the shipped binary.
async fn examples() -> (String, tokio_util::task::AbortOnDropHandle<()>) {
    let settings = toolyard_serve::ServeSettings {
        listen: ([127, 0, 0, 1], 0).into(),
        auth: toolyard_serve::ServeAuthSettings {
            auth: toolyard_serve::Auth::None(toolyard_hub::Principal::owner()),
            hosts: Vec::new(),
            origins: Vec::new(),
        },
        mcp: toolyard_serve::McpSettings::default(),
        endpoint: toolyard_serve::EndpointSettings::default(),
        connections: toolyard_serve::ConnectionLimits::default(),
        builtin_endpoints: Vec::new(),
        control: toolyard_serve::ControlSettings::default(),
        drain: std::time::Duration::from_secs(1),
    };
    let yard = toolyard_hub::Yard::with_sources([toolyard_testkit::workbench::source()]);
    let bound = toolyard_serve::bind(yard, settings).await.unwrap();
    let url = format!("http://{}/mcp", bound.address());
    let serving = tokio::spawn(bound.serve(tokio_util::sync::CancellationToken::new()));
    (url, tokio_util::task::AbortOnDropHandle::new(serving))
}

#[tokio::test]
async fn the_examples_of_the_protocol_are_answered_as_it_shows_them() {
    let (url, _serving) = examples().await;
    let scratch = Scratch::new();
    let config = scratch.file("toolyard.toml", &format!("[servers.code]\nurl = \"{url}\"\n"));
    let server = Server::start(TOOLYARD, &[&SERVE[..], &["--config", &config]].concat()).await;
    let token = format!("Bearer {}", server.token.as_deref().unwrap());
    let headers = [("authorization", token.as_str()), ("x-mcp-version", "1.0")];

    let listed = server.request("GET", "/mcp/tools", &headers, b"").await.read_body().await.json();
    let tool =
        listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "mcp__code__analyze_code");
    let tool = tool.unwrap();
    assert_eq!(listed["version"], "1.0");
    assert_eq!(tool["description"], "Analyzes source code for quality and patterns");
    assert_eq!(tool["inputSchema"]["required"], json!(["filePath"]));

    let execute = async |body: serde_json::Value| {
        server.post_with("/mcp/tools/analyze_code/execute", &headers, &body).await
    };
    let context = json!({"sessionId": "session-123", "timeout": 30000});
    let done = execute(json!({"params": {"filePath": "/src/app.ts"}, "context": context})).await;
    assert_eq!((done.status, &done.json()["success"]), (200, &json!(true)));
    let analysis = json!({"analysis": {"complexity": 5.0, "lines": 150, "issues": []}});
    assert_eq!(done.json()["result"], analysis);
    let metadata = done.json()["metadata"].clone();
    assert!(metadata["executionId"].as_str().unwrap().starts_with("exec-"), "{metadata}");
    assert!(
        metadata["duration"].is_u64() && metadata["timestamp"].as_str().unwrap().ends_with('Z'),
        "{metadata}"
    );

    let missing = execute(json!({"params": {}})).await;
    assert_eq!(missing.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    let details = missing.json()["error"]["details"].clone();
    assert_eq!((&details["field"], &details["provided"]), (&json!("filePath"), &json!(null)));

    let unknown = server.post_with("/mcp/tools/analyse/execute", &headers, &json!({"params": {}})).await;
    assert_eq!(unknown.refusal(), (404, "TOOL_NOT_FOUND".to_owned()));
    let other = [("authorization", token.as_str()), ("x-mcp-version", "2.0")];
    assert_eq!(server.request("GET", "/mcp/tools", &other, b"").await.status, 400);
    assert_eq!(server.get("/mcp/tools").await.refusal(), (401, "AUTHENTICATION_ERROR".to_owned()));
}
