//! A client of the control socket. It validates every message, in both directions, against the
//! published schema.

use std::collections::{BTreeSet, VecDeque};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::{SinkExt, StreamExt};
use jsonschema::Validator;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::within_timeout;

static CLIENT: LazyLock<Validator> = LazyLock::new(|| validator("ClientMessage"));
static SERVER: LazyLock<Validator> = LazyLock::new(|| validator("ServerMessage"));

fn validator(definition: &str) -> Validator {
    let text = include_str!("../../../../docs/reference/control.schema.json");
    let mut schema: Value = serde_json::from_str(text).unwrap();
    schema.as_object_mut().unwrap().remove("anyOf");
    schema["$ref"] = format!("#/$defs/{definition}").into();
    jsonschema::validator_for(&schema).unwrap()
}

/// Checks that the server may send this message.
pub fn assert_server_message(message: &Value) {
    assert_valid(&SERVER, message);
}

/// Returns every server message that the schema defines, by the words that identify it.
pub fn every_server_message() -> BTreeSet<String> {
    let text = include_str!("../../../../docs/reference/control.schema.json");
    let schema: Value = serde_json::from_str(text).unwrap();
    let all = schema["$defs"]["ServerMessage"]["oneOf"].as_array().unwrap();
    let word = |reference: &Value| {
        let name = reference["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        let properties = &schema["$defs"][name]["properties"];
        let part = |key: &str| properties[key]["const"].as_str().map(|word| format!(" {word}"));
        let more = part("subtype").or_else(|| part("event")).unwrap_or_default();
        format!("{}{more}", properties["type"]["const"].as_str().unwrap())
    };
    all.iter().map(word).collect()
}

/// How a client authenticates when it connects.
#[derive(Debug, Clone, Copy)]
pub enum Proof<'a> {
    Header(&'a str),
    Subprotocol(&'a str),
    Nothing,
}

pub struct Socket {
    socket: WebSocketStream<TcpStream>,
    /// Messages that arrived while the test waited for another one.
    aside: VecDeque<Value>,
    last: i64,
    /// The identifying words of every message received.
    pub seen: BTreeSet<String>,
    /// The text of the latest message.
    pub text: String,
}

impl Socket {
    /// Connects. Returns the HTTP status if the server refuses the upgrade.
    pub async fn open(address: &str, proof: Proof<'_>, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let mut request = format!("ws://{address}/control").into_client_request().unwrap();
        let mut protocols = "toolyard.control.v1".to_owned();
        match proof {
            Proof::Header(token) => {
                let value = format!("Bearer {token}").parse().unwrap();
                request.headers_mut().insert("authorization", value);
            }
            Proof::Subprotocol(token) => {
                protocols.push_str(&format!(", toolyard.token.{}", URL_SAFE_NO_PAD.encode(token)));
            }
            Proof::Nothing => {}
        }
        request.headers_mut().insert("sec-websocket-protocol", protocols.parse().unwrap());
        for (name, value) in headers {
            let name: hyper::header::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let stream = within_timeout("a connection", TcpStream::connect(address)).await.unwrap();
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        match within_timeout("a socket", client_async_with_config(request, stream, Some(config))).await {
            Ok((socket, response)) => {
                let agreed =
                    response.headers().get("sec-websocket-protocol").map(|value| value.to_str().unwrap());
                assert_eq!(agreed, Some("toolyard.control.v1"));
                let (aside, seen) = (VecDeque::new(), BTreeSet::new());
                Ok(Self { socket, aside, last: 0, seen, text: String::new() })
            }
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Connects with a valid token and reads the welcome.
    pub async fn connect(address: &str, token: &str) -> Self {
        let mut socket = Self::open(address, Proof::Header(token), &[]).await.unwrap();
        assert_eq!(socket.message().await["type"], "welcome");
        socket
    }

    /// Sends something that need not be a valid message.
    pub async fn send_raw(&mut self, message: Message) {
        let _ = self.socket.send(message).await;
    }

    pub async fn send_text(&mut self, text: &str) {
        self.send_raw(Message::text(text)).await;
    }

    /// Sends a request under a new id and returns the id.
    pub async fn send(&mut self, subtype: &str, words: Value) -> i64 {
        self.last += 1;
        let mut request = json!({"id": self.last, "subtype": subtype});
        request.as_object_mut().unwrap().extend(words.as_object().unwrap().clone());
        assert_valid(&CLIENT, &request);
        self.send_text(&request.to_string()).await;
        self.last
    }

    /// Returns the next message, or the code with which the socket was closed.
    pub async fn next(&mut self) -> Result<Value, u16> {
        if let Some(aside) = self.aside.pop_front() {
            return Ok(aside);
        }
        self.read().await
    }

    async fn read(&mut self) -> Result<Value, u16> {
        loop {
            match within_timeout("a message", self.socket.next()).await {
                Some(Ok(Message::Text(text))) => {
                    self.text = text.as_str().to_owned();
                    return Ok(self.check());
                }
                Some(Ok(Message::Close(frame))) => return Err(frame.map_or(1005, |frame| frame.code.into())),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(1006),
            }
        }
    }

    /// Returns the next message without validating it, for messages that arrive by the thousand.
    pub async fn next_unchecked(&mut self) -> Value {
        loop {
            match within_timeout("a message", self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(text.as_str()).unwrap(),
                Some(Ok(_)) => {}
                other => panic!("the socket was closed: {other:?}"),
            }
        }
    }

    fn check(&mut self) -> Value {
        // `Value` cannot hold this number. Other tests check that it arrives unchanged.
        let readable = self.text.replace("1e400", "1e300");
        let message: Value = serde_json::from_str(&readable).unwrap();
        assert_valid(&SERVER, &message);
        let word = message.get("subtype").or(message.get("event")).and_then(Value::as_str);
        let r#type = message["type"].as_str().unwrap();
        self.seen.insert(match (r#type, word) {
            ("response" | "event", Some(word)) => format!("{type} {word}"),
            _ => r#type.to_owned(),
        });
        message
    }

    /// Returns the next message. The socket must be open.
    pub async fn message(&mut self) -> Value {
        self.next().await.unwrap_or_else(|code| panic!("the socket was closed with {code}"))
    }

    /// Returns the next message that matches, and keeps the others for later.
    pub async fn next_matching(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.aside.iter().position(&fits) {
            return self.aside.remove(at).unwrap();
        }
        let matching = async {
            loop {
                match self.read().await {
                    Ok(message) if fits(&message) => return message,
                    Ok(message) => self.aside.push_back(message),
                    Err(code) => {
                        panic!("closed with {code} while waiting for {what}; received {:?}", self.aside)
                    }
                }
            }
        };
        // Other messages can keep arriving, so a timeout for each of them is not enough.
        within_timeout(what, matching).await
    }

    /// Returns the end of a request: its response or its error.
    pub async fn response(&mut self, id: i64) -> Value {
        let end = |message: &Value| {
            matches!(message["type"].as_str(), Some("response" | "error" | "welcome")) && message["id"] == id
        };
        self.next_matching(&format!("the end of {id}"), end).await
    }

    /// Sends a request and waits for the response. Returns the code if it is an error.
    pub async fn request(&mut self, subtype: &str, words: Value) -> Result<Value, String> {
        let id = self.send(subtype, words).await;
        let end = self.response(id).await;
        match end["type"].as_str() {
            Some("response") => {
                assert_eq!(end["subtype"], subtype);
                Ok(end["response"].clone())
            }
            _ => Err(end["error"]["code"].as_str().unwrap().to_owned()),
        }
    }

    /// Returns the next event of this name.
    pub async fn event(&mut self, name: &str) -> Value {
        self.next_matching(name, |message| message["type"] == "event" && message["event"] == name).await
    }

    /// Removes and returns every message that arrived but was not waited for.
    pub fn take_unclaimed(&mut self) -> Vec<Value> {
        self.aside.drain(..).collect()
    }

    /// Waits until the socket is closed. Returns the code.
    pub async fn wait_closed(&mut self) -> u16 {
        loop {
            if let Err(code) = self.read().await {
                return code;
            }
        }
    }

    /// Disconnects without a close frame.
    pub fn disconnect(self) {
        drop(self.socket);
    }
}

fn assert_valid(validator: &Validator, message: &Value) {
    if validator.is_valid(message) {
        return;
    }
    let errors: Vec<String> = validator.iter_errors(message).map(|error| error.to_string()).collect();
    panic!("not in the schema: {message}\n{}", errors.join("\n"));
}
