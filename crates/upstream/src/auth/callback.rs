//! The answer of a person's browser: one request to a port of ours on loopback, or the same address pasted.

use std::io;
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolyard_hub::printable::clean_excerpt;

use super::AuthError;

/// How large a request may be, and how long it may take to arrive.
const LARGEST: usize = 16 * 1024;
const SLOWEST: Duration = Duration::from_secs(10);
const PATH: &str = "/callback";

/// Waits for the browser.
pub(crate) struct CallbackListener {
    listener: TcpListener,
    port: u16,
}

/// What the authorization server answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AuthorizationResponse {
    pub(crate) code: String,
    pub(crate) issuer: Option<String>,
}

impl CallbackListener {
    /// Listens on this port, or on a free one where that is 0.
    pub(crate) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Where the browser is sent.
    pub(crate) fn redirect_uri(&self) -> String {
        redirect_uri(self.port)
    }

    /// The answer to the question with this state. Whatever else asks for something here is sent away.
    pub(crate) async fn wait_for_response(&self, state: &str) -> Result<AuthorizationResponse, AuthError> {
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else {
                // Out of descriptors, most likely: that passes.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Ok(Some(target)) = tokio::time::timeout(SLOWEST, read_request_target(&mut stream)).await
            else {
                continue;
            };
            match parse_redirect(&format!("http://127.0.0.1:{}{target}", self.port), state) {
                Some(answer) => {
                    let (status, words) = match &answer {
                        Ok(_) => ("200 OK", "Done. You can close this window and go back to Toolyard."),
                        Err(_) => ("200 OK", "It was refused. Toolyard has the reason."),
                    };
                    reply(&mut stream, status, words).await;
                    return answer;
                }
                None => reply(&mut stream, "404 Not Found", "There is nothing here.").await,
            }
        }
    }
}

fn redirect_uri(port: u16) -> String {
    format!("http://127.0.0.1:{port}{PATH}")
}

/// The port of an address of ours.
pub(crate) fn redirect_port(redirect: &str) -> Option<u16> {
    let port = Url::parse(redirect).ok()?.port()?;
    (redirect_uri(port) == redirect).then_some(port)
}

/// Reads the address that a browser was sent to; `None` if it is not the answer to this question.
pub(crate) fn parse_redirect(address: &str, state: &str) -> Option<Result<AuthorizationResponse, AuthError>> {
    let url = Url::parse(address.trim()).ok().filter(|url| url.path() == PATH)?;
    let value = |wanted: &str| {
        let found = url.query_pairs().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.into_owned())
    };
    if value("state").as_deref() != Some(state) {
        return None;
    }
    if let Some(error) = value("error") {
        let why =
            [Some(error), value("error_description")].into_iter().flatten().collect::<Vec<_>>().join(": ");
        return Some(Err(AuthError::Refused(clean_excerpt(&why, 300))));
    }
    value("code").map(|code| Ok(AuthorizationResponse { code, issuer: value("iss") }))
}

/// The target of a GET request.
async fn read_request_target(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read_buf(&mut request).await.ok()?;
        if read == 0 || request.len() > LARGEST {
            return None;
        }
    }
    let line = request.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    (words.next()? == "GET").then_some(words.next()?.to_owned())
}

async fn reply(stream: &mut TcpStream, status: &str, words: &str) {
    let page = format!("<!doctype html><meta charset=utf-8><title>Toolyard</title><p>{words}</p>\n");
    let head = "content-type: text/html; charset=utf-8\r\ncache-control: no-store\r\nconnection: close";
    let text = format!("HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {}\r\n\r\n{page}", page.len());
    let _ = tokio::time::timeout(SLOWEST, stream.write_all(text.as_bytes())).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::{AuthorizationResponse, CallbackListener, parse_redirect, redirect_port};

    async fn get(port: u16, target: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn waits_for_the_one_answer_and_sends_others_away() {
        let callback = CallbackListener::bind(0).await.unwrap();
        let here = callback.port;
        assert_eq!(redirect_port(&callback.redirect_uri()), Some(here));
        let browser = tokio::spawn(async move {
            let stranger = get(here, "/callback?code=evil&state=guess").await;
            let icon = get(here, "/favicon.ico").await;
            (stranger, icon, get(here, "/callback?code=c%2B1&state=s&iss=https%3A%2F%2Fa").await)
        });
        let answer = callback.wait_for_response("s").await.unwrap();
        assert_eq!(
            answer,
            AuthorizationResponse { code: "c+1".to_owned(), issuer: Some("https://a".to_owned()) }
        );
        let (stranger, icon, last) = browser.await.unwrap();
        assert!(stranger.starts_with("HTTP/1.1 404") && icon.starts_with("HTTP/1.1 404"));
        assert!(last.starts_with("HTTP/1.1 200") && !last.contains("c+1"));
    }

    #[test]
    fn a_refusal_says_why() {
        let address = "http://127.0.0.1:1/callback?error=access_denied&error_description=no%0Away&state=s";
        let error = parse_redirect(address, "s").unwrap().unwrap_err();
        assert_eq!(error.to_string(), "it was refused: access_denied: no way");
        assert!(parse_redirect(address, "other").is_none());
        assert_eq!(redirect_port("http://localhost:1/else"), None);
    }
}
