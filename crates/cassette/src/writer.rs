//! Writes a cassette while the session runs. Every line is written to the file before the next one,
//! so that a killed recorder leaves everything up to its last message.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::watch;
use toolyard_hub::json::from_text;
use toolyard_wire::{MessageTap, Packet, WireDirection, parse};

use crate::format::{CassetteError, CassetteHeader, EntryLine, EntryOrigin, LARGEST};
use crate::mask::SecretMask;

/// Room for the line that says why the recording stopped.
const LAST_LINE: u64 = 512;

/// What happens to an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingFile {
    Keep,
    Replace,
}

/// A cassette that is being recorded.
#[derive(Debug)]
pub struct CassetteWriter {
    state: Mutex<WriterState>,
    mask: SecretMask,
    started: Instant,
    limit: u64,
    messages: AtomicUsize,
    masked: AtomicUsize,
    stopped: watch::Sender<Option<String>>,
}

#[derive(Debug)]
struct WriterState {
    /// `None` after the recording has stopped.
    file: Option<File>,
    bytes: u64,
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingSummary {
    pub messages: usize,
    pub masked: usize,
    /// Why the recording stopped before the session ended.
    pub stopped: Option<String>,
}

impl CassetteWriter {
    /// Creates the file. Only its owner can read it, because sessions are private.
    pub fn create(
        path: &Path,
        header: &CassetteHeader,
        mask: SecretMask,
        existing: ExistingFile,
    ) -> Result<Arc<Self>, CassetteError> {
        Self::with_limit(path, header, mask, existing, LARGEST)
    }

    fn with_limit(
        path: &Path,
        header: &CassetteHeader,
        mask: SecretMask,
        existing: ExistingFile,
        limit: u64,
    ) -> Result<Arc<Self>, CassetteError> {
        if existing == ExistingFile::Replace && path.is_file() {
            // Another recorder that still writes to the old file is not disturbed.
            std::fs::remove_file(path).map_err(CassetteError::Write)?;
        }
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let mut file = opened.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => CassetteError::Exists,
            _ => CassetteError::Write(error),
        })?;
        let mut line = serde_json::to_string(header).unwrap_or_default();
        line.push('\n');
        file.write_all(line.as_bytes()).map_err(CassetteError::Write)?;
        let bytes = u64::try_from(line.len()).unwrap_or(u64::MAX);
        Ok(Arc::new(Self {
            state: Mutex::new(WriterState { file: Some(file), bytes }),
            mask,
            started: Instant::now(),
            limit,
            messages: AtomicUsize::new(0),
            masked: AtomicUsize::new(0),
            stopped: watch::Sender::new(None),
        }))
    }

    /// Returns a tap that records the messages of a connection. Over HTTP, `stream` is the number
    /// of the HTTP request and `status` that of its response.
    pub fn tap(self: &Arc<Self>, stream: Option<u64>, status: Option<u16>) -> MessageTap {
        let writer = Arc::clone(self);
        Arc::new(move |direction, bytes: &[u8]| {
            let (from, status) = match direction {
                WireDirection::ToServer => (EntryOrigin::Client, None),
                WireDirection::FromServer => (EntryOrigin::Server, status),
            };
            writer.write(from, stream, status, bytes);
        })
    }

    /// Records a line that the server wrote to standard error.
    pub fn write_stderr(&self, line: &str) {
        self.write(EntryOrigin::Stderr, None, None, line.as_bytes());
    }

    /// Records something that the recorder has to say about the session.
    pub fn write_note(&self, note: &str) {
        self.write(EntryOrigin::Recorder, None, None, note.as_bytes());
    }

    pub fn summary(&self) -> RecordingSummary {
        RecordingSummary {
            messages: self.messages.load(Ordering::Relaxed),
            masked: self.masked.load(Ordering::Relaxed),
            stopped: self.stopped.borrow().clone(),
        }
    }

    /// Waits until the recording stops early. Returns the reason.
    pub async fn wait_until_stopped(&self) -> String {
        let mut stopped = self.stopped.subscribe();
        match stopped.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(reason)) => reason.clone(),
            // The sender is part of `self`.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    fn write(&self, from: EntryOrigin, stream: Option<u64>, status: Option<u16>, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let is_message = matches!(from, EntryOrigin::Client | EntryOrigin::Server);
        let mut line =
            EntryLine { at: 0, from, stream, status, message: None, text: None, masked: Vec::new() };
        match serde_json::from_str::<&RawValue>(&text) {
            Ok(raw) if is_message && is_parsable(bytes) => {
                let masked = self.mask.mask_json(raw);
                line.masked = masked.masked;
                // Line breaks between tokens would break the line of the cassette.
                if raw.get() == text && !text.contains(['\n', '\r']) {
                    line.message = Some(from_text(masked.text));
                } else {
                    let (before, after) = text.split_once(raw.get()).unwrap_or_default();
                    line.text = Some(format!("{before}{}{after}", masked.text));
                }
            }
            _ => {
                let masked = self.mask.mask_text(&text);
                if masked != text {
                    line.masked.push(String::new());
                }
                line.text = Some(masked.into_owned());
            }
        }
        if is_message {
            self.messages.fetch_add(1, Ordering::Relaxed);
        }
        self.masked.fetch_add(line.masked.len(), Ordering::Relaxed);
        self.append(line);
    }

    fn append(&self, mut line: EntryLine) {
        let mut state = self.state.lock();
        // Inside the lock, so that times never decrease.
        line.at = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut text = serde_json::to_string(&line).unwrap_or_default();
        text.push('\n');
        let bytes = state.bytes + u64::try_from(text.len()).unwrap_or(u64::MAX);
        let Some(file) = &mut state.file else { return };
        let failure = if bytes + LAST_LINE > self.limit {
            let reason =
                format!("recording stopped: the cassette would exceed the limit of {} bytes", self.limit);
            let note = EntryLine {
                from: EntryOrigin::Recorder,
                stream: None,
                status: None,
                message: None,
                text: Some(reason.clone()),
                masked: Vec::new(),
                ..line
            };
            let note = format!("{}\n", serde_json::to_string(&note).unwrap_or_default());
            // The reason is reported in any case.
            let _ = file.write_all(note.as_bytes());
            Some(reason)
        } else {
            let written = file.write_all(text.as_bytes());
            written.err().map(|error| format!("recording stopped: cannot write the cassette: {error}"))
        };
        state.bytes = bytes;
        if let Some(reason) = failure {
            state.file = None;
            self.stopped.send_replace(Some(reason));
        }
    }
}

