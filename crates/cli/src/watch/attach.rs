//! A connection to the control socket of a yard that runs.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::{SinkExt, StreamExt};
use reqwest::Url;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::ConfigVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);
/// The close code of a token that is wrong or has expired.
const UNAUTHORISED: u16 = 4401;

/// Why there is no connection, or none any more.
#[derive(Debug)]
pub(super) enum Lost {
    /// The yard does not want us; trying again changes nothing.
    Refused(String),
    Unreachable(String),
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(super) struct Attached {
    socket: WebSocketStream<Box<dyn Stream>>,
}

/// Connects. A token in the address, as its page has it, counts where none is given.
pub(super) async fn attach(url: &Url, token: Option<&str>) -> Result<Attached, Lost> {
    let unreachable = |error: anyhow::Error| Lost::Unreachable(format!("{error:#}"));
    match tokio::time::timeout(CONNECT, open(url, token)).await {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => Err(unreachable(error)),
        Err(_) => Err(Lost::Unreachable("it does not answer".to_owned())),
    }
}

async fn open(url: &Url, token: Option<&str>) -> anyhow::Result<Result<Attached, Lost>> {
    let host = url.host_str().context("the address names no host")?;
    let port = url.port_or_known_default().context("the address names no port")?;
    let secure = matches!(url.scheme(), "https" | "wss");
    let tcp = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
    let _ = tcp.set_nodelay(true);
    let stream: Box<dyn Stream> = match secure {
        true => {
            // Somebody may have chosen the provider already, which is just as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let config = ClientConfig::with_platform_verifier().context("cannot tell whom to trust")?;
            let name = ServerName::try_from(host.to_owned()).context("the address names no host")?;
            Box::new(TlsConnector::from(Arc::new(config)).connect(name, tcp).await?)
        }
        false => Box::new(tcp),
    };
    let scheme = if secure { "wss" } else { "ws" };
    let path = url.path().trim_end_matches('/');
    let mut request = format!("{scheme}://{host}:{port}{path}/control").into_client_request()?;
    let headers = request.headers_mut();
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("toolyard.control.v1"));
    let token = token.map(ToOwned::to_owned).or_else(|| in_address(url));
    if let Some(token) = token.filter(|token| !token.is_empty()) {
        let value = HeaderValue::try_from(format!("Bearer {token}")).context("the token cannot be sent")?;
        headers.insert(header::AUTHORIZATION, value);
    }
    match client_async(request, stream).await {
        Ok((socket, _)) => Ok(Ok(Attached { socket })),
        Err(Error::Http(response)) if matches!(response.status().as_u16(), 401 | 403) => {
            Ok(Err(Lost::Refused(format!("it answers with status {}", response.status()))))
        }
        Err(Error::Http(response)) => {
            Err(anyhow::anyhow!("it answers with status {}; is that a yard?", response.status()))
        }
        Err(error) => Err(error.into()),
    }
}

/// The token of an address such as its page has.
fn in_address(url: &Url) -> Option<String> {
    let fragment = url.fragment()?.replace('+', "%2B");
    let mut url = url.clone();
    url.set_query(Some(&fragment));
    url.query_pairs().find(|(name, _)| name == "token").map(|(_, token)| token.into_owned())
}

impl Attached {
    /// The next message.
    pub(super) async fn next(&mut self) -> Result<String, Lost> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
                // It is there, though it has nothing to tell.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok("{}".to_owned()),
                Some(Ok(Message::Close(frame))) => {
                    let (code, reason) = frame
                        .map(|frame| (u16::from(frame.code), frame.reason.as_str().to_owned()))
                        .unwrap_or_default();
                    return Err(match code {
                        UNAUTHORISED => Lost::Refused(reason),
                        _ if reason.is_empty() => Lost::Unreachable("the yard hung up".to_owned()),
                        _ => Lost::Unreachable(reason),
                    });
                }
                Some(Ok(Message::Binary(_) | Message::Frame(_))) => {}
                Some(Err(error)) => return Err(Lost::Unreachable(error.to_string())),
                None => return Err(Lost::Unreachable("the yard hung up".to_owned())),
            }
        }
    }

    pub(super) async fn send(&mut self, text: &str) -> Result<(), String> {
        self.socket.send(Message::text(text)).await.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::in_address;

    #[test]
    fn the_address_of_the_page_has_the_token_in_it() {
        let token = |address: &str| in_address(&address.parse().unwrap());
        assert_eq!(token("http://127.0.0.1:8080/#token=a%20b+c"), Some("a b+c".to_owned()));
        assert_eq!(token("http://127.0.0.1:8080/?token=x#x=1&token=y"), Some("y".to_owned()));
        assert_eq!(token("http://127.0.0.1:8080/"), None);
        assert_eq!(token("http://127.0.0.1:8080/#"), None);
    }
}
