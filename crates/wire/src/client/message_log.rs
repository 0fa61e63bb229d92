//! What was said on a connection, in both directions, for whoever debugs a server. Nothing is written down until
//! somebody looks, and nothing any more once nobody has looked for a while.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::violations::Violations;

const MOST: usize = 500;
const MOST_BYTES: usize = 1024 * 1024;
/// How much of one message is kept.
const LONGEST: usize = 16 * 1024;
/// How long after the last look things are still written down.
const INTEREST: Duration = Duration::from_secs(600);

/// Messages of one server, newest last. Headers are never on it, so neither are tokens.
#[derive(Debug, Default)]
pub struct MessageLog {
    recording: AtomicBool,
    buffer: Mutex<MessageLogBuffer>,
    violations: Violations,
}

#[derive(Debug, Default)]
struct MessageLogBuffer {
    messages: VecDeque<LoggedMessage>,
    /// How many were ever written down.
    written: u64,
    bytes: usize,
    last_read: Option<Instant>,
}

/// One message, cut where it was too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedMessage {
    /// Counts the messages of this tape, from one.
    pub number: u64,
    pub at: SystemTime,
    pub direction: WireDirection,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireDirection {
    ToServer,
    FromServer,
}

impl MessageLog {
    /// What the server has done against the rules, which is kept whether somebody looks or not.
    pub fn violations(&self) -> &Violations {
        &self.violations
    }

    /// What was said since the first look. The first look finds nothing, and switches the tape on.
    pub fn read(&self) -> Vec<LoggedMessage> {
        self.read_after(0)
    }

    /// The same, of what came after the message of this number.
    pub fn read_after(&self, number: u64) -> Vec<LoggedMessage> {
        let mut reel = self.lock();
        reel.last_read = Some(Instant::now());
        self.recording.store(true, Ordering::Relaxed);
        let first = reel.messages.partition_point(|taped| taped.number <= number);
        reel.messages.range(first..).cloned().collect()
    }

    pub(crate) fn write(&self, direction: WireDirection, text: impl AsRef<[u8]>) {
        // The rule, on every message: nobody looks.
        if !self.recording.load(Ordering::Relaxed) {
            return;
        }
        let text = String::from_utf8_lossy(text.as_ref());
        let mut reel = self.lock();
        if reel.last_read.is_none_or(|looked| looked.elapsed() > INTEREST) {
            self.recording.store(false, Ordering::Relaxed);
            *reel = MessageLogBuffer { written: reel.written, ..MessageLogBuffer::default() };
            return;
        }
        let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        reel.bytes += end;
        reel.written += 1;
        let (number, text) = (reel.written, text[..end].to_owned());
        reel.messages.push_back(LoggedMessage { number, at: SystemTime::now(), direction, text });
        while reel.messages.len() > MOST || reel.bytes > MOST_BYTES {
            match reel.messages.pop_front() {
                Some(oldest) => reel.bytes -= oldest.text.len(),
                None => break,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, MessageLogBuffer> {
        self.buffer.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::{INTEREST, MOST, MessageLog, WireDirection};

    fn texts(tape: &MessageLog) -> Vec<String> {
        tape.read().into_iter().map(|taped| taped.text).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_until_somebody_looks_nor_long_after() {
        let tape = MessageLog::default();
        tape.write(WireDirection::ToServer, "before");
        assert_eq!(texts(&tape), Vec::<String>::new());
        tape.write(WireDirection::ToServer, "one");
        tape.write(WireDirection::FromServer, "two");
        assert_eq!(texts(&tape), ["one", "two"]);
        let after: Vec<(u64, String)> =
            tape.read_after(1).into_iter().map(|taped| (taped.number, taped.text)).collect();
        assert_eq!(after, [(2, "two".to_owned())]);
        tokio::time::advance(INTEREST + INTEREST).await;
        tape.write(WireDirection::ToServer, "much later");
        assert_eq!(texts(&tape), Vec::<String>::new());
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded() {
        let tape = MessageLog::default();
        tape.read();
        for number in 0..2 * MOST {
            tape.write(WireDirection::FromServer, number.to_string());
        }
        let kept = texts(&tape);
        assert_eq!((kept.len(), kept[0].as_str()), (MOST, "500"));
        for _ in 0..200 {
            tape.write(WireDirection::FromServer, "é".repeat(100_000));
        }
        let kept = tape.read();
        assert!(kept.iter().map(|taped| taped.text.len()).sum::<usize>() <= super::MOST_BYTES);
        assert!(kept.iter().all(|taped| taped.text.len() <= super::LONGEST));
    }
}
