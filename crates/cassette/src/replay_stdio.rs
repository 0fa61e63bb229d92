//! Replays a recording to one client over two byte streams, with one message per line.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolyard_upstream::MESSAGE_BYTES;
use toolyard_wire::{Packet, RequestId, RpcError, parse};

use crate::answer_error::write_error_response;
use crate::lines::{LineSplitter, SplitLine};
use crate::play::{FrameKind, Replay, ReplayFrame, ReplaySession};

const QUEUE: usize = 64;
/// The ID of a message whose ID cannot be read.
const NO_ID: Option<&RequestId> = None;
/// At this many open exchanges, the next line is not read until one ends.
const MOST_OPEN: usize = 256;
/// How long open exchanges may take after the client has closed its side.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves the client until it closes its side or `stop` is canceled.
pub async fn replay_stdio(
    replay: Arc<Replay>,
    (mut reader, writer): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin + Send + 'static),
    stop: CancellationToken,
) -> std::io::Result<()> {
    let (out, outgoing) = mpsc::channel(QUEUE);
    let writing = tokio::spawn(write(writer, outgoing));
    let session = ReplaySession::new(replay, out.clone());
    let mut splitter = LineSplitter::new(MESSAGE_BYTES);
    let mut playing = JoinSet::new();
    let mut chunk = vec![0; 64 * 1024];
    let read = loop {
        let read = tokio::select! {
            read = reader.read(&mut chunk) => read,
            () = out.closed() => Ok(0),
            () = stop.cancelled() => Ok(0),
        };
        let length = match read {
            Ok(0) => break Ok(()),
            Ok(length) => length,
            Err(error) => break Err(error),
        };
        let mut lines = Vec::new();
        splitter.push(&chunk[..length], |line| {
            lines.push(match line {
                SplitLine::Complete(line) => Some(line.to_vec()),
                SplitLine::TooLong => None,
            });
        });
        for line in lines {
            let Some(line) = line else {
                refuse(&out, &format!("message exceeds the limit of {MESSAGE_BYTES} bytes")).await;
                continue;
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            match parse(&line) {
                Ok(Packet::Single(message)) => {
                    if let Some(play) = session.accept(message, out.clone()) {
                        playing.spawn(play);
                    }
                }
                Ok(Packet::Batch(_)) => refuse(&out, "a replay does not support batches").await,
                Err(invalid) => {
                    let text = write_error_response(invalid.id.as_ref(), &invalid.error);
                    let _ = out.send(ReplayFrame { text, kind: FrameKind::Message }).await;
                }
            }
            while playing.len() >= MOST_OPEN {
                playing.join_next().await;
            }
            while playing.try_join_next().is_some() {}
        }
    };
    session.end_waiting();
    if !stop.is_cancelled() && !out.is_closed() {
        let drained = async { while playing.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(DRAIN, drained).await;
    }
    session.close();
    playing.shutdown().await;
    // These are the last senders, so the writer ends.
    drop((session, out));
    let _ = tokio::time::timeout(DRAIN, writing).await;
    read
}

async fn refuse(out: &mpsc::Sender<ReplayFrame>, message: &str) {
    let text = write_error_response(NO_ID, &RpcError::invalid_request(message));
    // A closed channel means that the client no longer reads.
    let _ = out.send(ReplayFrame { text, kind: FrameKind::Message }).await;
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut outgoing: mpsc::Receiver<ReplayFrame>) {
    while let Some(frame) = outgoing.recv().await {
        let text = match frame.kind {
            FrameKind::Body { error, .. } => error,
            FrameKind::Message | FrameKind::Response(_) => frame.text,
        };
        // Line breaks between tokens are only space.
        let mut line = text.replace(['\n', '\r'], " ");
        line.push('\n');
        if writer.write_all(line.as_bytes()).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}