/// Whether the depth of the JSON is limited, so that it can be masked member by member.
fn is_parsable(bytes: &[u8]) -> bool {
    match parse(bytes) {
        Ok(Packet::Single(_) | Packet::Batch(_)) => true,
        Err(invalid) => !invalid.error.message.contains("nesting limit"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use toolyard_hub::Secret;
    use toolyard_wire::WireDirection;

    use super::{CassetteWriter, ExistingFile};
    use crate::format::{
        Cassette, CassetteHeader, CassetteTransport, EntryContent, EntryOrigin, FORMAT, LARGEST,
    };
    use crate::mask::SecretMask;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("toolyard-{name}-{}", std::process::id()));
            let _ = std::fs::remove_file(&path);
            Self(path)
        }

        fn create(&self, existing: ExistingFile, limit: u64) -> Result<Arc<CassetteWriter>, String> {
            let header = CassetteHeader {
                format: FORMAT,
                toolyard: "0.1.0".to_owned(),
                server: "s".to_owned(),
                transport: CassetteTransport::Stdio,
                started: "2027-01-31T12:00:00.000Z".to_owned(),
            };
            let mask = SecretMask::with_values([Secret::new("hunter22")]);
            CassetteWriter::with_limit(&self.0, &header, mask, existing, limit)
                .map_err(|error| error.to_string())
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let scratch = Scratch::new("cassette-round");
        let writer = scratch.create(ExistingFile::Keep, LARGEST).unwrap();
        let tap = writer.tap(Some(4), Some(400));
        let message = r#"{ "jsonrpc":"2.0", "id": 1, "method":"a" }"#;
        tap(WireDirection::ToServer, message.as_bytes());
        tap(WireDirection::FromServer, b"oops hunter22");
        tap(WireDirection::FromServer, b" {\n\"token\": \"x\"}");
        writer.write_stderr("started");
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        tap(WireDirection::FromServer, deep.as_bytes());
        let cassette = Cassette::open(&scratch.0).unwrap();
        let entries: Vec<_> = cassette
            .entries
            .iter()
            .map(|entry| {
                let text = match &entry.content {
                    EntryContent::Message(raw) => format!("message {}", raw.get()),
                    EntryContent::Text(text) => format!("text {text}"),
                };
                (entry.from, entry.stream, entry.status, text)
            })
            .collect();
        let expect = [
            (EntryOrigin::Client, Some(4), None, format!("message {message}")),
            (EntryOrigin::Server, Some(4), Some(400), "text oops [redacted]".to_owned()),
            (EntryOrigin::Server, Some(4), Some(400), "text  {\n\"token\": \"[redacted]\"}".to_owned()),
            (EntryOrigin::Stderr, None, None, "text started".to_owned()),
            (EntryOrigin::Server, Some(4), Some(400), format!("text {deep}")),
        ];
        assert_eq!(entries, expect);
        let summary = writer.summary();
        assert_eq!((summary.messages, summary.masked, summary.stopped), (4, 2, None));
        assert_eq!(cassette.masked(), 2);
    }

    #[test]
    fn a_file_is_replaced_only_on_request() {
        let scratch = Scratch::new("cassette-exists");
        let first = scratch.create(ExistingFile::Keep, LARGEST).unwrap();
        assert_eq!(scratch.create(ExistingFile::Keep, LARGEST).unwrap_err(), "the file already exists");
        let second = scratch.create(ExistingFile::Replace, LARGEST).unwrap();
        first.tap(None, None)(WireDirection::ToServer, b"{\"jsonrpc\":\"2.0\",\"method\":\"first\"}");
        second.tap(None, None)(WireDirection::ToServer, b"{\"jsonrpc\":\"2.0\",\"method\":\"second\"}");
        let text = std::fs::read_to_string(&scratch.0).unwrap();
        assert!(text.contains("second") && !text.contains("first"), "{text}");
    }

    #[tokio::test]
    async fn a_full_cassette_says_so_and_stays_readable() {
        let scratch = Scratch::new("cassette-full");
        let writer = scratch.create(ExistingFile::Keep, 1_200).unwrap();
        let tap = writer.tap(None, None);
        for number in 0..20 {
            tap(
                WireDirection::ToServer,
                format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"a"}}"#).as_bytes(),
            );
        }
        let reason = "recording stopped: the cassette would exceed the limit of 1200 bytes";
        assert_eq!(writer.wait_until_stopped().await, reason);
        let cassette = Cassette::open(&scratch.0).unwrap();
        assert_eq!(cassette.notes, [reason]);
        assert!(std::fs::metadata(&scratch.0).unwrap().len() <= 1_200);
    }
}
