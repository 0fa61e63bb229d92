//! From an HTTP request to a WebSocket. Until it is known who is on the other side, at most [`MOST_UNWELCOME`] bytes are
//! read: tungstenite sees them only once they hold a whole message, because its limits cannot be raised later.

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

/// How many bytes are read of a client before it has said who it is, frame headers and pings included.
pub(super) const MOST_UNWELCOME: usize = 4 * 1024;
/// How much is read at once. Tungstenite fills that much with zeros before every read, and reads 128 KiB by default, which took
/// three quarters of the instructions of a call.
const READ_BUFFER: usize = 8 * 1024;

pub(super) type ControlStream = WebSocketStream<TokioIo<Upgraded>>;

/// The answer that turns a connection into a WebSocket, where the client offers our protocol or none at all.
pub(super) fn switch_protocols(headers: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = response.headers_mut();
    answer.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    answer.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    let accept = headers.get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    if let Some(Ok(accept)) = accept.map(|accept| HeaderValue::from_str(&accept)) {
        answer.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offered = offered.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    if offered.any(|name| name.trim() == PROTOCOL) {
        answer.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    }
    response
}

/// A socket of a known principal, with what was read of it before.
pub(super) async fn accept(io: TokioIo<Upgraded>, read: Vec<u8>, longest: usize) -> ControlStream {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(longest))
        .max_frame_size(Some(longest));
    WebSocketStream::from_partially_read(io, read, Role::Server, Some(config)).await
}

/// A socket that is only told why it is closed.
pub(super) async fn reject(io: TokioIo<Upgraded>) -> ControlStream {
    let config = WebSocketConfig::default()
        .read_buffer_size(MOST_UNWELCOME)
        .max_message_size(Some(MOST_UNWELCOME))
        .max_frame_size(Some(MOST_UNWELCOME));
    WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await
}

/// Reads until there is one whole message, or the client's goodbye, and not a byte beyond the limit.
pub(super) async fn read_first_message(io: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, CloseReason> {
    let mut read = Vec::with_capacity(512);
    loop {
        if holds_message(&read)? {
            return Ok(read);
        }
        let room = MOST_UNWELCOME - read.len();
        if room == 0 {
            return Err(CloseReason::TooLarge);
        }
        let some =
            (&mut *io).take(room as u64).read_buf(&mut read).await.map_err(|_| CloseReason::PeerClosed)?;
        if some == 0 {
            return Err(CloseReason::PeerClosed);
        }
    }
}

/// Whether these bytes hold a message to its end. What announces more than the limit is refused before it is sent.
fn holds_message(bytes: &[u8]) -> Result<bool, CloseReason> {
    let mut cursor = Cursor::new(bytes);
    loop {
        let header = FrameHeader::parse(&mut cursor)
            .map_err(|_| CloseReason::InvalidMessage("that is no WebSocket"))?;
        let Some((header, length)) = header else { return Ok(false) };
        let end = cursor.position().saturating_add(length);
        if end > MOST_UNWELCOME as u64 {
            return Err(CloseReason::TooLarge);
        }
        if end > bytes.len() as u64 {
            return Ok(false);
        }
        match header.opcode {
            OpCode::Control(Control::Close) => return Ok(true),
            OpCode::Data(Data::Text | Data::Binary | Data::Continue) if header.is_final => return Ok(true),
            // The rest is yet to come, or this was a ping.
            OpCode::Data(_) | OpCode::Control(_) => cursor.set_position(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::{CloseReason, MOST_UNWELCOME, read_first_message};

    /// A frame as a client sends it, masked with zeros.
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

    async fn read(sent: &[u8]) -> Result<Vec<u8>, CloseReason> {
        let (mut client, mut server) = tokio::io::duplex(64 * 1024);
        client.write_all(sent).await.unwrap();
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
        while parts.len() < 3 * MOST_UNWELCOME {
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
        // A hello with something right behind it.
        let mut hello = frame(0x89, 2, b"hi");
        hello.extend(frame(0x01, 3, b"hel"));
        hello.extend(frame(0x80, 2, b"lo"));
        hello.extend(frame(0x81, 4, b"more"));
        assert_eq!(read(&hello).await.unwrap(), hello);
        assert_eq!(read(&hello[..20]).await, Err(CloseReason::PeerClosed));
        let goodbye = frame(0x88, 0, b"");
        assert_eq!(read(&goodbye).await.unwrap(), goodbye);
        assert!(matches!(read(&[0x83, 0x80, 0, 0, 0, 0]).await, Err(CloseReason::InvalidMessage(_))));
        let full = frame(0x81, MOST_UNWELCOME as u64 - 8, &[b'a'; MOST_UNWELCOME - 8]);
        assert_eq!(read(&full).await.unwrap().len(), MOST_UNWELCOME);
    }
}
