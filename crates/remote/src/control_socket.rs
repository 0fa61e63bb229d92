//! A connection to the control socket of a running yard: opening it, authenticating, reading and writing messages.
//! What the messages mean is up to the caller.

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

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long writing one message may take.
const WRITE: Duration = Duration::from_secs(30);
/// The yard says something at least every 20 seconds; one that does not is gone.
const SILENCE: Duration = Duration::from_secs(60);
/// How long to wait before it is tried again; each wait is twice the one before.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The largest message that is taken in.
const LARGEST: usize = 256 * 1024 * 1024;
/// The close code of a token that is wrong or has expired.
const UNAUTHORISED: u16 = 4401;
/// The version of the protocol that is spoken here.
const VERSION: u64 = 1;

/// Why there is no connection, or none any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteError {
    /// The yard does not want us; trying again changes nothing.
    Refused(String),
    /// Whoever answers there does not speak as we do; trying again changes nothing.
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

/// What the yard says when it lets somebody in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WelcomeMessage {
    /// Who we are to the yard.
    pub principal: String,
    pub manage: bool,
    pub observe: bool,
    /// The time on its clock.
    pub now: Option<SystemTime>,
}

/// How long to wait before it is tried again.
#[derive(Debug)]
pub struct ReconnectBackoff(Duration);

impl Default for ReconnectBackoff {
    fn default() -> Self {
        Self(FIRST_WAIT)
    }
}

impl ReconnectBackoff {
    pub fn next_delay(&mut self) -> Duration {
        let now = self.0;
        self.0 = (now * 2).min(LONGEST_WAIT);
        now
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

/// Connects, and finds out who we are there. A token in the address, as its page has it, counts where none is given.
pub async fn connect(url: &Url, token: Option<&str>) -> Result<RemoteConnection, RemoteError> {
    let connecting = async {
        let token =
            token.map(ToOwned::to_owned).or_else(|| token_from_url(url)).filter(|token| !token.is_empty());
        let mut socket = open(url, token.as_deref()).await?;
        if token.is_none() {
            // Else a yard that wants one would wait for it.
            write(&mut socket, r#"{"id":0,"subtype":"hello"}"#).await?;
        }
        let welcome = parse_welcome(&read(&mut socket).await?)?;
        Ok(RemoteConnection { socket, welcome })
    };
    let silent = || Err(RemoteError::Unreachable("it does not answer".to_owned()));
    tokio::time::timeout(CONNECT, connecting).await.unwrap_or_else(|_| silent())
}

/// An address without the token that may be in it.
pub fn strip_token(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.to_string()
}

fn parse_welcome(text: &str) -> Result<WelcomeMessage, RemoteError> {
    let said: Value = serde_json::from_str(text).unwrap_or_default();
    if said["type"] != "welcome" {
        return Err(RemoteError::ProtocolMismatch(
            "what answers there is not the control socket of a yard".to_owned(),
        ));
    }
    match said["protocol"].as_u64() {
        Some(VERSION) => {}
        other => {
            let theirs =
                other.map_or_else(|| "an unknown version".to_owned(), |other| format!("version {other}"));
            return Err(RemoteError::ProtocolMismatch(format!(
                "it speaks {theirs} of the control protocol, and this toolyard speaks version {VERSION}"
            )));
        }
    }
    let now = said["now"].as_str().and_then(|now| now.parse::<Timestamp>().ok()).map(|Timestamp(now)| now);
    Ok(WelcomeMessage {
        principal: said["principal"]["name"].as_str().unwrap_or_default().to_owned(),
        manage: said["principal"]["manage"] == true,
        observe: said["principal"]["observe"] == true,
        now,
    })
}

async fn open(url: &Url, token: Option<&str>) -> Result<Socket, RemoteError> {
    let no_host = || RemoteError::Unreachable("the address names no host".to_owned());
    let host = url.host_str().ok_or_else(no_host)?;
    let port = url.port_or_known_default();
    let port = port.ok_or_else(|| RemoteError::Unreachable("the address names no port".to_owned()))?;
    let secure = matches!(url.scheme(), "https" | "wss");
    let tcp = TcpStream::connect((host.trim_matches(['[', ']']), port)).await.map_err(unreachable)?;
    let _ = tcp.set_nodelay(true);
    let stream: Box<dyn SocketIo> = match secure {
        true => {
            let name = ServerName::try_from(host.to_owned()).map_err(|_| no_host())?;
            let tls = TlsConnector::from(Arc::new(toolyard_upstream::tls_config()));
            Box::new(tls.connect(name, tcp).await.map_err(unreachable)?)
        }
        false => Box::new(tcp),
    };
    let scheme = if secure { "wss" } else { "ws" };
    let path = url.path().trim_end_matches('/');
    let request = format!("{scheme}://{host}:{port}{path}/control").into_client_request();
    let mut request = request.map_err(unreachable)?;
    let headers = request.headers_mut();
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("toolyard.control.v1"));
    if let Some(token) = token {
        let value = HeaderValue::try_from(format!("Bearer {token}"));
        let invalid = |_| RemoteError::Unreachable("the token cannot be sent in a header".to_owned());
        headers.insert(header::AUTHORIZATION, value.map_err(invalid)?);
    }
    let sizes = WebSocketConfig::default().max_message_size(Some(LARGEST)).max_frame_size(Some(LARGEST));
    match client_async_with_config(request, stream, Some(sizes)).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) if matches!(response.status().as_u16(), 401 | 403) => {
            Err(RemoteError::Refused(format!("it answers with status {}", response.status())))
        }
        Err(Error::Http(response)) => {
            let why = format!("it answers with status {}; is that a yard?", response.status());
            Err(RemoteError::Unreachable(why))
        }
        Err(error) => Err(unreachable(error)),
    }
}

