//! The last of what a process said on standard error.

use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

const BYTES: usize = 64 * 1024;
const LINES: usize = 200;

/// At most the last 200 lines and the last 64 KiB, however much is said.
#[derive(Debug, Default)]
pub(super) struct Tail(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    /// Whether the first line has lost its beginning.
    cut: bool,
}

impl Tail {
    /// Reads until there is no more to read.
    pub(super) async fn fill(&self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            self.add(&buffer[..read]);
        }
    }

    fn add(&self, more: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes.extend_from_slice(more);
        if let Some(over) = kept.bytes.len().checked_sub(BYTES).filter(|over| *over > 0) {
            kept.cut = kept.bytes[over - 1] != b'\n';
            kept.bytes.drain(..over);
        }
    }

    /// The lines so far, the last one also if it is not finished. Bytes that are no text are shown as such.
    pub(super) fn lines(&self) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept.bytes);
        let lines: Vec<_> = text.lines().collect();
        // Half a line misleads, unless there is nothing else.
        let whole = lines.get(usize::from(kept.cut && lines.len() > 1)..).unwrap_or_default();
        whole.iter().skip(whole.len().saturating_sub(LINES)).map(|line| (*line).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES, LINES, Tail};

    #[test]
    fn keeps_what_was_said_raw() {
        let tail = Tail::default();
        assert_eq!(tail.lines(), Vec::<String>::new());
        tail.add(b"one\r\n\x1b[31mtwo\x07\n\nth");
        tail.add(b"ree\xff");
        assert_eq!(tail.lines(), ["one", "\u{1b}[31mtwo\u{7}", "", "three\u{fffd}"]);
    }

    #[test]
    fn forgets_the_oldest_lines() {
        let tail = Tail::default();
        for line in 0..1_000 {
            tail.add(format!("{line}\n").as_bytes());
        }
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str(), lines[LINES - 1].as_str()), (LINES, "800", "999"));
    }

    #[test]
    fn forgets_the_oldest_bytes_and_shows_no_half_line() {
        let tail = Tail::default();
        for line in 0..100 {
            tail.add(format!("{line:02}{}\n", "x".repeat(997)).as_bytes());
        }
        let lines = tail.lines();
        assert_eq!((lines.len(), &lines[0][..2]), (BYTES / 1_000, "35"));
        assert!(lines.iter().all(|line| line.len() == 999));
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let tail = Tail::default();
        for _ in 0..50 {
            tail.add(&[b'x'; 4096]);
        }
        assert_eq!(tail.lines(), ["x".repeat(BYTES)]);
    }
}
