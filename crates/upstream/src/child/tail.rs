//! The last lines that a process wrote to standard error.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncReadExt};

const BYTES: usize = 64 * 1024;
const LINES: usize = 200;
/// Lines passed to the listener are truncated to this many bytes.
const LONGEST: usize = 16 * 1024;

/// Receives every line. It must not block.
pub type LineListener = Arc<dyn Fn(&str) + Send + Sync>;

/// A buffer of at most the last 200 lines and the last 64 KiB.
#[derive(Debug, Default)]
pub(super) struct StderrTail(Mutex<TailBuffer>);

#[derive(Default)]
struct TailBuffer {
    bytes: Vec<u8>,
    /// The current line, truncated, until its line break arrives.
    partial_line: Vec<u8>,
    listener: Option<LineListener>,
    /// Whether the beginning of the first line was discarded.
    starts_mid_line: bool,
}

impl StderrTail {
    /// Reads until the end of the stream.
    pub(super) async fn fill(&self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            self.add(&buffer[..read]);
        }
    }

    /// Passes the buffered lines to the listener, and every line from now on.
    pub(super) fn set_listener(&self, listener: LineListener) {
        let mut buffer = self.lock();
        for line in buffer.bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            listener(&text(line));
        }
        buffer.listener = Some(listener);
    }

    fn add(&self, more: &[u8]) {
        let mut buffer = self.lock();
        buffer.emit_lines(more);
        buffer.bytes.extend_from_slice(more);
        if let Some(excess) = buffer.bytes.len().checked_sub(BYTES).filter(|excess| *excess > 0) {
            buffer.starts_mid_line = buffer.bytes[excess - 1] != b'\n';
            buffer.bytes.drain(..excess);
        }
    }

    /// Returns the lines so far, including an incomplete last one. Invalid UTF-8 becomes the
    /// replacement character.
    pub(super) fn lines(&self) -> Vec<String> {
        let buffer = self.lock();
        let text = String::from_utf8_lossy(&buffer.bytes);
        let lines: Vec<_> = text.lines().collect();
        // A truncated first line is misleading, so it is shown only if it is the only one.
        let whole = lines.get(usize::from(buffer.starts_mid_line && lines.len() > 1)..).unwrap_or_default();
        whole.iter().skip(whole.len().saturating_sub(LINES)).map(|line| (*line).to_owned()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, TailBuffer> {
        self.0.lock()
    }
}

impl TailBuffer {
    /// Passes the lines that end in this chunk to the listener, and buffers the rest.
    fn emit_lines(&mut self, more: &[u8]) {
        for piece in more.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST.saturating_sub(self.partial_line.len());
            self.partial_line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                if let Some(listener) = &self.listener {
                    listener(&text(&self.partial_line));
                }
                self.partial_line.clear();
            }
        }
    }
}

impl std::fmt::Debug for TailBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TailBuffer").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// Returns a line without its line break.
fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end_matches(['\r', '\n']).to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{BYTES, LINES, LONGEST, StderrTail};

    #[test]
    fn lines_are_stored_unchanged() {
        let tail = StderrTail::default();
        assert_eq!(tail.lines(), Vec::<String>::new());
        tail.add(b"one\r\n\x1b[31mtwo\x07\n\nth");
        tail.add(b"ree\xff");
        assert_eq!(tail.lines(), ["one", "\u{1b}[31mtwo\u{7}", "", "three\u{fffd}"]);
    }

    #[test]
    fn the_listener_receives_every_line_once() {
        let lines = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let tail = StderrTail::default();
        tail.add(b"one\r\ntw");
        let received = Arc::clone(&lines);
        tail.set_listener(Arc::new(move |line: &str| received.lock().push(line.to_owned())));
        tail.add(b"o\n\nthree");
        tail.add(&[b'x'; LONGEST]);
        tail.add(b"\nfour");
        let long = format!("three{}", "x".repeat(LONGEST - 5));
        assert_eq!(*lines.lock(), ["one", "two", "", &long]);
    }

    #[test]
    fn discards_the_oldest_lines() {
        let tail = StderrTail::default();
        for line in 0..1_000 {
            tail.add(format!("{line}\n").as_bytes());
        }
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str(), lines[LINES - 1].as_str()), (LINES, "800", "999"));
    }

    #[test]
    fn discards_the_oldest_bytes_and_a_truncated_first_line() {
        let tail = StderrTail::default();
        for line in 0..100 {
            tail.add(format!("{line:02}{}\n", "x".repeat(997)).as_bytes());
        }
        let lines = tail.lines();
        assert_eq!((lines.len(), &lines[0][..2]), (BYTES / 1_000, "35"));
        assert!(lines.iter().all(|line| line.len() == 999));
    }

    #[test]
    fn a_line_without_a_line_break_is_bounded() {
        let tail = StderrTail::default();
        for _ in 0..50 {
            tail.add(&[b'x'; 4096]);
        }
        assert_eq!(tail.lines(), ["x".repeat(BYTES)]);
    }
}
