//! A connection to the control socket of a running yard: connecting, authenticating, reading and
//! writing messages. The caller interprets the messages.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::{SinkExt, StreamExt};
use reqwest::Url;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use toolyard_hub::Timestamp;

/// The timeout for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// The timeout for writing one message.
const WRITE: Duration = Duration::from_secs(30);
/// The timeout for reading. A yard sends a message at least every 20 seconds.
const SILENCE: Duration = Duration::from_secs(60);
/// The delay before the first reconnect. It doubles with every attempt.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The maximum size of a message, in bytes.
const LARGEST: usize = 256 * 1024 * 1024;
/// The close code for a token that is invalid or has expired.
const UNAUTHORIZED: u16 = 4401;
/// The version of the control protocol.
const VERSION: u64 = 1;

/// The reason why a connection failed or was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteError {
    /// The yard rejected the token. Retrying does not help.
    Refused(String),
    /// The server does not speak this version of the control protocol. Retrying does not help.
    ProtocolMismatch(String),
    Unreachable(String),
}

impl RemoteError {
    pub fn message(&self) -> &str {
        match self {
            Self::Refused(why) | Self::ProtocolMismatch(why) | Self::Unreachable(why) => why,
        }
    }
}

/// The first message of the yard after authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WelcomeMessage {
    /// The name of the authenticated principal.
    pub principal: String,
    pub manage: bool,
    pub observe: bool,
    /// The name of the replica that was reached, if the yard has several.
    pub replica: Option<String>,
    /// The current time of the yard.
    pub now: Option<SystemTime>,
}

/// The exponential delay between reconnects.
#[derive(Debug)]
pub struct ReconnectBackoff(Duration);

impl Default for ReconnectBackoff {
    fn default() -> Self {
        Self(FIRST_WAIT)
    }
}

impl ReconnectBackoff {
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.0;
        self.0 = (delay * 2).min(LONGEST_WAIT);
        delay
    }
}

trait SocketIo: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> SocketIo for T {}

type Socket = WebSocketStream<Box<dyn SocketIo>>;

/// An open control socket.
pub struct RemoteConnection {
    socket: Socket,
    pub welcome: WelcomeMessage,
}

/// Connects and waits for the welcome message. Without a token, uses the one in the fragment of the
/// URL, if any.
pub async fn connect(url: &Url, token: Option<&str>) -> Result<RemoteConnection, RemoteError> {
    let connecting = async {
        let token =
            token.map(ToOwned::to_owned).or_else(|| token_from_url(url)).filter(|token| !token.is_empty());
        let mut socket = open(url, token.as_deref()).await?;
        if token.is_none() {
            // Otherwise a yard that needs a token would wait for it.
            write(&mut socket, r#"{"id":0,"subtype":"hello"}"#).await?;
        }
        let welcome = parse_welcome(&read(&mut socket).await?)?;
        Ok(RemoteConnection { socket, welcome })
    };
    let timed_out = || Err(RemoteError::Unreachable("the connection timed out".to_owned()));
    tokio::time::timeout(CONNECT, connecting).await.unwrap_or_else(|_| timed_out())
}

/// Returns a URL without the token in its fragment.
pub fn strip_token(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.to_string()
}

fn parse_welcome(text: &str) -> Result<WelcomeMessage, RemoteError> {
    let message: Value = serde_json::from_str(text).unwrap_or_default();
    if message["type"] != "welcome" {
        return Err(RemoteError::ProtocolMismatch(
            "the server is not the control socket of a yard".to_owned(),
        ));
    }
    match message["protocol"].as_u64() {
        Some(VERSION) => {}
        other => {
            let version =
                other.map_or_else(|| "an unknown version".to_owned(), |other| format!("version {other}"));
            return Err(RemoteError::ProtocolMismatch(format!(
                "the yard speaks {version} of the control protocol; this toolyard supports version {VERSION}"
            )));
        }
    }
    let now = message["now"].as_str().and_then(|now| now.parse::<Timestamp>().ok()).map(|Timestamp(now)| now);
    Ok(WelcomeMessage {
        principal: message["principal"]["name"].as_str().unwrap_or_default().to_owned(),
        manage: message["principal"]["manage"] == true,
        observe: message["principal"]["observe"] == true,
        replica: message["replica"].as_str().map(str::to_owned),
        now,
    })
}

async fn open(url: &Url, token: Option<&str>) -> Result<Socket, RemoteError> {
    let no_host = || RemoteError::Unreachable("the URL has no host".to_owned());
    let host = url.host_str().ok_or_else(no_host)?;
    let port = url.port_or_known_default();
    let port = port.ok_or_else(|| RemoteError::Unreachable("the URL has no port".to_owned()))?;
    let is_secure = matches!(url.scheme(), "https" | "wss");
    let tcp = TcpStream::connect((host.trim_matches(['[', ']']), port)).await.map_err(unreachable)?;
    let _ = tcp.set_nodelay(true);
    let stream: Box<dyn SocketIo> = match is_secure {
        true => {
            let name = ServerName::try_from(host.to_owned()).map_err(|_| no_host())?;
            let tls = TlsConnector::from(Arc::new(toolyard_upstream::tls_config()));
            Box::new(tls.connect(name, tcp).await.map_err(unreachable)?)
        }
        false => Box::new(tcp),
    };
    let scheme = if is_secure { "wss" } else { "ws" };
    let path = url.path().trim_end_matches('/');
    let request = format!("{scheme}://{host}:{port}{path}/control").into_client_request();
    let mut request = request.map_err(unreachable)?;
    let headers = request.headers_mut();
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("toolyard.control.v1"));
    if let Some(token) = token {
        let value = HeaderValue::try_from(format!("Bearer {token}"));
        let invalid = |_| {
            RemoteError::Unreachable("the token contains characters that are invalid in a header".to_owned())
        };
        headers.insert(header::AUTHORIZATION, value.map_err(invalid)?);
    }
    let sizes = WebSocketConfig::default().max_message_size(Some(LARGEST)).max_frame_size(Some(LARGEST));
    match client_async_with_config(request, stream, Some(sizes)).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) if matches!(response.status().as_u16(), 401 | 403) => {
            Err(RemoteError::Refused(format!("the yard responded with status {}", response.status())))
        }
        Err(Error::Http(response)) => {
            let reason = format!(
                "the server responded with status {}; check that the URL is a yard",
                response.status()
            );
            Err(RemoteError::Unreachable(reason))
        }
        Err(error) => Err(unreachable(error)),
    }
}

