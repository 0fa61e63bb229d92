//! Server-sent events, parsed from a response as it arrives.

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt};

use super::{WireError, too_large};

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    pub(crate) kind: String,
    pub(crate) data: String,
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<u64>,
}

/// Reads events until the stream ends. The memory for an incomplete event is bounded.
pub(crate) struct SseReader<S> {
    stream: S,
    buffer: BytesMut,
    scanned: usize,
    longest: usize,
    event: SseEvent,
    started: bool,
}

impl<S, E> SseReader<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    pub(crate) fn new(stream: S, longest: usize) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            scanned: 0,
            longest,
            event: SseEvent::default(),
            started: false,
        }
    }

    /// Returns the next event, or `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<SseEvent>, WireError> {
        loop {
            while let Some(line) = self.take_line() {
                if line.is_empty() {
                    if std::mem::take(&mut self.started) {
                        return Ok(Some(std::mem::take(&mut self.event)));
                    }
                } else {
                    self.parse_field(&line);
                }
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// Returns the next line of a body without events. The last line may lack a line end.
    pub(crate) async fn next_line(&mut self) -> Result<Option<String>, WireError> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            if !self.fill().await? {
                let rest = self.buffer.split();
                self.scanned = 0;
                return Ok((!rest.is_empty()).then(|| String::from_utf8_lossy(&rest).into_owned()));
            }
        }
    }

    /// Reads more bytes. Returns false at the end of the stream.
    async fn fill(&mut self) -> Result<bool, WireError> {
        if self.buffer.len() + self.event.data.len() > self.longest {
            return Err(WireError::TooLarge(too_large(self.longest)));
        }
        match self.stream.next().await {
            Some(Ok(bytes)) => self.buffer.extend_from_slice(&bytes),
            Some(Err(error)) => return Err(WireError::Lost(error.to_string())),
            None => return Ok(false),
        }
        Ok(true)
    }

    fn take_line(&mut self) -> Option<Bytes> {
        let at = memchr::memchr2(b'\n', b'\r', &self.buffer[self.scanned..]);
        let Some(at) = at.map(|at| self.scanned + at) else {
            self.scanned = self.buffer.len();
            return None;
        };
        // A trailing carriage return may be the first half of a line end.
        if self.buffer[at] == b'\r' && at + 1 == self.buffer.len() {
            self.scanned = at;
            return None;
        }
        let ends = if self.buffer[at] == b'\r' && self.buffer[at + 1] == b'\n' { 2 } else { 1 };
        let line = self.buffer.split_to(at).freeze();
        self.buffer.advance(ends);
        self.scanned = 0;
        Some(line)
    }

    fn parse_field(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event.kind),
            "id" => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok(),
            _ => return,
        }
        self.started = true;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::{any, proptest};

    use super::{SseEvent, SseReader};

    async fn read(pieces: Vec<Vec<u8>>) -> Vec<SseEvent> {
        let stream =
            futures_util::stream::iter(pieces.into_iter().map(|piece| Ok::<_, String>(Bytes::from(piece))));
        let mut events = SseReader::new(stream, 10_000);
        let mut seen = Vec::new();
        while let Ok(Some(event)) = events.next().await {
            seen.push(event);
        }
        seen
    }

    #[tokio::test]
    async fn reads_events_however_they_are_cut() {
        let text =
            b": hello\r\nid: 7\r\nretry: 500\r\ndata: \r\n\r\nevent: message\ndata: {\"a\":\ndata: 1}\n\n";
        let expect = vec![
            SseEvent { id: Some("7".into()), retry: Some(500), ..SseEvent::default() },
            SseEvent { kind: "message".into(), data: "{\"a\":\n1}".into(), ..SseEvent::default() },
        ];
        assert_eq!(read(vec![text.to_vec()]).await, expect);
        assert_eq!(read(text.iter().map(|byte| vec![*byte]).collect()).await, expect);
    }

    #[tokio::test]
    async fn an_endless_event_is_refused() {
        let stream = futures_util::stream::repeat_with(|| Ok::<_, String>(Bytes::from_static(b"data: x\n")));
        let refused = SseReader::new(stream, 10_000).next().await.unwrap_err().to_string();
        assert_eq!(refused, "sent a message that exceeds the limit of 10000 bytes (limits.message_bytes)");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_the_end(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..10)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(read(pieces));
        }
    }
}
