//! Why a verb did not do what it was asked to: the words for it, and the exit code. The table from kinds of errors to
//! exit codes is here and nowhere else.

use std::io;

use toolyard_hub::{ErrorKind, HubError};
use toolyard_remote::{RemoteError, strip_token};

use crate::Exit;
use crate::clean::clean_line;
use crate::terminal::{note, note_detail};

#[derive(Debug)]
pub(crate) enum CommandError {
    /// The person was told already.
    AlreadyReported(Exit),
    Failure {
        exit: Exit,
        message: String,
        suggestion: Option<String>,
    },
    /// Standard output cannot be written to.
    Output(io::Error),
    Other(anyhow::Error),
}

impl CommandError {
    /// What was asked for makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self::Failure { exit, message: message.into(), suggestion: None }
    }

    pub(crate) fn suggest(self, more: impl Into<String>) -> Self {
        match self {
            Self::Failure { exit, message, .. } => {
                Self::Failure { exit, message, suggestion: Some(more.into()) }
            }
            other => other,
        }
    }

    pub(crate) fn interrupted() -> Self {
        Self::AlreadyReported(Exit::Interrupted)
    }

    /// A running yard cannot be attached to.
    pub(crate) fn connect_failed(verb: &str, url: &reqwest::Url, error: &RemoteError) -> Self {
        let why = clean_line(error.message());
        let message = format!("cannot {verb} {}: {why}", strip_token(url));
        match error {
            RemoteError::Refused(_) => {
                Self::new(Exit::Unauthorized, format!("the yard does not let us in: {why}"))
                    .suggest("say its token with --token, or in TOOLYARD_TOKEN")
            }
            RemoteError::ProtocolMismatch(_) => Self::new(Exit::Unreachable, message)
                .suggest("is a yard of this version served there? toolyard --version"),
            RemoteError::Unreachable(_) => {
                Self::new(Exit::Unreachable, message).suggest("is a yard served there? toolyard serve")
            }
        }
    }

    /// Tells the person, and says how the process ends.
    pub(crate) fn report(self) -> Exit {
        match self {
            Self::AlreadyReported(exit) => exit,
            Self::Failure { exit, message, suggestion } => {
                note(&message);
                if let Some(suggestion) = suggestion {
                    suggestion.lines().for_each(note_detail);
                }
                exit
            }
            // Whoever read it has seen enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
            Self::Output(error) => {
                note(&format!("cannot write: {error}"));
                Exit::Failed
            }
            Self::Other(error) => {
                note(&format!("{error:#}"));
                Exit::Failed
            }
        }
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Bug => Self::Failed,
            ErrorKind::InvalidArguments | ErrorKind::TooLarge => Self::Usage,
            ErrorKind::Unauthenticated | ErrorKind::Forbidden => Self::Unauthorized,
            ErrorKind::NotConnected | ErrorKind::CannotConnect | ErrorKind::ConnectionLost => {
                Self::Unreachable
            }
            ErrorKind::UnknownTool | ErrorKind::UnknownResource | ErrorKind::UnknownPrompt => {
                Self::ToolFailed
            }
            ErrorKind::ToolFailed | ErrorKind::ClientCannot => Self::ToolFailed,
            ErrorKind::RateLimited => Self::RateLimited,
            ErrorKind::TimedOut => Self::TimedOut,
            ErrorKind::Cancelled => Self::Interrupted,
        }
    }
}

impl From<HubError> for CommandError {
    fn from(error: HubError) -> Self {
        let elsewhere = match error.kind() {
            ErrorKind::UnknownTool => Some("toolyard list shows what there is"),
            ErrorKind::UnknownResource => Some("toolyard list resources shows what there is"),
            ErrorKind::UnknownPrompt => Some("toolyard list prompts shows what there is"),
            _ => None,
        };
        let suggestion = error.suggestion().or(elsewhere).map(ToOwned::to_owned);
        Self::Failure { exit: error.kind().into(), message: error.message().to_owned(), suggestion }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use toolyard_hub::ErrorKind;

    use crate::Exit;

    #[test]
    fn every_kind_of_error_has_its_exit_code() {
        let code = |kind: ErrorKind| format!("{:?}", ExitCode::from(Exit::from(kind)));
        let table: Vec<String> =
            ErrorKind::ALL.iter().map(|kind| format!("{}: {}", kind.as_str(), code(*kind))).collect();
        insta::assert_snapshot!(table.join("\n"));
    }
}
