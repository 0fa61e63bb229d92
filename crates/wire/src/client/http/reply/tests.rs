//! Requests over pooled connections against scripted servers.

use http::{HeaderMap, Method};
use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::super::super::WireError;
use super::super::super::same_origin::SameOriginHttp;
use super::HttpSender;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// What a server received: the number of the connection, and the first line and the body of the
/// request.
type Seen = (usize, String);

/// Starts a server that sends these responses on each of its connections, one per request, and
/// closes a connection after its last response.
async fn server(script: Vec<Vec<String>>) -> (Url, mpsc::Receiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/mcp?x=1", listener.local_addr().unwrap())).unwrap();
    let (sender, seen) = mpsc::channel(100);
    tokio::spawn(async move {
        for (number, answers) in script.into_iter().enumerate() {
            let (mut stream, _) = listener.accept().await.unwrap();
            let sender = sender.clone();
            tokio::spawn(async move {
                for answer in answers {
                    let Some(request) = read(&mut stream).await else { break };
                    sender.send((number, request)).await.unwrap();
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
                // Further requests find the connection closed.
                drop(stream);
                sender.send((number, "closed".to_owned())).await.unwrap();
            });
        }
    });
    (url, seen)
}

/// Reads the first line and the body of the next request.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    let mut byte = [0];
    while !text.ends_with("\r\n\r\n") {
        if stream.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        text.push(char::from(byte[0]));
    }
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    let first = text.lines().next().unwrap_or_default();
    Some(format!("{first} {}", String::from_utf8(body).unwrap()))
}

fn way(url: &Url) -> HttpSender {
    let _ = rustls::crypto::ring::default_provider().install_default();
    HttpSender::new(SameOriginHttp::build(reqwest::Client::builder()).unwrap(), url.clone())
}

