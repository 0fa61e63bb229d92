//! Replays over a pair of streams, with a client that sends and reads lines.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;

use super::{Replay, ReplayTiming};
use crate::replay_stdio::replay_stdio;
use crate::tape::tests::tape;

/// A client of a replay over stdio.
struct ReplayClient {
    to: WriteHalf<DuplexStream>,
    from: BufReader<ReadHalf<DuplexStream>>,
}

impl ReplayClient {
    fn start(lines: &[&str], timing: ReplayTiming) -> Self {
        let replay = Arc::new(Replay { tape: tape(lines), timing });
        let (client, server) = tokio::io::duplex(1 << 16);
        let streams = tokio::io::split(server);
        tokio::spawn(replay_stdio(replay, streams, CancellationToken::new()));
        let (from, to) = tokio::io::split(client);
        Self { to, from: BufReader::new(from) }
    }

    async fn send(&mut self, message: &str) {
        let line = format!("{}\n", message.replacen('{', "{\"jsonrpc\":\"2.0\",", 1));
        self.to.write_all(line.as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> String {
        let mut line = String::new();
        let reading = self.from.read_line(&mut line);
        tokio::time::timeout(std::time::Duration::from_secs(5), reading).await.unwrap().unwrap();
        line.trim_end().replacen("{\"jsonrpc\":\"2.0\",", "{", 1)
    }

    async fn ask(&mut self, message: &str) -> String {
        self.send(message).await;
        self.read().await
    }
}

#[tokio::test]
async fn answers_have_the_ids_of_the_client_and_the_recorded_text() {
    let mut client = ReplayClient::start(
        &[
            r#"> {"id":7,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":7}}}"#,
            r#"< {"method":"notifications/progress","params":{"progressToken":7,"progress":1.0}}"#,
            r#"< { "result" : {"n":1.50,"ü":"\u00fc"}, "id":7, "extra":1}"#,
        ],
        ReplayTiming::Immediate,
    );
    client
        .send(r#"{"id":"x","method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":"a"}}"#)
        .await;
    let progress = r#"{"method":"notifications/progress","params":{"progressToken":"p","progress":1.0}}"#;
    assert_eq!(client.read().await, progress);
    let answer = r#"{ "result" : {"n":1.50,"ü":"\u00fc"}, "id":"x", "extra":1}"#;
    assert_eq!(client.read().await, answer);
    // Without a token, there is no progress.
    let again = client.ask(r#"{"id":8,"method":"tools/call","params":{"name":"a","arguments":{}}}"#).await;
    assert_eq!(again, r#"{ "result" : {"n":1.50,"ü":"\u00fc"}, "id":8, "extra":1}"#);
}

#[tokio::test]
async fn the_same_request_gets_its_answers_in_order() {
    let mut client = ReplayClient::start(
        &[
            r#"> {"id":1,"method":"count"}"#,
            r#"< {"id":1,"result":1}"#,
            r#"> {"id":2,"method":"count"}"#,
            r#"< {"id":2,"error":{"code":1,"message":"m"}}"#,
        ],
        ReplayTiming::Immediate,
    );
    for expect in
        [r#""result":1}"#, r#""error":{"code":1,"message":"m"}}"#, r#""error":{"code":1,"message":"m"}}"#]
    {
        assert_eq!(client.ask(r#"{"id":0,"method":"count"}"#).await, format!("{{\"id\":0,{expect}"));
    }
    assert_eq!(client.ask(r#"{"id":5,"method":"ping"}"#).await, r#"{"id":5,"result":{}}"#);
    let unknown = client.ask(r#"{"id":6,"method":"counts"}"#).await;
    assert!(unknown.contains("the recording has no `counts` request, only: count"), "{unknown}");
    let invalid = client.ask("nonsense").await;
    assert!(invalid.contains("-32700"), "{invalid}");
}

#[tokio::test]
async fn a_recorded_question_waits_for_the_answer_of_the_client() {
    let mut client = ReplayClient::start(
        &[
            r#"> {"id":1,"method":"initialize","params":{"clientInfo":{"name":"recorded"}}}"#,
            r#"< {"id":1,"result":{"protocolVersion":"2025-11-25"}}"#,
            r#"> {"id":2,"method":"tools/call","params":{"name":"ask"}}"#,
            r#"< {"id":0,"method":"elicitation/create","params":{}}"#,
            r#"> {"id":0,"result":{"action":"accept"}}"#,
            r#"< {"id":2,"result":{"content":[]}}"#,
        ],
        ReplayTiming::Immediate,
    );
    let welcome =
        client.ask(r#"{"id":1,"method":"initialize","params":{"clientInfo":{"name":"other"}}}"#).await;
    assert_eq!(welcome, r#"{"id":1,"result":{"protocolVersion":"2025-11-25"}}"#);
    for id in [2, 3] {
        let question =
            client.ask(&format!(r#"{{"id":{id},"method":"tools/call","params":{{"name":"ask"}}}}"#)).await;
        assert_eq!(question, r#"{"id":0,"method":"elicitation/create","params":{}}"#);
        let answer = client.ask(r#"{"id":0,"result":{"action":"accept"}}"#).await;
        assert_eq!(answer, format!(r#"{{"id":{id},"result":{{"content":[]}}}}"#));
    }
}

#[tokio::test]
async fn a_subscription_is_renamed_and_receives_what_a_call_causes() {
    let mut client = ReplayClient::start(
        &[
            r#"> {"id":1,"method":"subscriptions/listen"}"#,
            r#"< {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
            r#"> {"id":2,"method":"tools/call"}"#,
            r#"< {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
            r#"< {"id":2,"result":{}}"#,
            r#"< {"id":1,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
        ],
        ReplayTiming::Immediate,
    );
    let confirmed = client.ask(r#"{"id":"s","method":"subscriptions/listen"}"#).await;
    let about = r#""params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}"#;
    assert_eq!(confirmed, format!(r#"{{"method":"notifications/subscriptions/acknowledged",{about}"#));
    let changed = client.ask(r#"{"id":"c","method":"tools/call"}"#).await;
    assert_eq!(changed, format!(r#"{{"method":"notifications/tools/list_changed",{about}"#));
    assert_eq!(client.read().await, r#"{"id":"c","result":{}}"#);
    client.to.shutdown().await.unwrap();
    let ended = r#"{"id":"s","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}"#;
    assert_eq!(client.read().await, ended);
}

#[tokio::test]
async fn every_open_subscription_receives_a_change() {
    let mut client = ReplayClient::start(
        &[
            r#"> {"id":1,"method":"subscriptions/listen"}"#,
            r#"> {"id":2,"method":"tools/call"}"#,
            r#"< {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
            r#"< {"id":2,"result":{}}"#,
        ],
        ReplayTiming::Immediate,
    );
    client.send(r#"{"id":"a","method":"subscriptions/listen"}"#).await;
    client.send(r#"{"id":"b","method":"subscriptions/listen"}"#).await;
    client.send(r#"{"id":"c","method":"tools/call"}"#).await;
    let mut received = [client.read().await, client.read().await, client.read().await];
    received.sort();
    let change = |id: &str| {
        format!(
            r#"{{"method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":"{id}"}}}}}}"#
        )
    };
    assert_eq!(received, [r#"{"id":"c","result":{}}"#.to_owned(), change("a"), change("b")]);
}

#[tokio::test]
async fn an_http_error_is_an_error_over_stdio() {
    let line = r#"<4 {"oops":1}"#;
    let mut client =
        ReplayClient::start(&[r#">4 {"id":1,"method":"tools/call"}"#, line], ReplayTiming::Immediate);
    let answer = client.ask(r#"{"id":"x","method":"tools/call"}"#).await;
    assert!(answer.contains("HTTP status 503") && answer.contains(r#""id":"x""#), "{answer}");
}

#[tokio::test]
async fn a_request_without_a_recorded_answer_gets_an_error() {
    let mut client = ReplayClient::start(&[r#"> {"id":1,"method":"tools/call"}"#], ReplayTiming::Immediate);
    let answer = client.ask(r#"{"id":1,"method":"tools/call"}"#).await;
    assert!(
        answer.contains("the recording ends before the answer to the `tools/call` request in line 2"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn recorded_delays_are_kept_on_request() {
    let lines: Vec<String> = (0..51).map(|_| r#"> {"method":"notifications/x"}"#.to_owned()).collect();
    let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    lines.insert(0, r#"> {"id":1,"method":"slow"}"#);
    lines.push(r#"< {"id":1,"result":{}}"#);
    let started = tokio::time::Instant::now();
    let mut client = ReplayClient::start(&lines, ReplayTiming::Recorded);
    client.ask(r#"{"id":1,"method":"slow"}"#).await;
    assert_eq!(started.elapsed().as_millis(), 52);
}
