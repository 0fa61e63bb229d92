//! The misbehaving servers by name.

use std::fmt;

use super::Eras;

/// The fault of a server. Every server also has the tools `echo` and `requests`, which returns the
/// number of requests so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Returns lists in pages of one item.
    Pages,
    /// Unknown keys everywhere, an unusual order, and numbers that exceed the range of a double.
    UnknownKeys,
    /// A tool with `inputSchema: null`.
    NullSchema,
    /// A tool whose schema does not compile.
    BadSchema,
    /// A tool whose output is an array.
    ArrayOutput,
    /// A tool with a name of 200 characters.
    LongName,
    /// Two tools whose names differ only in characters that are replaced.
    ClashingNames,
    /// Content of unknown types, and a result with a key `tools`.
    OddContent,
    /// Answers the first of every two calls after the second.
    OutOfOrder,
    /// One tool that reports progress and then hangs, and one that reports progress and then
    /// answers.
    ProgressThenSilence,
    /// A tool that ends the process.
    ExitsMidCall,
    /// Never answers a call.
    NeverAnswers,
    /// Never answers anything.
    Mute,
    /// Writes log lines between the messages.
    Noisy,
    /// A tool whose result has 50 megabytes.
    Huge,
    /// Over HTTP, drops a session after ten calls. A new session works.
    ForgetsSession,
    /// Sends notifications without end.
    Floods,
    /// Offers a different tool after each start.
    Changes,
    /// Does not answer for a while after its start.
    SlowStart,
    /// Prints the reason to standard error and exits with code 3.
    DiesAtStart,
    /// Correct, but supports only the legacy era.
    LegacyOnly,
    /// Correct, but supports only the modern era.
    ModernOnly,
    /// Tools that ask their caller for a form, a model response or the roots.
    Asks,
    /// A tool that returns the number of sessions opened and still open.
    CountsSessions,
    /// Tools whose results do not match their output schemas.
    WrongOutput,
    /// Definitions and answers with values of the wrong types.
    IllTyped,
    /// Correct: the financial data of the document about `inspect_tool`.
    Financials,
    /// Correct: the document search of the same document.
    Documents,
    /// Names, texts and results with terminal control sequences or misleading characters.
    Hostile,
    /// Correct: resources that support subscriptions, and a tool that returns the current
    /// subscriptions.
    Subscribable,
    /// An endless list of tools in pages of one megabyte.
    EndlessPages,
    /// Like `EndlessPages`, but only from the second listing on. The server announces the change
    /// itself.
    EndlessLater,
    /// Never answers from the second listing on. The server announces the change itself.
    HangsLater,
    /// Sends requests to the client as fast as they are read, up to a fixed number.
    FloodsRequests,
    /// Asks for the roots and for a form as soon as it is connected, outside any call. A tool
    /// returns the answers.
    AsksItself,
    /// Correct: supports both eras with different behavior. It asks questions and polls its streams
    /// in the legacy era only, and each era has a tool that the other lacks.
    Dual,
}

impl Kind {
    pub const ALL: [(&str, Self); 36] = [
        ("pages", Self::Pages),
        ("unknown-keys", Self::UnknownKeys),
        ("null-schema", Self::NullSchema),
        ("bad-schema", Self::BadSchema),
        ("array-output", Self::ArrayOutput),
        ("long-name", Self::LongName),
        ("clashing-names", Self::ClashingNames),
        ("odd-content", Self::OddContent),
        ("out-of-order", Self::OutOfOrder),
        ("progress-then-silence", Self::ProgressThenSilence),
        ("exits-mid-call", Self::ExitsMidCall),
        ("never-answers", Self::NeverAnswers),
        ("mute", Self::Mute),
        ("noisy", Self::Noisy),
        ("huge", Self::Huge),
        ("forgets-session", Self::ForgetsSession),
        ("floods", Self::Floods),
        ("changes", Self::Changes),
        ("slow-start", Self::SlowStart),
        ("dies-at-start", Self::DiesAtStart),
        ("legacy-only", Self::LegacyOnly),
        ("modern-only", Self::ModernOnly),
        ("asks", Self::Asks),
        ("counts-sessions", Self::CountsSessions),
        ("wrong-output", Self::WrongOutput),
        ("ill-typed", Self::IllTyped),
        ("financials", Self::Financials),
        ("documents", Self::Documents),
        ("hostile", Self::Hostile),
        ("subscribable", Self::Subscribable),
        ("endless-pages", Self::EndlessPages),
        ("endless-later", Self::EndlessLater),
        ("hangs-later", Self::HangsLater),
        ("floods-requests", Self::FloodsRequests),
        ("asks-itself", Self::AsksItself),
        ("dual", Self::Dual),
    ];

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, kind)| kind)
    }

    pub(super) fn eras(self) -> Eras {
        match self {
            Self::LegacyOnly | Self::ForgetsSession | Self::CountsSessions | Self::AsksItself => Eras::Legacy,
            Self::ModernOnly => Eras::Modern,
            _ => Eras::Both,
        }
    }

    /// Whether it offers resources and prompts in addition to tools.
    pub(super) fn is_rich(self) -> bool {
        matches!(self, Self::Pages | Self::UnknownKeys | Self::IllTyped | Self::Subscribable)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, kind)| kind == self);
        f.write_str(name.map_or("odd", |(name, _)| name))
    }
}
