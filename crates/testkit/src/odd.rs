//! Servers that misbehave, each in one way, switched on by name. They share one small hand-written loop that has
//! nothing of the product in it, because the product's own server could not say most of this.

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

/// Which server, and over what.
#[derive(Debug, Clone)]
pub struct Options {
    pub kind: Kind,
    pub over: Over,
    /// How long `slow-start` takes.
    pub delay: Duration,
    /// Where `changes` counts its starts and `counts-sessions` writes a line for every session.
    pub file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    Stdio,
    Http,
}

/// Which eras a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Eras {
    Legacy,
    Modern,
    Both,
}

/// Serves until it is over; the exit code. Over HTTP, `announce` is told where it listens.
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

/// A server over HTTP in this very process, for as long as this lives.
#[derive(Debug)]
pub struct Nearby {
    /// Where its MCP endpoint is.
    pub url: String,
    _task: AbortOnDropHandle<()>,
}

/// Starts a server over HTTP in this very process.
pub async fn start_in_process(kind: Kind) -> Option<Nearby> {
    let (tell, told) = oneshot::channel();
    let options = Options { kind, over: Over::Http, delay: Duration::from_secs(2), file: None };
    let task = AbortOnDropHandle::new(tokio::spawn(async move {
        // Whoever waits for the address learns it if there is none.
        let announce = |address| {
            let _ = tell.send(address);
        };
        let _ = serve(options, announce).await;
    }));
    Some(Nearby { url: format!("http://{}/mcp", told.await.ok()?), _task: task })
}

/// Says something on standard error.
async fn write_stderr(text: &str) {
    let mut stderr = tokio::io::stderr();
    // A server whose standard error is closed has nobody to tell.
    let _ = stderr.write_all(text.as_bytes()).await;
    let _ = stderr.flush().await;
}
