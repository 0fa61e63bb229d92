//! Configured hooks, against the real binary and an endpoint of the test.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolyard_testkit::harness::{Client, Scratch, Server, Version};

use super::TOOLYARD;

/// An endpoint that answers by a rule and records what it received.
struct Endpoint {
    url: String,
    seen: Arc<Mutex<Vec<Value>>>,
}

type Rule = fn(&Value) -> (u16, String);

impl Endpoint {
    async fn start(rule: Rule) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let seeing = Arc::clone(&seen);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(stream, rule, Arc::clone(&seeing)));
            }
        });
        Self { url, seen }
    }

    fn events(&self) -> Vec<String> {
        self.seen.lock().iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
    }
}

async fn answer(mut stream: TcpStream, rule: Rule, seen: Arc<Mutex<Vec<Value>>>) {
    let mut text = String::new();
    let mut piece = [0; 4096];
    let event: Value = loop {
        let read = stream.read(&mut piece).await.unwrap();
        text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        assert!(head.contains("x-key: t0ken"), "{head}");
        if let Ok(event) = serde_json::from_str(body) {
            break event;
        }
    };
    let (status, body) = rule(&event);
    seen.lock().push(event);
    if status == 0 {
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nlocation: /x\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
}

async fn yard(endpoint: &Endpoint, more: &str) -> Arc<Server> {
    let scratch = Scratch::new();
    let file = scratch.path("toolyard.toml");
    let hook = format!(
        "[[hooks]]\nurl = \"{}\"\nname = \"policy\"\nheaders = {{ x-key = \"t0ken\" }}\n{more}\n",
        endpoint.url
    );
    std::fs::write(&file, format!("demo = true\n{hook}")).unwrap();
    let listen = ["serve", "--json", "--listen", "127.0.0.1:0", "--config"];
    let arguments: Vec<&str> = listen.into_iter().chain([file.to_str().unwrap()]).collect();
    Server::start(TOOLYARD, &arguments).await
}

/// Returns the sum of one and two, or the text of the error.
async fn add(server: &Arc<Server>) -> Result<Value, String> {
    let mut client = Client::join(server, Version::V2026_07_28).await;
    let answer = client.call("add", json!({"a": 1, "b": 2})).await.answer;
    match answer.result()["isError"].as_bool() {
        Some(true) => Err(answer.content().to_owned()),
        _ => Ok(answer.result()["structuredContent"]["sum"].clone()),
    }
}

#[tokio::test]
async fn a_hook_is_sent_the_call_and_how_it_ended() {
    let endpoint = Endpoint::start(|_| (204, String::new())).await;
    let server = yard(&endpoint, "events = [\"before\", \"after\", \"error\"]\ntools = [\"ad*\"]").await;
    assert_eq!(add(&server).await, Ok(json!(3.0)));
    assert_eq!(endpoint.events(), ["before", "after"]);
    let seen = endpoint.seen.lock().clone();
    let mut before = seen[0].clone();
    assert_eq!(before["executionId"].as_str().unwrap().len(), "exec-".len() + 32);
    assert_eq!(before["executionId"], seen[1]["executionId"]);
    before.as_object_mut().unwrap().remove("executionId");
    assert_eq!(
        before,
        json!({
            "event": "before",
            "tool": "add",
            "server": "demo",
            "principal": "owner",
            "params": {"a": 1, "b": 2},
            "context": {"sessionId": null, "userId": null},
        })
    );
    assert_eq!(
        (&seen[1]["failed"], &seen[1]["result"]["structuredContent"]),
        (&json!(false), &json!({"sum": 3.0}))
    );
    let mut client = Client::join(&server, Version::V2026_07_28).await;
    // The hook is not called for other tools, nor for calls that are refused earlier.
    client.call("roll", json!({})).await;
    client.call("add", json!({"a": "x"})).await;
    assert_eq!(endpoint.events().len(), 2);
}

#[tokio::test]
async fn a_hook_changes_the_parameters_or_refuses_the_call() {
    let change =
        Endpoint::start(|_| (200, r#"{"action":"change","params":{"a":40,"b":2}}"#.to_owned())).await;
    assert_eq!(add(&yard(&change, "").await).await, Ok(json!(42.0)));
    let wrong = Endpoint::start(|_| (200, r#"{"action":"change","params":{"a":"x"}}"#.to_owned())).await;
    let message = add(&yard(&wrong, "").await).await.unwrap_err();
    assert!(message.starts_with("a hook changed the arguments: invalid arguments for `add`: "), "{message}");
    let refuse = Endpoint::start(|event| match event["event"].as_str() {
        Some("before") => (200, r#"{"action":"refuse","message":"not on a Sunday"}"#.to_owned()),
        _ => (500, String::new()),
    })
    .await;
    let server = yard(&refuse, "events = [\"before\", \"after\", \"error\"]").await;
    assert_eq!(add(&server).await, Err("not on a Sunday".to_owned()));
    assert_eq!(refuse.events(), ["before", "error"]);
    let error = &refuse.seen.lock()[1]["error"];
    assert_eq!(*error, json!({"kind": "forbidden", "message": "not on a Sunday", "details": null}));
}

#[tokio::test]
async fn a_hook_is_told_the_execution_id_that_rest_answers_with() {
    let endpoint = Endpoint::start(|_| (204, String::new())).await;
    let server = yard(&endpoint, "events = [\"before\", \"after\"]").await;
    let token = format!("Bearer {}", server.token.as_deref().unwrap());
    let headers = [("authorization", token.as_str())];
    let body = json!({"params": {"a": 1, "b": 2}});
    let answer = server.post_with("/mcp/tools/add/execute", &headers, &body).await.json();
    let id = answer["metadata"]["executionId"].clone();
    let seen: Vec<Value> = endpoint.seen.lock().iter().map(|event| event["executionId"].clone()).collect();
    assert_eq!(seen, [id.clone(), id.clone()]);
    let path = format!("/mcp/executions/{}", seen[0].as_str().unwrap());
    let found = server.request("GET", &path, &headers, b"").await.read_body().await.json();
    assert_eq!((&found["executionId"], &found["tool"]), (&id, &json!("add")));
}

#[tokio::test]
async fn a_hook_is_told_what_is_wrong_with_its_answer() {
    let answers: [(Rule, &str); 7] = [
        (|_| (200, "{}".to_owned()), "`action` is missing"),
        (|_| (200, "[]".to_owned()), "not a JSON object"),
        (|_| (200, "nonsense".to_owned()), "invalid JSON: expected ident at line 1 column 2"),
        (
            |_| (200, r#"{"action":"allow"}"#.to_owned()),
            r#"`action` is "allow"; expected "pass", "change" or "refuse""#,
        ),
        (|_| (200, r#"{"action":"change"}"#.to_owned()), r#"`params` is missing for the action "change""#),
        (|_| (200, r#"{"action":"change","params":7}"#.to_owned()), "`params` is not an object"),
        (|_| (200, r#"{"action":"refuse","message":7}"#.to_owned()), "`message` is not a string"),
    ];
    for (rule, problem) in answers {
        let server = yard(&Endpoint::start(rule).await, "").await;
        let message = add(&server).await.unwrap_err();
        let start = format!(
            "hook `policy` returned an invalid response for add: {problem}\nhint: a hook must return"
        );
        assert!(message.starts_with(&start), "{message}");
        assert!(message.contains(r#"{"action": "pass"}"#), "{message}");
        // The log of the yard contains the same.
        let log = server.process().await.stderr();
        assert!(log.contains("a hook failed; the call is refused"), "{log}");
        assert!(log.contains(problem) || log.contains(&problem.replace('"', "\\\"")), "{log}");
    }
}

#[tokio::test]
async fn a_hook_that_fails_refuses_the_call_or_lets_it_pass_as_it_was_told() {
    let failures: [(Rule, &str); 4] = [
        (|_| (500, String::new()), "hook `policy` failed, so add was not called\nhint: retry later"),
        (|_| (302, String::new()), "hook `policy` failed, so add was not called\nhint: retry later"),
        (|_| (200, "{}".to_owned()), "hook `policy` returned an invalid response for add"),
        (|_| (0, String::new()), "hook `policy` failed, so add was not called\nhint: retry later"),
    ];
    for (at, (rule, message)) in failures.into_iter().enumerate() {
        let endpoint = Endpoint::start(rule).await;
        let closed = add(&yard(&endpoint, "timeout = \"300ms\"").await).await.unwrap_err();
        assert!(closed.starts_with(message), "{at}: {closed}");
        let open = add(&yard(&endpoint, "timeout = \"300ms\"\non_failure = \"open\"").await).await;
        assert_eq!(open, Ok(json!(3.0)), "{at}");
    }
    let unreachable = Endpoint { url: "http://127.0.0.1:1/".to_owned(), seen: Arc::default() };
    assert!(add(&yard(&unreachable, "").await).await.is_err());
}
