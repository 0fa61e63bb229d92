//! The messages of a connection in both directions, for debugging a server. Recording starts with
//! the first read and stops some time after the last one.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::violations::Violations;

const MOST: usize = 500;
const MOST_BYTES: usize = 1024 * 1024;
/// The maximum number of recorded bytes per message.
const LONGEST: usize = 16 * 1024;
/// How long recording continues after the last read.
const INTEREST: Duration = Duration::from_secs(600);

/// Receives every message in full, in the order in which the connection reads and writes them. It
/// must not block.
pub type MessageTap = Arc<dyn Fn(WireDirection, &[u8]) + Send + Sync>;

/// The recorded messages of one server, newest last. Headers are not recorded, and therefore
/// neither are tokens.
#[derive(Default)]
pub struct MessageLog {
    tap: Option<MessageTap>,
    recording: AtomicBool,
    buffer: Mutex<MessageLogBuffer>,
    violations: Violations,
}

#[derive(Debug, Default)]
struct MessageLogBuffer {
    messages: VecDeque<LoggedMessage>,
    /// The number of messages ever recorded.
    written: u64,
    bytes: usize,
    last_read: Option<Instant>,
}

/// A recorded message, truncated if it is too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedMessage {
    /// The position in this log, starting at 1.
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

impl fmt::Debug for MessageLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tap, recording, buffer: _, violations } = self;
        f.debug_struct("MessageLog")
            .field("tap", &tap.is_some())
            .field("recording", recording)
            .field("violations", violations)
            .finish_non_exhaustive()
    }
}

impl MessageLog {
    /// Creates a log whose messages are also passed to `tap`.
    pub fn with_tap(tap: MessageTap) -> Self {
        Self { tap: Some(tap), ..Self::default() }
    }

    /// Returns the protocol violations of the server. They are recorded even if the log is not
    /// read.
    pub fn violations(&self) -> &Violations {
        &self.violations
    }

    /// Returns the messages recorded since the first read. The first read returns nothing and
    /// starts the recording.
    pub fn read(&self) -> Vec<LoggedMessage> {
        self.read_after(0)
    }

    /// Returns the messages recorded after the one with this number.
    pub fn read_after(&self, number: u64) -> Vec<LoggedMessage> {
        let mut buffer = self.lock();
        buffer.last_read = Some(Instant::now());
        self.recording.store(true, Ordering::Relaxed);
        let first = buffer.messages.partition_point(|message| message.number <= number);
        buffer.messages.range(first..).cloned().collect()
    }

    pub(crate) fn write(&self, direction: WireDirection, text: impl AsRef<[u8]>) {
        if let Some(tap) = &self.tap {
            tap(direction, text.as_ref());
        }
        // Fast path for every message: no reader is interested.
        if !self.recording.load(Ordering::Relaxed) {
            return;
        }
        let text = String::from_utf8_lossy(text.as_ref());
        let mut buffer = self.lock();
        if buffer.last_read.is_none_or(|last_read| last_read.elapsed() > INTEREST) {
            self.recording.store(false, Ordering::Relaxed);
            *buffer = MessageLogBuffer { written: buffer.written, ..MessageLogBuffer::default() };
            return;
        }
        let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        buffer.bytes += end;
        buffer.written += 1;
        let (number, text) = (buffer.written, text[..end].to_owned());
        buffer.messages.push_back(LoggedMessage { number, at: SystemTime::now(), direction, text });
        while buffer.messages.len() > MOST || buffer.bytes > MOST_BYTES {
            match buffer.messages.pop_front() {
                Some(oldest) => buffer.bytes -= oldest.text.len(),
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

    fn texts(log: &MessageLog) -> Vec<String> {
        log.read().into_iter().map(|message| message.text).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn messages_are_recorded_only_while_a_reader_is_interested() {
        let log = MessageLog::default();
        log.write(WireDirection::ToServer, "before");
        assert_eq!(texts(&log), Vec::<String>::new());
        log.write(WireDirection::ToServer, "one");
        log.write(WireDirection::FromServer, "two");
        assert_eq!(texts(&log), ["one", "two"]);
        let after: Vec<(u64, String)> =
            log.read_after(1).into_iter().map(|message| (message.number, message.text)).collect();
        assert_eq!(after, [(2, "two".to_owned())]);
        tokio::time::advance(INTEREST + INTEREST).await;
        log.write(WireDirection::ToServer, "much later");
        assert_eq!(texts(&log), Vec::<String>::new());
    }

    #[test]
    fn a_tap_receives_messages_in_full() {
        let (tapped, received) = std::sync::mpsc::channel();
        let log = MessageLog::with_tap(std::sync::Arc::new(move |direction, text: &[u8]| {
            let _ = tapped.send((direction, text.len()));
        }));
        log.write(WireDirection::FromServer, "x".repeat(2 * super::LONGEST));
        assert_eq!(
            received.try_iter().collect::<Vec<_>>(),
            [(WireDirection::FromServer, 2 * super::LONGEST)]
        );
        assert_eq!(texts(&log), Vec::<String>::new());
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded() {
        let log = MessageLog::default();
        log.read();
        for number in 0..2 * MOST {
            log.write(WireDirection::FromServer, number.to_string());
        }
        let logged = texts(&log);
        assert_eq!((logged.len(), logged[0].as_str()), (MOST, "500"));
        for _ in 0..200 {
            log.write(WireDirection::FromServer, "é".repeat(100_000));
        }
        let logged = log.read();
        assert!(logged.iter().map(|message| message.text.len()).sum::<usize>() <= super::MOST_BYTES);
        assert!(logged.iter().all(|message| message.text.len() <= super::LONGEST));
    }
}
