//! OpenAPI documents served by the real binary, with and without a configuration.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use serde_json::json;
use toolyard_testkit::harness::{Client, Scratch, Server, Version, within_timeout};

use super::{SERVE, TOOLYARD};

pub(super) const DOCUMENT: &str = r#"
openapi: 3.1.0
info: {title: Pets, version: "1"}
servers: [{url: "http://localhost:1/private"}]
paths:
  /pets/{id}:
    get:
      operationId: getPet
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
        - {name: tags, in: query, style: pipeDelimited, schema: {type: array, items: {type: string}}}
      responses:
        "200": {description: a pet, content: {application/json: {schema: {type: array, items: {}}}}}
"#;

/// Answers every request with a list that contains its first line.
pub(super) fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).unwrap_or(0);
            let line = String::from_utf8_lossy(&bytes[..count]).lines().next().unwrap_or_default().to_owned();
            let body = json!([line]).to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            let _ = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
        }
    });
    url
}

/// Starts a yard with the document. Returns it with the folder of the document.
async fn serving(options: &[&str]) -> (Arc<Server>, Scratch) {
    let scratch = Scratch::new();
    std::fs::write(scratch.path("pets.yaml"), DOCUMENT).unwrap();
    let path = scratch.path("pets.yaml").to_str().unwrap().to_owned();
    let words = [&SERVE[..], &["--auth", "none", "--openapi", &path], options].concat();
    (Server::start(TOOLYARD, &words).await, scratch)
}

#[tokio::test]
async fn a_document_is_served_without_a_configuration() {
    let (server, _scratch) = serving(&["--base-url", &echo()]).await;
    let answer = server.execute("mcp__pets__get_pet", json!({"id": "a/b", "tags": ["x", "y"]})).await;
    let sent = json!({"result": ["GET /v1/pets/a%2Fb?tags=x%7Cy HTTP/1.1"]});
    assert_eq!((answer.status, &answer.json()["result"]), (200, &sent), "{}", answer.text);
    let tools = server.get("/mcp/tools").await.json();
    let tools = tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    let tools: Vec<&str> = tools.collect();
    let expected = ["inspect_tool", "search_tools", "execute_program", "mcp__pets__get_pet"];
    assert_eq!(tools, expected, "the demo yard is not served");
}

#[tokio::test]
async fn what_a_document_in_a_file_says_of_this_machine_is_not_called() {
    let (server, _scratch) = serving(&[]).await;
    let answer = server.execute("get_pet", json!({"id": "1"})).await;
    assert_eq!(answer.status, 502);
    assert_eq!(
        answer.json()["error"]["message"],
        "`get_pet` cannot be called: the document points to http://localhost:1, which is not a public address"
    );
    // The warning was logged before any call.
    let warning = "some tools cannot be called: the document points to http://localhost:1, which is not a public \
                address; if you trust this host, add it to `allow_hosts` of this server, set `base_url`, or pass \
                `--base-url`";
    within_timeout("the warning", async {
        while !server.process().await.stderr().contains(warning) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let pets = server.get("/mcp/servers").await.json();
    assert_eq!(pets["servers"][1]["warnings"], json!([warning]), "{pets}");
}

#[tokio::test]
async fn tools_that_are_not_listed_are_called_all_the_same() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path("pets.yaml"), DOCUMENT).unwrap();
    let config =
        format!("[servers.pets]\nopenapi = \"pets.yaml\"\nbase_url = \"{}\"\nlisted = false\n", echo());
    std::fs::write(scratch.path("toolyard.toml"), config).unwrap();
    let path = scratch.path("toolyard.toml").to_str().unwrap().to_owned();
    let server =
        Server::start(TOOLYARD, &[&SERVE[..], &["--auth", "none", "--config", &path]].concat()).await;
    let mut client = Client::join(&server, Version::V2026_07_28).await;
    let list = client.ask("tools/list", "{}").await.answer;
    assert_eq!(list.result()["tools"], json!([]));
    let answer = client.call("mcp__pets__get_pet", json!({"id": "1"})).await.answer;
    assert_eq!(answer.result()["structuredContent"], json!({"result": ["GET /v1/pets/1 HTTP/1.1"]}));
    assert_eq!(server.execute("get_pet", json!({"id": "1"})).await.status, 200);
}
