//! Suggestions for users whose server cannot be connected.

use toolyard_wire::WireError;

use super::{ConnectError, ConnectErrorCause};
use crate::settings::{ServerSettings, TransportSettings};

impl ConnectError {
    /// Returns the note about the variables withheld from a process that exited, for the log.
    pub(crate) fn withheld_note(&self) -> Option<&str> {
        match &*self.cause {
            ConnectErrorCause::Exit(_, note) => note.as_deref(),
            _ => None,
        }
    }

    /// Returns what the user can do, if anything. The reason may contain the same text.
    pub(crate) fn suggestion(&self, settings: &ServerSettings) -> Option<String> {
        let is_command = matches!(settings.transport, TransportSettings::Command(_));
        let text = match &*self.cause {
            ConnectErrorCause::Other => return None,
            ConnectErrorCause::Spawn(error) => return error.suggestion(),
            ConnectErrorCause::Unauthorized(suggestion) => return suggestion.clone(),
            ConnectErrorCause::TimedOut if settings.transport.downloader().is_some() => {
                "retry, or set a longer time limit: `--start-timeout 5m` for one run, `start_timeout` in the configuration"
            }
            ConnectErrorCause::TimedOut if is_command => {
                "run the command manually to see what it waits for, or increase `start_timeout`"
            }
            ConnectErrorCause::TimedOut => "check the URL, or increase `start_timeout`",
            ConnectErrorCause::Exit(_, Some(note)) => {
                return Some(format!("run the command manually and check its output; {note}"));
            }
            ConnectErrorCause::Exit(_, None) => "run the command manually and check its output",
            ConnectErrorCause::Failure(failure) => match failure {
                WireError::Unreachable(_) => "check that the server is running and that its URL is correct",
                WireError::Status { status: 404 | 405, .. } => {
                    "check the path of the URL: most servers use /mcp, older ones /sse"
                }
                WireError::Status { status: 500.., .. } => {
                    "the server or a proxy in front of it failed; check its log"
                }
                WireError::Redirected { to, .. } => {
                    return Some(format!("if you trust {to}, set it as the `url` of this server"));
                }
                WireError::Status { .. } => "check the URL and the headers",
                WireError::Protocol(_) | WireError::Lost(_) if is_command => {
                    "run the command manually: it must write only MCP messages to standard output; some servers need \
                     an argument such as `stdio`"
                }
                WireError::Protocol(_) => "check that the URL is that of an MCP server, not of a web page",
                WireError::Lost(_) | WireError::SessionGone | WireError::Rpc(_) => {
                    "check the log of the server"
                }
                WireError::Unauthorized { .. } => "check the token and the headers",
                WireError::TooLarge(_) => {
                    "if you trust the server with that much memory, raise the limit under [limits]; `enabled_tools` does \
                     not help, because the whole list is read"
                }
            },
        };
        Some(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use toolyard_hub::SourceName;
    use toolyard_wire::{RpcError, WireError};

    use super::{ConnectError, ConnectErrorCause};
    use crate::auth::AuthError;
    use crate::child::ProcessExit;
    use crate::settings::{
        CommandSettings, EnvInheritance, ServerSettings, TransportSettings, UrlKind, UrlSettings,
    };

    fn at_address() -> ServerSettings {
        let url =
            UrlSettings { url: "http://a/?key=secret".to_owned(), headers: [].into(), kind: UrlKind::Any };
        ServerSettings::new(SourceName::new("s"), TransportSettings::Url(url))
    }

    fn started(program: &str) -> ServerSettings {
        let args = vec!["secret".to_owned()];
        let command = CommandSettings {
            program: program.to_owned(),
            args,
            env: [].into(),
            cwd: None,
            inherit: EnvInheritance::AllowList,
        };
        ServerSettings::new(SourceName::new("s"), TransportSettings::Command(command))
    }

    #[test]
    fn every_connect_error_has_a_suggestion() {
        let failures = || {
            [
                WireError::Unreachable("no".to_owned()),
                WireError::Lost("no".to_owned()),
                WireError::SessionGone,
                WireError::Protocol("no".to_owned()),
                WireError::Rpc(RpcError::new(-32603, "no")),
                WireError::Unauthorized { challenge: None, status: 401 },
                WireError::Status { status: 400, body: String::new() },
                WireError::Status { status: 404, body: String::new() },
                WireError::Status { status: 503, body: String::new() },
                WireError::Redirected { status: 308, to: "https://b.example/mcp".to_owned() },
                WireError::TooLarge("no".to_owned()),
            ]
        };
        let mut table = Vec::new();
        for (transport, settings) in
            [("address", at_address()), ("command", started("sh")), ("download", started("npx"))]
        {
            let mut add = |cause: &str, error: ConnectError| {
                let suggestion = error.suggestion(&settings).unwrap_or_default();
                table.push(format!("{transport} / {cause}: {suggestion}"));
            };
            failures().into_iter().for_each(|failure| add(&format!("{failure:?}"), failure.into()));
            add("slow", ConnectError::timed_out(&settings));
            let exit = ProcessExit { description: "exited with code 3".to_owned(), code: Some(3) };
            add(
                "exit",
                ConnectError {
                    cause: Box::new(ConnectErrorCause::Exit(exit, None)),
                    ..ConnectError::new("no")
                },
            );
            add("login", ConnectError::unauthorized(&AuthError::LoginNeeded, "s"));
        }
        let table = table.join("\n");
        assert!(!table.contains("secret"), "{table}");
        insta::assert_snapshot!(table);
    }
}