fn unreachable(error: impl std::fmt::Display) -> RemoteError {
    RemoteError::Unreachable(error.to_string())
}

/// The token of an address such as its page has.
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
    /// The next message.
    pub async fn next(&mut self) -> Result<String, RemoteError> {
        read(&mut self.socket).await
    }

    pub async fn send(&mut self, text: &str) -> Result<(), RemoteError> {
        write(&mut self.socket, text).await
    }
}

/// Dropping this loses no message.
async fn read(socket: &mut Socket) -> Result<String, RemoteError> {
    let gone = || RemoteError::Unreachable("the yard hung up".to_owned());
    loop {
        let Ok(message) = tokio::time::timeout(SILENCE, socket.next()).await else {
            return Err(RemoteError::Unreachable("it says nothing any more".to_owned()));
        };
        match message {
            Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
            Some(Ok(Message::Close(frame))) => {
                let (code, reason) = frame
                    .map(|frame| (u16::from(frame.code), frame.reason.as_str().to_owned()))
                    .unwrap_or_default();
                return Err(match code {
                    UNAUTHORISED => RemoteError::Refused(reason),
                    _ if reason.is_empty() => gone(),
                    _ => RemoteError::Unreachable(reason),
                });
            }
            // A ping only says that it is there.
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => {}
            Some(Err(error)) => return Err(unreachable(error)),
            None => return Err(gone()),
        }
    }
}

async fn write(socket: &mut Socket, text: &str) -> Result<(), RemoteError> {
    match tokio::time::timeout(WRITE, socket.send(Message::text(text))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(unreachable(error)),
        Err(_) => Err(RemoteError::Unreachable("it does not read any more".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::{ReconnectBackoff, RemoteError, WelcomeMessage, parse_welcome, token_from_url};

    #[test]
    fn a_yard_of_another_version_is_named_as_such() {
        let said = r#"{"type":"welcome","protocol":1,"principal":{"name":"ann","observe":true}}"#;
        let known = WelcomeMessage { principal: "ann".to_owned(), manage: false, observe: true, now: None };
        assert_eq!(parse_welcome(said), Ok(known));
        let why = |text: &str| match parse_welcome(text) {
            Err(RemoteError::ProtocolMismatch(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            why(r#"{"type":"welcome","protocol":2}"#),
            "it speaks version 2 of the control protocol, and this toolyard speaks version 1"
        );
        assert!(why(r#"{"type":"welcome"}"#).starts_with("it speaks an unknown version"));
        for other in ["", "hello", "[]", "null", r#"{"type":"event"}"#] {
            assert_eq!(why(other), "what answers there is not the control socket of a yard", "{other}");
        }
    }

    #[test]
    fn it_is_tried_again_less_and_less_often() {
        let mut patience = ReconnectBackoff::default();
        let waits: Vec<u128> = (0..7).map(|_| patience.next_delay().as_millis()).collect();
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
    }

    #[test]
    fn the_address_of_the_page_has_the_token_in_it() {
        let token = |address: &str| token_from_url(&address.parse().unwrap());
        assert_eq!(token("http://127.0.0.1:8080/#token=a%20b+c"), Some("a b+c".to_owned()));
        assert_eq!(token("http://127.0.0.1:8080/?token=x#x=1&token=y"), Some("y".to_owned()));
        assert_eq!(token("http://127.0.0.1:8080/"), None);
        assert_eq!(token("http://127.0.0.1:8080/#"), None);
    }
}
