//! A server for tests that sends scripted responses and records the requests.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use crate::clients::HttpClients;

/// Trusts no certificates, because the tests do not use TLS.
pub(crate) fn tls_config() -> ClientConfig {
    let _ = rustls::crypto::ring::default_provider().install_default();
    ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

/// HTTP clients for the fake server.
pub(crate) fn http_clients() -> HttpClients {
    HttpClients::new(&tls_config()).unwrap()
}

/// A recorded request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordedRequest {
    /// `GET /path?query`
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl RecordedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// A response: everything after `HTTP/1.1 `, and whether the connection stays open afterwards.
#[derive(Debug, Clone)]
pub(crate) enum FakeReply {
    Whole(Vec<u8>),
    /// Sends these bytes and then keeps the connection open without sending anything.
    Endless(Vec<u8>),
    Silence,
}

/// A complete response from a status such as `200 OK`, header lines that each end with `\r\n`, and
/// a body.
pub(crate) fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> FakeReply {
    let body = body.as_ref();
    let head = format!("{status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    FakeReply::Whole([head.as_bytes(), body].concat())
}

pub(crate) fn json(body: &str) -> FakeReply {
    answer("200 OK", "content-type: application/json\r\n", body)
}

#[derive(Debug)]
pub(crate) struct FakeServer {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    _task: AbortOnDropHandle<()>,
}

impl FakeServer {
    /// Starts a server. `reply` is called for every request with the number of requests before it.
    pub(crate) async fn start(
        reply: impl Fn(usize, &RecordedRequest) -> FakeReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let (recorded, reply) = (Arc::clone(&seen), Arc::new(reply));
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (recorded, reply) = (Arc::clone(&recorded), Arc::clone(&reply));
                open.spawn(async move {
                    serve_connection(stream, &recorded, &*reply).await;
                });
            }
        }));
        Self { port, requests: seen, _task: task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().clone()
    }

    pub(crate) fn request_lines(&self) -> Vec<String> {
        self.requests().into_iter().map(|seen| seen.line).collect()
    }
}

/// A resolver that returns these addresses for every name.
#[derive(Debug, Clone)]
pub(crate) struct StaticResolver(pub(crate) Vec<IpAddr>);

impl Resolve for StaticResolver {
    fn resolve(&self, _: Name) -> Resolving {
        let found: Vec<SocketAddr> = self.0.iter().map(|address| SocketAddr::new(*address, 0)).collect();
        Box::pin(async move { Ok(Box::new(found.into_iter()) as Addrs) })
    }
}

async fn serve_connection(
    mut stream: TcpStream,
    recorded: &Mutex<Vec<RecordedRequest>>,
    reply: &(dyn Fn(usize, &RecordedRequest) -> FakeReply + Sync),
) -> Option<()> {
    let mut bytes = Vec::new();
    let head_end = loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, length)| length.parse().unwrap());
    while bytes.len() < head_end + 4 + length {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
    }
    let seen = RecordedRequest { line, headers, body: bytes[head_end + 4..].to_vec() };
    let before = {
        let mut recorded = recorded.lock();
        recorded.push(seen.clone());
        recorded.len() - 1
    };
    let (rest, ends) = match reply(before, &seen) {
        FakeReply::Whole(rest) => (rest, true),
        FakeReply::Endless(rest) => (rest, false),
        FakeReply::Silence => std::future::pending().await,
    };
    stream.write_all(b"HTTP/1.1 ").await.ok()?;
    stream.write_all(&rest).await.ok()?;
    if !ends {
        std::future::pending::<()>().await;
    }
    stream.shutdown().await.ok()
}
