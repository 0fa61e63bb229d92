//! A proxy between a client and the process of a server. All bytes pass unchanged; the lines in them
//! are recorded before they are passed on, so that an answer is never recorded before its request.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use toolyard_upstream::{Child, CommandSettings, MESSAGE_BYTES, SpawnError, SupervisorCommand};
use toolyard_wire::{MessageTap, WireDirection};

use crate::lines::{LineSplitter, SplitLine};
use crate::writer::CassetteWriter;

/// How long the server may take to exit after the client has closed its side.
const GRACE: Duration = Duration::from_secs(10);
/// How long the server may take to exit after it has closed its output.
const EXIT: Duration = Duration::from_secs(2);

/// The streams of the client.
#[derive(Debug)]
pub struct RecordStreams<R, W> {
    pub from_client: R,
    pub to_client: W,
}

/// How a recorded session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordEnd {
    /// The client closed its side.
    ClientClosed,
    /// The server exited on its own.
    ServerExited {
        code: Option<i32>,
        description: String,
    },
    Stopped,
}

/// Runs the server and records the session until one side ends it or `stop` is canceled. `stderr`
/// receives every line that the server writes to standard error; it must not block.
pub async fn record_stdio(
    command: &CommandSettings,
    supervisor: &SupervisorCommand,
    writer: &Arc<CassetteWriter>,
    streams: RecordStreams<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    stderr: impl Fn(&str) + Send + Sync + 'static,
    stop: &CancellationToken,
) -> Result<RecordEnd, SpawnError> {
    let mut child = Child::spawn(command, supervisor)?;
    let recording = Arc::clone(writer);
    child.forward_stderr(Arc::new(move |line: &str| {
        recording.write_stderr(line);
        stderr(line);
    }));
    let Some((mut input, mut output)) = child.take_streams() else {
        // A new process has its streams.
        return Ok(RecordEnd::Stopped);
    };
    // Over stdio, there is one stream and no status.
    let tap = writer.tap(Option::default(), Option::default());
    let RecordStreams { mut from_client, mut to_client } = streams;
    let requests = async {
        copy(&mut from_client, &mut input, &tap, WireDirection::ToServer, writer).await;
        // Tells the server that nothing more follows.
        let _ = input.shutdown().await;
    };
    let answers = copy(&mut output, &mut to_client, &tap, WireDirection::FromServer, writer);
    tokio::pin!(requests, answers);
    let mut end = tokio::select! {
        () = &mut requests => RecordEnd::ClientClosed,
        () = &mut answers => RecordEnd::ServerExited { code: None, description: String::new() },
        () = stop.cancelled() => RecordEnd::Stopped,
    };
    match &mut end {
        // The last answers still reach the client.
        RecordEnd::ClientClosed => {
            tokio::select! {
                () = &mut answers => {}
                () = stop.cancelled() => {}
                () = tokio::time::sleep(GRACE) => {}
            }
            child.stop(if stop.is_cancelled() { Duration::ZERO } else { EXIT }).await;
        }
        RecordEnd::ServerExited { code, description } => {
            // The client can also have closed its end of the output.
            let exit = match tokio::time::timeout(EXIT, child.wait()).await {
                Ok(exit) => exit,
                Err(_) => child.stop(EXIT).await,
            };
            (*code, *description) = (exit.code, exit.description);
        }
        RecordEnd::Stopped => drop(child.stop(Duration::ZERO).await),
    }
    Ok(end)
}

/// Copies until the end of the input, or until the output is closed.
async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    tap: &MessageTap,
    direction: WireDirection,
    writer: &CassetteWriter,
) {
    let mut splitter = LineSplitter::new(MESSAGE_BYTES);
    let mut chunk = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        let bytes = &chunk[..length];
        splitter.push(bytes, |line| match line {
            SplitLine::Complete(line) => {
                // Some programs end lines with a carriage return too.
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if !line.trim_ascii().is_empty() {
                    tap(direction, line);
                }
            }
            SplitLine::TooLong => writer.write_note(&too_long(direction)),
        });
        if to.write_all(bytes).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
    if let Some(rest) = splitter.finish() {
        tap(direction, &rest);
    }
}

pub(crate) fn too_long(direction: WireDirection) -> String {
    let side = match direction {
        WireDirection::ToServer => "client",
        WireDirection::FromServer => "server",
    };
    format!("a message of the {side} exceeds the limit of {MESSAGE_BYTES} bytes and is not in the recording")
}
