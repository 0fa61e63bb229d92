//! The kinds of errors that a call can end with, and the error type that carries them. Each front
//! maps every kind to its own protocol in one exhaustive table.

use std::time::Duration;

use serde_json::Value;

use crate::permission;

/// The kind of an error, shared by all fronts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    UnknownTool,
    UnknownResource,
    UnknownPrompt,
    InvalidArguments,
    Unauthenticated,
    Forbidden,
    RateLimited,
    TooLarge,
    TimedOut,
    Cancelled,
    NotConnected,
    CannotConnect,
    ConnectionLost,
    ToolFailed,
    /// The call needs an answer to a question that the client of the caller does not support.
    ClientCannot,
    Bug,
}

impl ErrorKind {
    /// All kinds, for exhaustive tests of the tables.
    pub const ALL: [Self; 16] = [
        Self::UnknownTool,
        Self::UnknownResource,
        Self::UnknownPrompt,
        Self::InvalidArguments,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::RateLimited,
        Self::TooLarge,
        Self::TimedOut,
        Self::Cancelled,
        Self::NotConnected,
        Self::CannotConnect,
        Self::ConnectionLost,
        Self::ToolFailed,
        Self::ClientCannot,
        Self::Bug,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown tool",
            Self::UnknownResource => "unknown resource",
            Self::UnknownPrompt => "unknown prompt",
            Self::InvalidArguments => "invalid arguments",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::RateLimited => "rate limited",
            Self::TooLarge => "too large",
            Self::TimedOut => "timed out",
            Self::Cancelled => "cancelled",
            Self::NotConnected => "not connected",
            Self::CannotConnect => "cannot connect",
            Self::ConnectionLost => "connection lost",
            Self::ToolFailed => "the tool failed",
            Self::ClientCannot => "the client cannot answer",
            Self::Bug => "internal error",
        }
    }

    /// Parses the text returned by [`Self::as_str`], for stored records.
    pub fn from_words(words: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == words)
    }
}

/// Why a call has no outcome: what failed, for which named entry, and what to do next if known.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.report.message)]
pub struct HubError {
    // Boxed to keep every `Result` on the call path small.
    report: Box<ErrorReport>,
}

#[derive(Debug, Clone)]
struct ErrorReport {
    kind: ErrorKind,
    message: String,
    suggestion: Option<String>,
    details: Option<Value>,
    retry_after: Option<Duration>,
    origin: Option<SourceError>,
}

/// The error that a source returned. A front of the same protocol forwards it unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl HubError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        let report =
            ErrorReport { kind, message, suggestion: None, details: None, retry_after: None, origin: None };
        Self { report: Box::new(report) }
    }

    /// The caller lacks a required permission.
    pub(crate) fn forbidden(subject: &str, missing: &str) -> Self {
        Self::new(ErrorKind::Forbidden, permission::missing_message(subject, missing))
            .with_suggestion(permission::ASK_FOR_PERMISSION)
    }

    /// Replaces the kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.report.kind = kind;
        self
    }

    #[must_use]
    pub fn with_suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.report.suggestion = Some(suggestion.into());
        self
    }

    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.report.details = Some(details);
        self
    }

    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.report.retry_after = Some(wait);
        self
    }

    #[must_use]
    pub fn with_source_error(mut self, origin: SourceError) -> Self {
        self.report.origin = Some(origin);
        self
    }

    /// The error that the source itself returned, if any.
    pub fn source_error(&self) -> Option<&SourceError> {
        self.report.origin.as_ref()
    }

    pub fn kind(&self) -> ErrorKind {
        self.report.kind
    }

    pub fn message(&self) -> &str {
        &self.report.message
    }

    pub fn suggestion(&self) -> Option<&str> {
        self.report.suggestion.as_deref()
    }

    pub fn details(&self) -> Option<&Value> {
        self.report.details.as_ref()
    }

    pub fn retry_after(&self) -> Option<Duration> {
        self.report.retry_after
    }

    /// The message, followed by the suggestion on a line of its own, for fronts with a single text
    /// field.
    pub fn message_with_suggestion(&self) -> String {
        match &self.report.suggestion {
            Some(suggestion) => format!("{}\nhint: {suggestion}", self.report.message),
            None => self.report.message.clone(),
        }
    }
}
