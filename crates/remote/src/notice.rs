//! What a remote yard tells the front that shows it.

use std::time::SystemTime;

/// Something that a person who looks at the yard should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteNotice {
    Log(RemoteLogLine),
    /// Why the yard cannot be reached; nothing once it can.
    Connectivity(Option<String>),
    /// A command to a server failed.
    CommandFailed(String),
}

/// One line for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteLogLine {
    pub at: SystemTime,
    pub subject: RemoteLogSubject,
    /// The server that it is about, if it is about one.
    pub server: Option<String>,
    pub text: String,
}

/// What a line of the log is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteLogSubject {
    /// A call of another client of the yard.
    Call,
    /// The yard itself, or the connection to it.
    Yard,
}
