//! Messages on a stream between replicas: the length of the JSON text in four bytes, then the text.
//! Unlike lines, this passes on JSON that contains line breaks.

use std::time::Duration;

use axum::body::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum size of a message. Only other replicas can send one, and results and definitions have
/// limits of their own.
pub(super) const LONGEST_MESSAGE: usize = 256 << 20;
/// The longest time without a message on a stream.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(15);
const LENGTH: usize = 4;

/// Why no further message can be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("the connection broke")]
    Broken,
    #[error("a message exceeds the limit of {LONGEST_MESSAGE} bytes")]
    TooLarge,
    #[error("a message is invalid: {0}")]
    Invalid(#[from] serde_json::Error),
}

/// Returns the bytes of one message.
pub(super) fn encode_frame<T: Serialize>(message: &T) -> Result<Bytes, FrameError> {
    let mut frame = vec![0; LENGTH];
    serde_json::to_writer(&mut frame, message)?;
    let length = u32::try_from(frame.len() - LENGTH).map_err(|_| FrameError::TooLarge)?;
    frame[..LENGTH].copy_from_slice(&length.to_be_bytes());
    Ok(frame.into())
}

/// Reads messages from the body of a response.
pub(super) struct FrameReader {
    body: BoxStream<'static, Result<Bytes, reqwest::Error>>,
    buffer: Vec<u8>,
}

impl FrameReader {
    pub(super) fn new(response: reqwest::Response) -> Self {
        Self { body: response.bytes_stream().boxed(), buffer: Vec::new() }
    }

    /// Returns the next message. Nothing is lost if the future is dropped.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Result<T, FrameError> {
        loop {
            if let Some(message) = take_frame(&mut self.buffer)? {
                return Ok(message);
            }
            let chunk = self.body.next().await.and_then(Result::ok).ok_or(FrameError::Broken)?;
            self.buffer.extend_from_slice(&chunk);
        }
    }
}

/// Takes the first message from the buffer, if it is complete.
fn take_frame<T: DeserializeOwned>(buffer: &mut Vec<u8>) -> Result<Option<T>, FrameError> {
    let Some((length, rest)) = buffer.split_first_chunk::<LENGTH>() else { return Ok(None) };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if length > LONGEST_MESSAGE {
        return Err(FrameError::TooLarge);
    }
    let Some(text) = rest.get(..length) else { return Ok(None) };
    let message = serde_json::from_slice(text)?;
    buffer.drain(..LENGTH + length);
    Ok(Some(message))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{FrameError, LONGEST_MESSAGE, encode_frame, take_frame};

    #[test]
    fn messages_are_read_back_however_they_are_split() {
        let messages = [json!({"a": "line\nbreak"}), json!(null), json!(["x".repeat(1_000)])];
        let bytes: Vec<u8> =
            messages.iter().flat_map(|message| encode_frame(message).unwrap().to_vec()).collect();
        for size in [1, 3, 7, bytes.len()] {
            let (mut buffer, mut read) = (Vec::new(), Vec::new());
            for chunk in bytes.chunks(size) {
                buffer.extend_from_slice(chunk);
                while let Some(message) = take_frame::<Value>(&mut buffer).unwrap() {
                    read.push(message);
                }
            }
            assert_eq!(read, messages, "in chunks of {size} bytes");
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn a_message_that_is_too_large_or_not_json_is_an_error() {
        let mut large = u32::try_from(LONGEST_MESSAGE + 1).unwrap().to_be_bytes().to_vec();
        assert!(matches!(take_frame::<Value>(&mut large), Err(FrameError::TooLarge)));
        let mut garbage = [&2_u32.to_be_bytes()[..], b"{]"].concat();
        assert!(matches!(take_frame::<Value>(&mut garbage), Err(FrameError::Invalid(_))));
    }
}
