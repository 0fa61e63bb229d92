//! Things that listen and are no MCP servers: fixed answers, silence, a certificate that nobody trusts, and a switch that
//! stands before a real server until it is turned.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

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

/// Something that listens on a loopback address for as long as this lives.
#[derive(Debug)]
pub struct Web {
    /// `127.0.0.1:PORT`
    pub address: String,
    turn: watch::Sender<What>,
    _task: AbortOnDropHandle<()>,
}

/// What whoever connects meets.
#[derive(Debug, Clone)]
pub enum What {
    /// These bytes once a request has begun, then the end.
    Says(String),
    /// Nothing, for ever.
    Silence,
    /// The server at this address.
    Server(String),
    /// A certificate that nobody trusts.
    Stranger,
    /// The server at this address, behind this certificate.
    Encrypted(String, Shown),
}

/// A certificate for this machine that was made a moment ago, by nobody.
#[derive(Clone)]
pub struct Shown {
    acceptor: TlsAcceptor,
    /// What must be trusted to trust it.
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

    /// An answer of HTTP with this status line, these header lines and this body.
    pub fn answer(status: &str, headers: &str, body: &str) -> What {
        let length = body.len();
        What::Says(format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
    }

    /// From now on whoever connects meets something else; connections that are open break off.
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
                // A request must have begun, or the answer would be to nothing.
                let mut begun = [0; 65536];
                if stream.read(&mut begun).await.is_ok() {
                    let _ = stream.write_all(text.as_bytes()).await;
                    let _ = stream.shutdown().await;
                    // What is left unread would reset the connection before the answer is read.
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
