//! Errors of commands: their message, their suggestion and the exit code. This is the only place
//! that maps error kinds to exit codes.

use std::io;

use toolyard_history::HistoryStoreError;
use toolyard_hub::{ErrorKind, HubError};
use toolyard_postgres::PostgresError;
use toolyard_remote::{RemoteError, strip_token};

use crate::Exit;
use crate::clean::clean_line;
use crate::terminal::{print_error, print_hint};

#[derive(Debug)]
pub(crate) enum CommandError {
    /// The error has already been printed.
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
    /// Invalid arguments.
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

    /// Connecting to a running yard failed.
    pub(crate) fn connect_failed(verb: &str, url: &reqwest::Url, error: &RemoteError) -> Self {
        let why = clean_line(error.message());
        let message = format!("cannot {verb} {}: {why}", strip_token(url));
        match error {
            RemoteError::Refused(_) => {
                Self::new(Exit::Unauthorized, format!("the yard rejected the connection: {why}"))
                    .suggest("pass a valid token with --token or TOOLYARD_TOKEN")
            }
            RemoteError::ProtocolMismatch(_) => Self::new(Exit::Unreachable, message)
                .suggest("run `toolyard --version` on both machines; the versions must match"),
            RemoteError::Unreachable(_) => Self::new(Exit::Unreachable, message)
                .suggest("check the URL, or start a yard with `toolyard serve`"),
        }
    }

    /// Prints the error and returns the exit code.
    pub(crate) fn report(self) -> Exit {
        match self {
            Self::AlreadyReported(exit) => exit,
            Self::Failure { exit, message, suggestion } => {
                print_error(&message);
                suggestion.iter().for_each(|suggestion| print_hint(suggestion));
                exit
            }
            // The reader, such as `head`, closed the pipe because it has read enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
            Self::Output(error) => {
                print_error(&format!("cannot write to standard output: {error}"));
                Exit::Failed
            }
            Self::Other(error) => {
                print_error(&format!("{error:#}"));
                let suggestion =
                    error.downcast_ref::<HistoryStoreError>().and_then(HistoryStoreError::suggestion);
                let suggestion = suggestion
                    .or_else(|| error.downcast_ref::<PostgresError>().map(PostgresError::suggestion));
                suggestion.iter().for_each(|suggestion| print_hint(suggestion));
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
        let default = match error.kind() {
            ErrorKind::UnknownTool => Some("run `toolyard list` to see the available tools"),
            ErrorKind::UnknownResource => {
                Some("run `toolyard list resources` to see the available resources")
            }
            ErrorKind::UnknownPrompt => Some("run `toolyard list prompts` to see the available prompts"),
            _ => None,
        };
        // The terminal UI can answer everything that the command line cannot, except for roots.
        let ui = matches!(error.kind(), ErrorKind::ClientCannot)
            && error.details().is_some_and(|needed| needed.get("roots").is_none());
        let suggestion = match ui {
            true => Some("call the tool in `toolyard ui`, or from an MCP client that supports this"),
            false => error.suggestion().or(default),
        };
        let suggestion = suggestion.map(ToOwned::to_owned);
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
