//! Cassettes: recordings of MCP sessions. This crate has the file format, the proxies that record
//! what passes between a client and a server, and the servers that replay a recording. It has no
//! knowledge of tests: `suite` turns a cassette into a test file.

mod answer_error;
mod format;
mod http_front;
mod lines;
mod mask;
mod masked_match;
mod play;
mod record_http;
mod record_stdio;
mod replay_http;
mod replay_stdio;
mod splice;
mod tape;
mod writer;

pub use format::{
    Cassette, CassetteEntry, CassetteError, CassetteHeader, CassetteTransport, EntryContent, EntryOrigin,
};
pub use http_front::{BoundFront, FrontError};
pub use mask::SecretMask;
pub use masked_match::is_equal_except_masked;
pub use play::{Replay, ReplayTiming};
pub use record_http::{ProxyTarget, record_http};
pub use record_stdio::{RecordEnd, RecordStreams, record_stdio};
pub use replay_http::replay_http;
pub use replay_stdio::replay_stdio;
pub use tape::{Exchange, Tape, TapeStep, Trigger, TriggerKind};
pub use writer::{CassetteWriter, ExistingFile, RecordingSummary};
