//! Misbehaving servers, each with one fault, selected by name. They share a small hand-written loop
//! without product code, because the product's own server cannot produce most of these messages.

mod ask;
mod call;
mod http;
mod kind;
mod offer;
mod rpc;
mod seen;
mod stdio;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

pub use kind::Kind;
use rpc::Server;

/// Which server to run, and over which transport.
#[derive(Debug, Clone)]
pub struct Options {
    pub kind: Kind,
    pub over: Over,
    /// The delay of `slow-start`.
    pub delay: Duration,
    /// The file in which `changes` counts its starts and to which `counts-sessions` appends a line
    /// per session.
    pub file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    Stdio,
    Http,
}

/// The eras that a server supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Eras {
    Legacy,
    Modern,
    Both,
}

/// Serves until the server ends, and returns the exit code. Over HTTP, passes the address to
/// `announce`.
pub async fn serve(options: Options, announce: impl FnOnce(SocketAddr)) -> std::io::Result<u8> {
    if options.kind == Kind::DiesAtStart {
        write_stderr("odd: starting\nodd: cannot open the database: no such file\n").await;
        return Ok(3);
    }
    let (leave, mut leaving) = mpsc::channel(1);
    let over = options.over;
    let server = Arc::new(Server::new(options, leave)?);
    let serving = async {
        match over {
            Over::Stdio => stdio::serve(server).await,
            Over::Http => http::serve(server, announce).await,
        }
    };
    tokio::select! {
        served = serving => served.map(|()| 0),
        Some(code) = leaving.recv() => Ok(code),
    }
}

/// A server over HTTP in the current process. It stops when this value is dropped.
#[derive(Debug)]
pub struct Nearby {
    /// Address of its MCP endpoint.
    pub url: String,
    _task: AbortOnDropHandle<()>,
}

/// Starts a server over HTTP in the current process.
pub async fn start_in_process(kind: Kind) -> Option<Nearby> {
    let (sender, address) = oneshot::channel();
    let options = Options { kind, over: Over::Http, delay: Duration::from_secs(2), file: None };
    let task = AbortOnDropHandle::new(tokio::spawn(async move {
        // If serving fails, the sender is dropped and the receiver reports it.
        let announce = |address| {
            let _ = sender.send(address);
        };
        let _ = serve(options, announce).await;
    }));
    Some(Nearby { url: format!("http://{}/mcp", address.await.ok()?), _task: task })
}

/// Writes to standard error.
async fn write_stderr(text: &str) {
    let mut stderr = tokio::io::stderr();
    // If standard error is closed, there is nowhere to report that.
    let _ = stderr.write_all(text.as_bytes()).await;
    let _ = stderr.flush().await;
}
