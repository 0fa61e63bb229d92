//! A server at the other end of two byte streams, with one message per line. This module does not
//! know which process owns the streams.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::message_log::{MessageLog, WireDirection};
use super::pending_requests::PendingRequests;
use super::{OutboundRequest, ServerMessage, ServerMessageHandler, WireError, too_large};
use crate::RawJson;
use crate::message::{InvalidMessage, RequestId, RpcMessage, parse_all, write_notification, write_request};

const QUEUE: usize = 64;
/// The maximum number of characters of an invalid line in a message.
const NOISE: usize = 1_000;
/// The buffer is replaced after a line longer than this.
const LARGE_LINE: usize = 64 * 1024;

/// A server over stdio.
#[derive(Debug)]
pub struct StdioClient {
    out: mpsc::Sender<String>,
    pending: Arc<PendingRequests>,
}

/// Connects to the streams. The future must be polled while the connection is in use. It completes
/// when the connection ends.
pub fn open_stdio(
    reader: impl AsyncRead + Unpin + Send + 'static,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    longest: usize,
    listener: ServerMessageHandler,
    message_log: Arc<MessageLog>,
) -> (StdioClient, impl Future<Output = ()> + Send) {
    let (out, outgoing) = mpsc::channel(QUEUE);
    let pending = Arc::new(PendingRequests::new(message_log));
    let lines = StdioClient { out, pending: Arc::clone(&pending) };
    let driver = async move {
        let why = tokio::select! {
            why = read(reader, &pending, longest, &listener) => why,
            why = write(writer, outgoing) => why,
        };
        pending.fail_all(&why);
    };
    (lines, driver)
}

impl StdioClient {
    pub(crate) async fn request(&self, request: OutboundRequest) -> Result<RawJson, WireError> {
        let id = self.pending.next_id();
        let answer = self.pending.register(&id)?;
        let _forget = ForgetOnDrop { client: self, id: id.clone() };
        self.send(write_request(&id, request.method, &request.params)).await?;
        answer.await.unwrap_or_else(|_| Err(WireError::Lost("the connection was closed".to_owned())))
    }

    pub(crate) async fn send(&self, text: String) -> Result<(), WireError> {
        self.pending.message_log.write(WireDirection::ToServer, &text);
        if self.out.send(text).await.is_err() {
            return Err(WireError::Lost(self.pending.closed().await));
        }
        Ok(())
    }

    pub(crate) async fn closed(&self) -> String {
        self.pending.closed().await
    }
}

/// Notifies the server that a request without a response is canceled.
struct ForgetOnDrop<'a> {
    client: &'a StdioClient,
    id: RequestId,
}

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        if self.client.pending.forget(&self.id) {
            let _ = self.client.out.try_send(write_cancelled(&self.id));
        }
    }
}

pub(crate) fn write_cancelled(id: &RequestId) -> String {
    let params = format!(r#"{{"requestId":{},"reason":"the request was abandoned"}}"#, id.as_json());
    let params = RawValue::from_string(params).unwrap_or_else(|_| RawValue::NULL.to_owned());
    write_notification("notifications/cancelled", &params)
}

async fn read(
    mut reader: impl AsyncRead + Unpin,
    pending: &PendingRequests,
    longest: usize,
    listener: &ServerMessageHandler,
) -> String {
    let mut buffer = BytesMut::with_capacity(8 * 1024);
    let mut scanned = 0;
    loop {
        if let Some(at) = memchr::memchr(b'\n', &buffer[scanned..]) {
            if scanned + at > longest {
                return format!("the server {}", too_large(longest));
            }
            let line = buffer.split_to(scanned + at);
            buffer.advance(1);
            scanned = 0;
            handle_line(line.trim_ascii(), pending, listener);
            if line.len() > LARGE_LINE {
                // The buffer has grown with the line and would otherwise keep that size as long as
                // the connection lives.
                buffer = BytesMut::from(&buffer[..]);
            }
            continue;
        }
        scanned = buffer.len();
        if buffer.len() > longest {
            return format!("the server {}", too_large(longest));
        }
        match reader.read_buf(&mut buffer).await {
            Ok(0) => return "the server closed its output".to_owned(),
            Ok(_) => {}
            Err(error) => return format!("cannot read the server's output: {error}"),
        }
    }
}

fn handle_line(line: &[u8], pending: &PendingRequests, listener: &ServerMessageHandler) {
    if line.is_empty() {
        return;
    }
    if let Ok(text) = std::str::from_utf8(line) {
        pending.message_log.write(WireDirection::FromServer, text);
    }
    for message in parse_all(line) {
        dispatch(message, line, "standard output", pending, listener);
    }
}

pub(crate) fn dispatch(
    message: Result<RpcMessage, InvalidMessage>,
    line: &[u8],
    place: &str,
    pending: &PendingRequests,
    listener: &ServerMessageHandler,
) {
    match message {
        Ok(RpcMessage::Response(response)) => {
            let id = response.id.clone();
            if !pending.complete(response) {
                pending.record_stray_response(&id);
            }
        }
        Ok(RpcMessage::Notification(notification)) => {
            listener(ServerMessage::Notification(notification, None))
        }
        Ok(RpcMessage::Request(request)) => listener(ServerMessage::Request(request, None)),
        Err(refusal) => {
            let text = String::from_utf8_lossy(&line[..line.len().min(NOISE)]).into_owned();
            pending.record_invalid_message(place, &refusal, &text);
            listener(ServerMessage::UnparsableLine(text));
        }
    }
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut outgoing: mpsc::Receiver<String>) -> String {
    while let Some(mut lines) = outgoing.recv().await {
        lines.push('\n');
        while lines.len() < 64 * 1024
            && let Ok(more) = outgoing.try_recv()
        {
            lines.push_str(&more);
            lines.push('\n');
        }
        if let Err(error) = async {
            writer.write_all(lines.as_bytes()).await?;
            writer.flush().await
        }
        .await
        {
            return format!("cannot write to the server's input: {error}");
        }
    }
    "the connection was closed".to_owned()
}