async fn post(way: &HttpSender, text: &'static str) -> Result<String, WireError> {
    let reply = way.send(Method::POST, HeaderMap::new, text).await?;
    let body = reply.read_body(100).await?;
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

fn answers(count: usize) -> Vec<String> {
    vec![OK.to_owned(); count]
}

#[tokio::test]
async fn a_connection_is_used_again_once_its_answer_was_read() {
    let (url, mut seen) = server(vec![answers(3), answers(1)]).await;
    let way = way(&url);
    assert_eq!(post(&way, "a").await.unwrap(), "ok");
    assert_eq!(post(&way, "b").await.unwrap(), "ok");
    assert_eq!(seen.recv().await.unwrap(), (0, "POST /mcp?x=1 HTTP/1.1 a".to_owned()));
    assert_eq!(seen.recv().await.unwrap(), (0, "POST /mcp?x=1 HTTP/1.1 b".to_owned()));
    // Two concurrent requests need two connections.
    let (one, two) = tokio::join!(post(&way, "c"), post(&way, "d"));
    assert_eq!((one.unwrap(), two.unwrap()), ("ok".to_owned(), "ok".to_owned()));
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_costs_no_request() {
    let (url, mut seen) = server(vec![answers(1), answers(1)]).await;
    let way = way(&url);
    assert_eq!(post(&way, "a").await.unwrap(), "ok");
    assert_eq!(seen.recv().await.unwrap(), (0, "POST /mcp?x=1 HTTP/1.1 a".to_owned()));
    assert_eq!(seen.recv().await.unwrap(), (0, "closed".to_owned()));
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(post(&way, "b").await.unwrap(), "ok");
    assert_eq!(seen.recv().await.unwrap(), (1, "POST /mcp?x=1 HTTP/1.1 b".to_owned()));
}

#[tokio::test]
async fn a_request_that_is_given_up_closes_its_connection() {
    let partial = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    let (url, mut seen) = server(vec![vec![partial.to_owned(), OK.to_owned()]]).await;
    let way = way(&url);
    let reply = way.send(Method::POST, HeaderMap::new, "a").await.unwrap();
    assert_eq!(seen.recv().await.unwrap(), (0, "POST /mcp?x=1 HTTP/1.1 a".to_owned()));
    drop(reply);
    // The server waits for a second request, but the connection is closed.
    assert_eq!(seen.recv().await.unwrap(), (0, "closed".to_owned()));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_a_lost_connection_and_is_not_asked_for_again() {
    let partial = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    let (url, mut seen) = server(vec![vec![partial.to_owned()], vec![String::new()], answers(1)]).await;
    let way = way(&url);
    assert!(matches!(post(&way, "a").await, Err(WireError::Lost(_))));
    assert!(matches!(post(&way, "b").await, Err(WireError::Lost(_))));
    assert_eq!(post(&way, "c").await.unwrap(), "ok");
    let mut requests = Vec::new();
    while let Ok(seen) = seen.try_recv() {
        requests.extend((seen.1 != "closed").then_some(seen));
    }
    let expected =
        [(0, "POST /mcp?x=1 HTTP/1.1 a"), (1, "POST /mcp?x=1 HTTP/1.1 b"), (2, "POST /mcp?x=1 HTTP/1.1 c")];
    assert_eq!(requests, expected.map(|(number, text)| (number, text.to_owned())));
}

#[tokio::test]
async fn an_answer_in_many_pieces_is_put_together_and_one_that_is_too_long_is_refused() {
    let chunked =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n3\r\ndef\r\n0\r\n\r\n";
    let long = format!("HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n{}", "x".repeat(101));
    let (url, _seen) = server(vec![vec![chunked.to_owned(), long]]).await;
    let way = way(&url);
    assert_eq!(post(&way, "a").await.unwrap(), "abcdef");
    assert!(matches!(post(&way, "b").await, Err(WireError::TooLarge(_))));
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed() {
    let moved = "HTTP/1.1 307 Moved\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n".to_owned();
    let (url, mut seen) = server(vec![vec![moved.clone()], vec![moved, OK.to_owned()]]).await;
    let way = way(&url);
    assert_eq!(post(&way, "a").await.unwrap(), "ok");
    assert_eq!(seen.recv().await.unwrap().1, "POST /mcp?x=1 HTTP/1.1 a");
    while let Some((_, line)) = seen.recv().await {
        if line == "POST /other HTTP/1.1 a" {
            return;
        }
    }
    panic!("the redirect was not followed");
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_not_followed_over_our_own_pool_nor_over_the_http_client() {
    let (there, mut seen_there) = server(vec![answers(2)]).await;
    for status in ["307 Temporary Redirect", "308 Permanent Redirect"] {
        let moved = format!("HTTP/1.1 {status}\r\nlocation: {there}\r\ncontent-length: 0\r\n\r\n");
        let (mut url, _seen) = server(vec![vec![moved.clone()], vec![moved]]).await;
        for user in ["", "ada"] {
            // A URL with a user name does not use the pool.
            url.set_username(user).unwrap();
            let way = way(&url);
            assert_eq!(way.plain.is_some(), user.is_empty());
            let reply = way.send(Method::POST, HeaderMap::new, "a").await.unwrap();
            assert!(reply.status.is_redirection(), "{}", reply.status);
        }
    }
    assert!(seen_there.try_recv().is_err());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    assert!(
        matches!(post(&way(&url), "a").await, Err(WireError::Unreachable(why)) if why.contains("refused"))
    );
}

#[test]
fn only_a_plain_way_is_taken_without_the_http_client() {
    let plain = |url: &str| way(&Url::parse(url).unwrap()).plain.is_some();
    assert!(plain("http://127.0.0.1:1/mcp"));
    assert!(plain("http://[::1]/mcp?x=y#z"));
    assert!(!plain("https://127.0.0.1:1/mcp"));
    assert!(!plain("http://ada:secret@127.0.0.1:1/mcp"));
}