fn unreachable(error: impl std::fmt::Display) -> RemoteError {
    RemoteError::Unreachable(error.to_string())
}

/// Returns the token in the fragment of a URL.
fn token_from_url(url: &Url) -> Option<String> {
    let fragment = url.fragment()?.replace('+', "%2B");
    let mut url = url.clone();
    url.set_query(Some(&fragment));
    url.query_pairs().find(|(name, _)| name == "token").map(|(_, token)| token.into_owned())
}

impl std::fmt::Debug for RemoteConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteConnection").field("welcome", &self.welcome).finish_non_exhaustive()
    }
}

impl RemoteConnection {
    /// Waits for the next message. Dropping the future loses no message.
    pub async fn next(&mut self) -> Result<String, RemoteError> {
        read(&mut self.socket).await
    }

    pub async fn send(&mut self, text: &str) -> Result<(), RemoteError> {
        write(&mut self.socket, text).await
    }
}

async fn read(socket: &mut Socket) -> Result<String, RemoteError> {
    let closed = || RemoteError::Unreachable("the yard closed the connection".to_owned());
    loop {
        let Ok(message) = tokio::time::timeout(SILENCE, socket.next()).await else {
            return Err(RemoteError::Unreachable("the yard stopped responding".to_owned()));
        };
        match message {
            Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
            Some(Ok(Message::Close(frame))) => {
                let (code, reason) = frame
                    .map(|frame| (u16::from(frame.code), frame.reason.as_str().to_owned()))
                    .unwrap_or_default();
                return Err(match code {
                    UNAUTHORIZED => RemoteError::Refused(reason),
                    _ if reason.is_empty() => closed(),
                    _ => RemoteError::Unreachable(reason),
                });
            }
            // A ping only shows that the yard is alive.
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => {}
            Some(Err(error)) => return Err(unreachable(error)),
            None => return Err(closed()),
        }
    }
}

async fn write(socket: &mut Socket, text: &str) -> Result<(), RemoteError> {
    match tokio::time::timeout(WRITE, socket.send(Message::text(text))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(unreachable(error)),
        Err(_) => Err(RemoteError::Unreachable("the yard stopped reading".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::{ReconnectBackoff, RemoteError, WelcomeMessage, parse_welcome, token_from_url};

    #[test]
    fn another_protocol_version_is_a_mismatch() {
        let welcome = r#"{"type":"welcome","protocol":1,"principal":{"name":"ann","observe":true}}"#;
        let principal = "ann".to_owned();
        let expected = WelcomeMessage { principal, manage: false, observe: true, replica: None, now: None };
        assert_eq!(parse_welcome(welcome), Ok(expected));
        let mismatch = |text: &str| match parse_welcome(text) {
            Err(RemoteError::ProtocolMismatch(reason)) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            mismatch(r#"{"type":"welcome","protocol":2}"#),
            "the yard speaks version 2 of the control protocol; this toolyard supports version 1"
        );
        assert!(mismatch(r#"{"type":"welcome"}"#).starts_with("the yard speaks an unknown version"));
        for other in ["", "hello", "[]", "null", r#"{"type":"event"}"#] {
            assert_eq!(mismatch(other), "the server is not the control socket of a yard", "{other}");
        }
    }

    #[test]
    fn the_reconnect_delay_doubles_up_to_a_limit() {
        let mut backoff = ReconnectBackoff::default();
        let waits: Vec<u128> = (0..7).map(|_| backoff.next_delay().as_millis()).collect();
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
    }

    #[test]
    fn the_token_is_read_from_the_fragment() {
        let token = |address: &str| token_from_url(&address.parse().unwrap());
        assert_eq!(token("http://127.0.0.1:8080/#token=a%20b+c"), Some("a b+c".to_owned()));
        assert_eq!(token("http://127.0.0.1:8080/?token=x#x=1&token=y"), Some("y".to_owned()));
        assert_eq!(token("http://127.0.0.1:8080/"), None);
        assert_eq!(token("http://127.0.0.1:8080/#"), None);
    }
}
