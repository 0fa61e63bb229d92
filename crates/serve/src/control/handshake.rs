//! The WebSocket handshake. Before authentication, at most [`MOST_UNAUTHENTICATED_BYTES`] bytes are
//! read from a client. They are passed to tungstenite only once they contain a whole message,
//! because its limits cannot be raised later.

use std::io::Cursor;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::PROTOCOL;
use super::outbox::CloseReason;

/// Maximum number of bytes read from a client before authentication, including frame headers and
/// pings.
pub(super) const MOST_UNAUTHENTICATED_BYTES: usize = 4 * 1024;
/// Size of the read buffer. Tungstenite fills the buffer with zeros before every read. With the
/// default of 128 KiB, this took three quarters of the instructions of a call.
const READ_BUFFER: usize = 8 * 1024;

pub(super) type ControlStream = WebSocketStream<TokioIo<Upgraded>>;

/// Builds the response that upgrades the connection. It selects our subprotocol if the client
/// offers it.
pub(super) fn switch_protocols(headers: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let response_headers = response.headers_mut();
    response_headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    response_headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    let accept = headers.get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    if let Some(Ok(accept)) = accept.map(|accept| HeaderValue::from_str(&accept)) {
        response_headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offered = offered.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    if offered.any(|name| name.trim() == PROTOCOL) {
        response_headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    }
    response
}

/// Opens the socket of an authenticated client, starting with the bytes that were read before.
pub(super) async fn accept(io: TokioIo<Upgraded>, read: Vec<u8>, longest: usize) -> ControlStream {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(longest))
        .max_frame_size(Some(longest));
    WebSocketStream::from_partially_read(io, read, Role::Server, Some(config)).await
}

/// Opens a socket only to send the close reason.
pub(super) async fn reject(io: TokioIo<Upgraded>) -> ControlStream {
    let config = WebSocketConfig::default()
        .read_buffer_size(MOST_UNAUTHENTICATED_BYTES)
        .max_message_size(Some(MOST_UNAUTHENTICATED_BYTES))
        .max_frame_size(Some(MOST_UNAUTHENTICATED_BYTES));
    WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await
}

/// Reads until there is one whole message or a close frame, and never beyond the limit.
pub(super) async fn read_first_message(io: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, CloseReason> {
    let mut read = Vec::with_capacity(512);
    loop {
        if holds_message(&read)? {
            return Ok(read);
        }
        let room = MOST_UNAUTHENTICATED_BYTES - read.len();
        if room == 0 {
            return Err(CloseReason::TooLarge);
        }
        let count =
            (&mut *io).take(room as u64).read_buf(&mut read).await.map_err(|_| CloseReason::PeerClosed)?;
        if count == 0 {
            return Err(CloseReason::PeerClosed);
        }
    }
}

/// Returns whether the bytes contain a whole message. A frame whose header announces more than the
/// limit is rejected before its payload arrives.
fn holds_message(bytes: &[u8]) -> Result<bool, CloseReason> {
    let mut cursor = Cursor::new(bytes);
    loop {
        let header = FrameHeader::parse(&mut cursor)
            .map_err(|_| CloseReason::InvalidMessage("invalid WebSocket frame"))?;
        let Some((header, length)) = header else { return Ok(false) };
        let end = cursor.position().saturating_add(length);
        if end > MOST_UNAUTHENTICATED_BYTES as u64 {
            return Err(CloseReason::TooLarge);
        }
        if end > bytes.len() as u64 {
            return Ok(false);
        }
        match header.opcode {
            OpCode::Control(Control::Close) => return Ok(true),
            OpCode::Data(Data::Text | Data::Binary | Data::Continue) if header.is_final => return Ok(true),
            // The message continues in another frame, or this is a ping.
            OpCode::Data(_) | OpCode::Control(_) => cursor.set_position(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::{CloseReason, MOST_UNAUTHENTICATED_BYTES, read_first_message};

    /// Returns a frame as a client sends it, masked with zeros.
    fn frame(first: u8, announced: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        match announced {
            0..=125 => bytes.push(0x80 | u8::try_from(announced).unwrap()),
            126..=65_535 => {
                bytes.push(0x80 | 126);
                bytes.extend(u16::try_from(announced).unwrap().to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 127);
                bytes.extend(announced.to_be_bytes());
            }
        }
        bytes.extend([0; 4]);
        bytes.extend(payload);
        bytes
    }

    async fn read(bytes: &[u8]) -> Result<Vec<u8>, CloseReason> {
        let (mut client, mut server) = tokio::io::duplex(64 * 1024);
        client.write_all(bytes).await.unwrap();
        drop(client);
        read_first_message(&mut server).await
    }

    #[tokio::test]
    async fn a_frame_that_announces_ten_megabytes_is_refused_by_its_header() {
        let (mut client, mut server) = tokio::io::duplex(64);
        client.write_all(&frame(0x81, 10 << 20, b"")).await.unwrap();
        assert_eq!(read_first_message(&mut server).await, Err(CloseReason::TooLarge));
    }

    #[tokio::test]
    async fn continuation_frames_and_pings_count_towards_the_same_limit() {
        let mut parts = frame(0x01, 100, &[b'a'; 100]);
        while parts.len() < 3 * MOST_UNAUTHENTICATED_BYTES {
            parts.extend(frame(0x00, 100, &[b'a'; 100]));
        }
        assert_eq!(read(&parts).await, Err(CloseReason::TooLarge));
        let pings: Vec<u8> = (0..100).flat_map(|_| frame(0x89, 100, &[b'a'; 100])).collect();
        assert_eq!(read(&pings).await, Err(CloseReason::TooLarge));
    }

    #[tokio::test]
    async fn no_more_is_read_than_the_limit_and_what_is_read_is_handed_on() {
        let (mut client, mut server) = tokio::io::duplex(64 * 1024);
        client.write_all(&frame(0x01, 60_000, &[b'a'; 60_000])).await.unwrap();
        assert_eq!(read_first_message(&mut server).await, Err(CloseReason::TooLarge));
        // A message followed immediately by another one.
        let mut hello = frame(0x89, 2, b"hi");
        hello.extend(frame(0x01, 3, b"hel"));
        hello.extend(frame(0x80, 2, b"lo"));
        hello.extend(frame(0x81, 4, b"more"));
        assert_eq!(read(&hello).await.unwrap(), hello);
        assert_eq!(read(&hello[..20]).await, Err(CloseReason::PeerClosed));
        let close = frame(0x88, 0, b"");
        assert_eq!(read(&close).await.unwrap(), close);
        assert!(matches!(read(&[0x83, 0x80, 0, 0, 0, 0]).await, Err(CloseReason::InvalidMessage(_))));
        let full =
            frame(0x81, MOST_UNAUTHENTICATED_BYTES as u64 - 8, &[b'a'; MOST_UNAUTHENTICATED_BYTES - 8]);
        assert_eq!(read(&full).await.unwrap().len(), MOST_UNAUTHENTICATED_BYTES);
    }
}
