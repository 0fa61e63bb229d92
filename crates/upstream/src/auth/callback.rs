//! The redirect of the user's browser: a request to a loopback port, or the same address pasted by
//! the user.

use std::io;
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolyard_hub::printable::clean_excerpt;

use super::AuthError;

/// Size limit and timeout of a request.
const LARGEST: usize = 16 * 1024;
const SLOWEST: Duration = Duration::from_secs(10);
const PATH: &str = "/callback";

/// Listens for the redirect of the browser.
pub(crate) struct CallbackListener {
    listener: TcpListener,
    port: u16,
}

/// The response of the authorization server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AuthorizationResponse {
    pub(crate) code: String,
    pub(crate) issuer: Option<String>,
}

impl CallbackListener {
    /// Listens on a port. Port 0 selects a free one.
    pub(crate) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Returns the redirect URI for the browser.
    pub(crate) fn redirect_uri(&self) -> String {
        redirect_uri(self.port)
    }

    /// Waits for the response with this state. Other requests are answered with 404.
    pub(crate) async fn wait_for_response(&self, state: &str) -> Result<AuthorizationResponse, AuthError> {
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else {
                // Most likely the process is out of file descriptors, which is temporary.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Ok(Some(target)) = tokio::time::timeout(SLOWEST, read_request_target(&mut stream)).await
            else {
                continue;
            };
            match parse_redirect(&format!("http://127.0.0.1:{}{target}", self.port), state) {
                Some(response) => {
                    let (status, text) = match &response {
                        Ok(_) => ("200 OK", "Login complete. Close this window and return to Toolyard."),
                        Err(_) => ("200 OK", "Authorization denied. Return to Toolyard for details."),
                    };
                    reply(&mut stream, status, text).await;
                    return response;
                }
                None => reply(&mut stream, "404 Not Found", "Page not found.").await,
            }
        }
    }
}

fn redirect_uri(port: u16) -> String {
    format!("http://127.0.0.1:{port}{PATH}")
}

/// Returns the port of a redirect URI, if [`CallbackListener`] created it.
pub(crate) fn redirect_port(redirect: &str) -> Option<u16> {
    let port = Url::parse(redirect).ok()?.port()?;
    (redirect_uri(port) == redirect).then_some(port)
}

/// Parses the address that a browser was redirected to. Returns `None` if it does not belong to the
/// login with this state.
pub(crate) fn parse_redirect(address: &str, state: &str) -> Option<Result<AuthorizationResponse, AuthError>> {
    let url = Url::parse(address.trim()).ok().filter(|url| url.path() == PATH)?;
    let value = |key: &str| {
        let pair = url.query_pairs().find(|(name, _)| name == key);
        pair.map(|(_, value)| value.into_owned())
    };
    if value("state").as_deref() != Some(state) {
        return None;
    }
    if let Some(error) = value("error") {
        let reason =
            [Some(error), value("error_description")].into_iter().flatten().collect::<Vec<_>>().join(": ");
        return Some(Err(AuthError::Refused(clean_excerpt(&reason, 300))));
    }
    value("code").map(|code| Ok(AuthorizationResponse { code, issuer: value("iss") }))
}

/// Reads a GET request and returns its target.
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

async fn reply(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!("<!doctype html><meta charset=utf-8><title>Toolyard</title><p>{text}</p>\n");
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
    async fn waits_for_the_matching_response_and_rejects_other_requests() {
        let callback = CallbackListener::bind(0).await.unwrap();
        let port = callback.port;
        assert_eq!(redirect_port(&callback.redirect_uri()), Some(port));
        let browser = tokio::spawn(async move {
            let forged = get(port, "/callback?code=evil&state=guess").await;
            let icon = get(port, "/favicon.ico").await;
            (forged, icon, get(port, "/callback?code=c%2B1&state=s&iss=https%3A%2F%2Fa").await)
        });
        let response = callback.wait_for_response("s").await.unwrap();
        assert_eq!(
            response,
            AuthorizationResponse { code: "c+1".to_owned(), issuer: Some("https://a".to_owned()) }
        );
        let (forged, icon, last) = browser.await.unwrap();
        assert!(forged.starts_with("HTTP/1.1 404") && icon.starts_with("HTTP/1.1 404"));
        assert!(last.starts_with("HTTP/1.1 200") && !last.contains("c+1"));
    }

    #[test]
    fn a_refusal_includes_the_reason() {
        let address = "http://127.0.0.1:1/callback?error=access_denied&error_description=no%0Away&state=s";
        let error = parse_redirect(address, "s").unwrap().unwrap_err();
        assert_eq!(error.to_string(), "authorization denied: access_denied: no way");
        assert!(parse_redirect(address, "other").is_none());
        assert_eq!(redirect_port("http://localhost:1/else"), None);
    }
}
