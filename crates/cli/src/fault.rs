//! Why a verb did not do what it was asked to: the words for it, and the exit code. The table from kinds of errors to
//! exit codes is here and nowhere else.

use std::io;

use toolyard_hub::{Error, Kind};

use crate::Exit;
use crate::terminal::{note, note_more};

#[derive(Debug)]
pub(crate) enum Fault {
    /// The person was told already.
    Told(Exit),
    Refused {
        exit: Exit,
        message: String,
        suggestion: Option<String>,
    },
    /// Standard output cannot be written to.
    Output(io::Error),
    Other(anyhow::Error),
}

impl Fault {
    /// What was asked for makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self::Refused { exit, message: message.into(), suggestion: None }
    }

    pub(crate) fn suggest(self, more: impl Into<String>) -> Self {
        match self {
            Self::Refused { exit, message, .. } => {
                Self::Refused { exit, message, suggestion: Some(more.into()) }
            }
            other => other,
        }
    }

    pub(crate) fn interrupted() -> Self {
        Self::Told(Exit::Interrupted)
    }

    /// Tells the person, and says how the process ends.
    pub(crate) fn tell(self) -> Exit {
        match self {
            Self::Told(exit) => exit,
            Self::Refused { exit, message, suggestion } => {
                note(&message);
                if let Some(suggestion) = suggestion {
                    suggestion.lines().for_each(note_more);
                }
                exit
            }
            // Whoever read it has seen enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Fine,
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

impl From<Kind> for Exit {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Bug => Self::Failed,
            Kind::InvalidArguments | Kind::TooLarge => Self::Usage,
            Kind::Unauthenticated | Kind::Forbidden => Self::Unauthorised,
            Kind::NotConnected | Kind::CannotConnect | Kind::ConnectionLost => Self::Unreachable,
            Kind::UnknownTool | Kind::UnknownResource | Kind::UnknownPrompt => Self::ToolFailed,
            Kind::ToolFailed | Kind::ClientCannot => Self::ToolFailed,
            Kind::RateLimited => Self::RateLimited,
            Kind::TimedOut => Self::TimedOut,
            Kind::Cancelled => Self::Interrupted,
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let elsewhere = match error.kind() {
            Kind::UnknownTool => Some("toolyard list shows what there is"),
            Kind::UnknownResource => Some("toolyard list resources shows what there is"),
            Kind::UnknownPrompt => Some("toolyard list prompts shows what there is"),
            _ => None,
        };
        let suggestion = error.suggestion().or(elsewhere).map(ToOwned::to_owned);
        Self::Refused { exit: error.kind().into(), message: error.message().to_owned(), suggestion }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<anyhow::Error> for Fault {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use toolyard_hub::Kind;

    use crate::Exit;

    #[test]
    fn every_kind_of_error_has_its_exit_code() {
        let code = |kind: Kind| format!("{:?}", ExitCode::from(Exit::from(kind)));
        let table: Vec<String> =
            Kind::ALL.iter().map(|kind| format!("{}: {}", kind.as_str(), code(*kind))).collect();
        insta::assert_snapshot!(table.join("\n"));
    }
}
