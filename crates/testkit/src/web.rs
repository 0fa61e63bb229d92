//! Listeners that are not MCP servers: fixed answers, silence, an untrusted certificate, and a
//! switch in front of a real server.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot continue panics")]

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_util::task::AbortOnDropHandle;

/// A listener on a loopback address. It stops when this value is dropped.
#[derive(Debug)]
pub struct Web {
    /// `127.0.0.1:PORT`
    pub address: String,
    turn: watch::Sender<What>,
    _task: AbortOnDropHandle<()>,
}

/// What a client gets when it connects.
#[derive(Debug, Clone)]
pub enum What {
    /// Sends these bytes after the start of a request, then closes the connection.
    Says(String),
    /// Never answers.
    Silence,
    /// Forwards to the server at this address.
    Server(String),
    /// Presents an untrusted certificate.
    Stranger,
    /// Forwards to the server at this address, behind this certificate.
    Encrypted(String, Shown),
}

/// A newly generated self-signed certificate for this machine.
#[derive(Clone)]
pub struct Shown {
    acceptor: TlsAcceptor,
    /// The certificate authority to trust.
    pub pem: String,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shown").finish_non_exhaustive()
    }
}

impl Shown {
    pub fn generate() -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let text = STANDARD.encode(made.cert.der());
        let pem = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        Self { acceptor: TlsAcceptor::from(Arc::new(config)), pem }
    }
}

impl Web {
    pub async fn start(what: What) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (turn, turned) = watch::channel(what);
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(handle_connection(stream, turned.clone()));
            }
        }));
        Self { address, turn, _task: task }
    }

    /// Returns an HTTP response with this status line, these header lines and this body.
    pub fn answer(status: &str, headers: &str, body: &str) -> What {
        let length = body.len();
        What::Says(format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
    }

    /// Switches to another behavior and closes all open connections.
    pub fn switch(&self, what: What) {
        self.turn.send_replace(what);
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

async fn handle_connection(mut stream: TcpStream, mut turned: watch::Receiver<What>) {
    let what = turned.borrow_and_update().clone();
    let met = async {
        match what {
            What::Says(text) => {
                // The request must have started, or the answer would not belong to one.
                let mut begun = [0; 65536];
                if stream.read(&mut begun).await.is_ok() {
                    let _ = stream.write_all(text.as_bytes()).await;
                    let _ = stream.shutdown().await;
                    // Unread data would reset the connection before the client reads the answer.
                    while matches!(stream.read(&mut begun).await, Ok(1..)) {}
                }
            }
            What::Silence => std::future::pending().await,
            What::Server(address) => {
                let mut server = TcpStream::connect(address).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut server).await;
            }
            What::Stranger => drop(Shown::generate().acceptor.accept(stream).await),
            What::Encrypted(address, shown) => {
                if let Ok(mut stream) = shown.acceptor.accept(stream).await {
                    let mut server = TcpStream::connect(address).await.unwrap();
                    let _ = copy_bidirectional(&mut stream, &mut server).await;
                }
            }
        }
    };
    tokio::select! {
        () = met => {}
        _ = turned.changed() => {}
    }
}
