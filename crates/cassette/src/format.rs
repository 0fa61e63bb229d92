//! The file format: JSON Lines. The first line is the header, each further line is one message, in
//! the order in which the recorder saw them. A message is stored as the text that was sent.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toolyard_hub::{Raw, Timestamp};

/// The version of the format that this code writes and reads.
pub(crate) const FORMAT: u32 = 1;
/// The size limit of a cassette, in bytes. A replay holds all of it in memory.
pub(crate) const LARGEST: u64 = 64 << 20;

/// The first line of a cassette.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CassetteHeader {
    /// The version of the format.
    #[serde(rename = "toolyard_cassette")]
    pub format: u32,
    /// The version of Toolyard that recorded it.
    pub toolyard: String,
    /// The name of the server, for people.
    pub server: String,
    pub transport: CassetteTransport,
    /// When the recording started, in RFC 3339.
    pub started: String,
}

impl CassetteHeader {
    /// Creates the header of a recording that starts now.
    pub fn new(server: &str, transport: CassetteTransport, started: Timestamp) -> Self {
        Self {
            format: FORMAT,
            toolyard: env!("CARGO_PKG_VERSION").to_owned(),
            server: server.to_owned(),
            transport,
            started: started.to_string(),
        }
    }
}

/// The transport between the recorder and its client, which is also that of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CassetteTransport {
    Stdio,
    Http,
}

/// Who sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryOrigin {
    Client,
    Server,
    /// Standard error of the server.
    Stderr,
    /// The recorder itself, such as the reason why a recording stopped.
    Recorder,
}

/// One line after the header.
#[derive(Debug, Clone)]
pub struct CassetteEntry {
    /// The line in the file, starting at 1.
    pub line: usize,
    /// Milliseconds since the recording started.
    pub at: u64,
    pub from: EntryOrigin,
    /// Over HTTP, the number of the HTTP request that carried the message. A request and what the
    /// server sent in response to it have the same number.
    pub stream: Option<u64>,
    /// The HTTP status of a response that was not 200.
    pub status: Option<u16>,
    pub content: EntryContent,
    /// JSON pointers to the values with a masked secret. Empty for a text.
    pub masked: Vec<String>,
}

#[derive(Debug, Clone)]
pub enum EntryContent {
    /// JSON, exactly as it was sent.
    Message(Raw),
    /// Anything else that was sent.
    Text(String),
}

/// A line as it is in the file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EntryLine {
    pub(crate) at: u64,
    pub(crate) from: EntryOrigin,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<Raw>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) masked: Vec<String>,
}

/// A cassette that was read.
#[derive(Debug, Clone)]
pub struct Cassette {
    pub header: CassetteHeader,
    pub entries: Vec<CassetteEntry>,
    /// What a reader should know about a recording that is not complete.
    pub notes: Vec<String>,
}

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    #[error("cannot read the cassette: {0}")]
    Read(std::io::Error),
    #[error("the cassette has {bytes} bytes, which exceeds the limit of {LARGEST}")]
    TooLarge { bytes: u64 },
    #[error("this is not a cassette: {0}")]
    NotACassette(String),
    #[error("the cassette has format {0}, and this version of Toolyard reads format {FORMAT}")]
    Format(u32),
    #[error("line {line} of the cassette is damaged: {reason}")]
    Damaged { line: usize, reason: String },
    #[error("the cassette contains no messages of a client")]
    Empty,
    #[error("the file already exists")]
    Exists,
    #[error("cannot write the cassette: {0}")]
    Write(std::io::Error),
}

impl CassetteError {
    /// Returns what the user can do about it.
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::Read(_) => "check the path",
            Self::TooLarge { .. } => "record a shorter session",
            Self::NotACassette(_) => "pass a file that `toolyard record` has written",
            Self::Format(_) => "use the version of Toolyard that recorded it, or record the session again",
            Self::Damaged { .. } => "restore the file, or record the session again",
            Self::Empty => "record a session in which a client sends requests",
            Self::Exists => "pass --force to replace it, or another file",
            Self::Write(_) => "check the folder and the free space",
        }
    }
}

impl Cassette {
    /// Reads a file.
    pub fn open(path: &Path) -> Result<Self, CassetteError> {
        let file = File::open(path).map_err(CassetteError::Read)?;
        let metadata = file.metadata().map_err(CassetteError::Read)?;
        if metadata.is_dir() {
            return Err(CassetteError::Read(std::io::ErrorKind::IsADirectory.into()));
        }
        if metadata.len() > LARGEST {
            return Err(CassetteError::TooLarge { bytes: metadata.len() });
        }
        let mut bytes = Vec::new();
        // A file can grow, and a pipe has no length.
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(CassetteError::Read)?;
        Self::parse(&bytes)
    }

