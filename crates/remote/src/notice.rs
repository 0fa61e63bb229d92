//! Notices of a remote yard for the front that displays it.

use std::time::SystemTime;

use super::replicas::ReplicaSummary;

/// A notice for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteNotice {
    Log(RemoteLogLine),
    /// The reason why the yard cannot be reached; `None` when it is connected again.
    Connectivity(Option<String>),
    /// The replicas of the yard; `None` if it runs as one process.
    Replicas(Option<ReplicaSummary>),
    /// A command to a server failed.
    CommandFailed(String),
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteLogLine {
    pub at: SystemTime,
    pub subject: RemoteLogSubject,
    /// The server that the line is about, if any.
    pub server: Option<String>,
    pub text: String,
}

/// The subject of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteLogSubject {
    /// A call of another client of the yard.
    Call,
    /// The yard itself, or the connection to it.
    Yard,
}
