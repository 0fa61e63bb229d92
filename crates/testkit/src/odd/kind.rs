//! The odd servers by name.

use std::fmt;

use super::Eras;

/// Which of them. Every one also has the tools `echo` and `requests` (how many requests it has seen).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Lists come in pages of one item.
    Pages,
    /// Unknown keys everywhere, an odd order, numbers that no double can hold.
    UnknownKeys,
    /// A tool with `inputSchema: null`.
    NullSchema,
    /// A tool whose schema does not compile.
    BadSchema,
    /// A tool whose output is an array.
    ArrayOutput,
    /// A tool with a name of 200 characters.
    LongName,
    /// Two tools whose names are the same but for characters that are replaced.
    ClashingNames,
    /// Content of unknown types, and a result with a key `tools`.
    OddContent,
    /// Every first of two calls is answered after the second.
    OutOfOrder,
    /// A tool that reports progress and then nothing more, and one that goes on to an answer.
    ProgressThenSilence,
    /// A tool that ends the process.
    ExitsMidCall,
    /// Calls are never answered.
    NeverAnswers,
    /// Nothing at all is ever answered.
    Mute,
    /// Log lines between the messages.
    Noisy,
    /// A tool whose result has 50 megabytes.
    Huge,
    /// Over HTTP, a session is forgotten after ten calls; a new one works.
    ForgetsSession,
    /// Notifications without end.
    Floods,
    /// Offers another tool after each start.
    Changes,
    /// Answers nothing for a while after its start.
    SlowStart,
    /// Says why on standard error and exits with 3.
    DiesAtStart,
    /// Nothing odd, but only the legacy era.
    LegacyOnly,
    /// Nothing odd, but only the modern era.
    ModernOnly,
    /// Tools that ask their caller: a form, a model, the roots.
    Asks,
    /// A tool that tells how many sessions there were and are.
    CountsSessions,
    /// Tools whose results are not what their output schemas say.
    WrongOutput,
    /// Definitions and answers with values of the wrong types.
    IllTyped,
    /// Nothing odd: the financial data of the document about `inspect_tool`.
    Financials,
    /// Nothing odd: the documents of the same.
    Documents,
    /// Names, texts and results that a terminal would obey, or that people would misread.
    Hostile,
    /// Nothing odd: resources that can be subscribed to, and a tool that tells to which it is just now.
    Subscribable,
    /// A list of tools in pages of a megabyte, without an end.
    EndlessPages,
    /// The same, but only from the second time on that it is listed; it announces the change itself.
    EndlessLater,
    /// From the second time on that it is listed, it never answers; it announces the change itself.
    HangsLater,
    /// Requests to the client, as fast as they are read, up to a number.
    FloodsRequests,
    /// Asks for the roots and for a form as soon as it is connected, outside any call; a tool tells what it was told.
    AsksItself,
    /// Nothing odd: both eras, but not the same in them. It asks, and polls its streams, in the legacy era only, and each
    /// era has a tool that the other does not have.
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

    /// Whether it offers resources and prompts beside its tools.
    pub(super) fn is_rich(self) -> bool {
        matches!(self, Self::Pages | Self::UnknownKeys | Self::IllTyped | Self::Subscribable)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(_, kind)| kind == self);
        f.write_str(found.map_or("odd", |(name, _)| name))
    }
}
