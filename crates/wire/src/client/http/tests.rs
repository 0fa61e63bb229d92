//! The HTTP client against a scripted server.

use std::sync::Arc;

use http::HeaderMap;
use parking_lot::Mutex;
use reqwest::Url;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::same_origin::SameOriginHttp;
use super::super::{OutboundRequest, ServerMessage};
use super::{HttpClientSettings, StreamableHttpClient};

/// Requests a subscription from a server that responds with these pieces of JSON. Returns the
/// messages before the end, and the end.
async fn listen(pieces: &'static [&'static str]) -> (Vec<String>, Result<String, String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        for piece in pieces {
            let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
            stream.write_all(chunk.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
        }
        let _ = stream.write_all(b"0\r\n\r\n").await;
    });
    let received: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&received);
    let post = StreamableHttpClient::new(HttpClientSettings {
        http: SameOriginHttp::build(reqwest::Client::builder()).unwrap(),
        url,
        headers: HeaderMap::new(),
        authorization: Default::default(),
        max_message_bytes: 10_000,
        listener: Arc::new(move |message| match message {
            ServerMessage::Notification(notification, _) => sink.lock().push(notification.method),
            other => sink.lock().push(format!("{other:?}")),
        }),
        message_log: Default::default(),
    });
    let params = RawValue::from_string("{}".to_owned()).unwrap();
    let request =
        OutboundRequest { method: "subscriptions/listen", params, tag: 1, headers: HeaderMap::new() };
    let answer = post.request(request).await;
    server.await.unwrap();
    let received = received.lock().clone();
    (received, answer.map(|result| result.get().to_owned()).map_err(|failure| failure.to_string()))
}

#[tokio::test]
async fn a_subscription_sent_as_lines_of_json_is_read_line_by_line() {
    let (received, end) = listen(&[
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/one\"}\n{\"jsonrpc\":\"2.0\",",
        "\"method\":\"notifications/two\"}\n\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
    ])
    .await;
    assert_eq!(
        (received, end),
        (vec!["notifications/one".to_owned(), "notifications/two".to_owned()], Ok("{}".to_owned()))
    );
}

#[tokio::test]
async fn a_subscription_that_ends_without_an_answer_is_lost() {
    let (received, end) = listen(&["{\"jsonrpc\":\"2.0\",\"method\":\"notifications/one\"}\n"]).await;
    assert_eq!(received, ["notifications/one"]);
    assert_eq!(end, Err("connection lost: the stream ended before the response".to_owned()));
}

#[tokio::test]
async fn a_refusal_without_a_line_end_is_an_answer() {
    let (_, end) =
        listen(&["{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"unknown\"}}"]).await;
    assert_eq!(end, Err("unknown".to_owned()));
}