    /// Reads a cassette. The last line may be incomplete, because the recorder can be killed.
    pub fn parse(bytes: &[u8]) -> Result<Self, CassetteError> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length > LARGEST {
            return Err(CassetteError::TooLarge { bytes: length });
        }
        let mut lines = bytes.split(|byte| *byte == b'\n').enumerate();
        let header = read_header(lines.next().map_or(&[][..], |(_, line)| line))?;
        let mut cassette = Self { header, entries: Vec::new(), notes: Vec::new() };
        let mut lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty()).peekable();
        let is_torn = !bytes.ends_with(b"\n");
        while let Some((index, line)) = lines.next() {
            match read_entry(index + 1, line) {
                Ok(entry) => cassette.add(entry),
                Err(_) if is_torn && lines.peek().is_none() => cassette.notes.push(format!(
                    "line {} is incomplete and was ignored: the recorder was killed",
                    index + 1
                )),
                Err(reason) => return Err(CassetteError::Damaged { line: index + 1, reason }),
            }
        }
        let of_client = |entry: &CassetteEntry| entry.from == EntryOrigin::Client;
        match cassette.entries.iter().any(of_client) {
            true => Ok(cassette),
            false => Err(CassetteError::Empty),
        }
    }

    fn add(&mut self, entry: CassetteEntry) {
        if let (EntryOrigin::Recorder, EntryContent::Text(text)) = (entry.from, &entry.content) {
            self.notes.push(text.clone());
        }
        self.entries.push(entry);
    }

    /// Returns how many values were masked.
    pub fn masked(&self) -> usize {
        self.entries.iter().map(|entry| entry.masked.len()).sum()
    }
}

fn read_header(line: &[u8]) -> Result<CassetteHeader, CassetteError> {
    #[derive(Deserialize)]
    struct FormatOnly {
        #[serde(rename = "toolyard_cassette")]
        format: Option<u32>,
    }
    let wrong = |reason: String| CassetteError::NotACassette(reason);
    if line.trim_ascii().is_empty() {
        return Err(wrong("its first line is empty".to_owned()));
    }
    let read: FormatOnly =
        serde_json::from_slice(line).map_err(|error| wrong(format!("line 1 is not a header: {error}")))?;
    match read.format {
        None => Err(wrong("line 1 has no `toolyard_cassette`".to_owned())),
        Some(FORMAT) => serde_json::from_slice(line)
            .map_err(|error| CassetteError::Damaged { line: 1, reason: error.to_string() }),
        Some(other) => Err(CassetteError::Format(other)),
    }
}

fn read_entry(number: usize, line: &[u8]) -> Result<CassetteEntry, String> {
    let line: EntryLine = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let content = match (line.message, line.text) {
        (Some(message), None) => EntryContent::Message(message),
        (None, Some(text)) => EntryContent::Text(text),
        _ => return Err("expected either `message` or `text`".to_owned()),
    };
    Ok(CassetteEntry {
        line: number,
        at: line.at,
        from: line.from,
        stream: line.stream,
        status: line.status,
        content,
        masked: line.masked,
    })
}

#[cfg(test)]
mod tests {
    use super::{Cassette, CassetteError, EntryContent, EntryOrigin, LARGEST};

    const HEADER: &str = r#"{"toolyard_cassette":1,"toolyard":"0.1.0","server":"s","transport":"stdio","started":"2027-01-31T12:00:00.000Z"}"#;
    const REQUEST: &str = r#"{"at":3,"from":"client","message":{"jsonrpc": "2.0", "id":1.0,"method":"x"}}"#;

    fn parse(lines: &str) -> Result<Cassette, String> {
        Cassette::parse(lines.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn messages_keep_their_text() {
        let cassette = parse(&format!("{HEADER}\n{REQUEST}\n\n")).unwrap();
        let entry = &cassette.entries[0];
        assert_eq!((entry.line, entry.at, entry.from), (2, 3, EntryOrigin::Client));
        let EntryContent::Message(message) = &entry.content else { panic!("{entry:?}") };
        assert_eq!(message.get(), r#"{"jsonrpc": "2.0", "id":1.0,"method":"x"}"#);
        assert_eq!(cassette.notes, Vec::<String>::new());
    }

    #[test]
    fn only_the_last_line_may_be_torn() {
        let torn = parse(&format!("{HEADER}\n{REQUEST}\n{}", &REQUEST[..40])).unwrap();
        assert_eq!(torn.entries.len(), 1);
        assert_eq!(torn.notes, ["line 3 is incomplete and was ignored: the recorder was killed"]);
        let damaged = parse(&format!("{HEADER}\n{}\n{REQUEST}\n", &REQUEST[..40])).unwrap_err();
        assert!(damaged.starts_with("line 2 of the cassette is damaged: EOF"), "{damaged}");
        let both = parse(&format!("{HEADER}\n{{\"at\":1,\"from\":\"server\"}}\n{REQUEST}\n")).unwrap_err();
        assert_eq!(both, "line 2 of the cassette is damaged: expected either `message` or `text`");
    }

    #[test]
    fn other_files_are_not_cassettes() {
        for (text, expect) in [
            ("", "this is not a cassette: its first line is empty"),
            ("{}\n", "this is not a cassette: line 1 has no `toolyard_cassette`"),
            (
                "{\"toolyard_cassette\":2}\n",
                "the cassette has format 2, and this version of Toolyard reads format 1",
            ),
            (&format!("{HEADER}\n"), "the cassette contains no messages of a client"),
        ] {
            assert_eq!(parse(text).unwrap_err(), expect);
        }
        assert!(parse("\u{0}\u{1}garbage").unwrap_err().starts_with("this is not a cassette: line 1"));
        let large = vec![b' '; usize::try_from(LARGEST).unwrap() + 1];
        assert!(matches!(Cassette::parse(&large), Err(CassetteError::TooLarge { .. })));
    }

    #[test]
    fn a_recording_that_stopped_says_so() {
        let note = r#"{"at":9,"from":"recorder","text":"recording stopped: too large"}"#;
        let cassette = parse(&format!("{HEADER}\n{REQUEST}\n{note}\n")).unwrap();
        assert_eq!(cassette.notes, ["recording stopped: too large"]);
    }
}
