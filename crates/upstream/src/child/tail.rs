//! The last of what a process said on standard error.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncReadExt};

const BYTES: usize = 64 * 1024;
const LINES: usize = 200;
/// A line that is told is cut here.
const LONGEST: usize = 16 * 1024;

/// Who hears every line. Must not wait.
pub(crate) type LineListener = Arc<dyn Fn(&str) + Send + Sync>;

/// At most the last 200 lines and the last 64 KiB, however much is said.
#[derive(Debug, Default)]
pub(super) struct StderrTail(Mutex<TailBuffer>);

#[derive(Default)]
struct TailBuffer {
    bytes: Vec<u8>,
    /// What was said of a line whose end has not come, as far as it is told.
    partial_line: Vec<u8>,
    listener: Option<LineListener>,
    /// Whether the first line has lost its beginning.
    starts_mid_line: bool,
}

impl StderrTail {
    /// Reads until there is no more to read.
    pub(super) async fn fill(&self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            self.add(&buffer[..read]);
        }
    }

    /// Has every line told from now on, and those that are kept.
    pub(super) fn set_listener(&self, listener: LineListener) {
        let mut kept = self.lock();
        for line in kept.bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            listener(&text(line));
        }
        kept.listener = Some(listener);
    }

    fn add(&self, more: &[u8]) {
        let mut kept = self.lock();
        kept.emit_lines(more);
        kept.bytes.extend_from_slice(more);
        if let Some(over) = kept.bytes.len().checked_sub(BYTES).filter(|over| *over > 0) {
            kept.starts_mid_line = kept.bytes[over - 1] != b'\n';
            kept.bytes.drain(..over);
        }
    }

    /// The lines so far, the last one also if it is not finished. Bytes that are no text are shown as such.
    pub(super) fn lines(&self) -> Vec<String> {
        let kept = self.lock();
        let text = String::from_utf8_lossy(&kept.bytes);
        let lines: Vec<_> = text.lines().collect();
        // Half a line misleads, unless there is nothing else.
        let whole = lines.get(usize::from(kept.starts_mid_line && lines.len() > 1)..).unwrap_or_default();
        whole.iter().skip(whole.len().saturating_sub(LINES)).map(|line| (*line).to_owned()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, TailBuffer> {
        self.0.lock()
    }
}

impl TailBuffer {
    /// Tells the lines that end in this piece, and remembers how the next one begins.
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

/// A line without its end.
fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end_matches(['\r', '\n']).to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{BYTES, LINES, LONGEST, StderrTail};

    #[test]
    fn keeps_what_was_said_raw() {
        let tail = StderrTail::default();
        assert_eq!(tail.lines(), Vec::<String>::new());
        tail.add(b"one\r\n\x1b[31mtwo\x07\n\nth");
        tail.add(b"ree\xff");
        assert_eq!(tail.lines(), ["one", "\u{1b}[31mtwo\u{7}", "", "three\u{fffd}"]);
    }

    #[test]
    fn who_listens_hears_every_line_once() {
        let heard = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let tail = StderrTail::default();
        tail.add(b"one\r\ntw");
        let told = Arc::clone(&heard);
        tail.set_listener(Arc::new(move |line: &str| told.lock().push(line.to_owned())));
        tail.add(b"o\n\nthree");
        tail.add(&[b'x'; LONGEST]);
        tail.add(b"\nfour");
        let long = format!("three{}", "x".repeat(LONGEST - 5));
        assert_eq!(*heard.lock(), ["one", "two", "", &long]);
    }

    #[test]
    fn forgets_the_oldest_lines() {
        let tail = StderrTail::default();
        for line in 0..1_000 {
            tail.add(format!("{line}\n").as_bytes());
        }
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str(), lines[LINES - 1].as_str()), (LINES, "800", "999"));
    }

    #[test]
    fn forgets_the_oldest_bytes_and_shows_no_half_line() {
        let tail = StderrTail::default();
        for line in 0..100 {
            tail.add(format!("{line:02}{}\n", "x".repeat(997)).as_bytes());
        }
        let lines = tail.lines();
        assert_eq!((lines.len(), &lines[0][..2]), (BYTES / 1_000, "35"));
        assert!(lines.iter().all(|line| line.len() == 999));
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let tail = StderrTail::default();
        for _ in 0..50 {
            tail.add(&[b'x'; 4096]);
        }
        assert_eq!(tail.lines(), ["x".repeat(BYTES)]);
    }
}
