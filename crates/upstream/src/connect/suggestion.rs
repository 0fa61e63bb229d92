//! What a person can do about a server that cannot be connected to.

use toolyard_wire::WireError;

use super::{ConnectError, ConnectErrorCause};
use crate::settings::{ServerSettings, TransportSettings};

impl ConnectError {
    /// What to do, where anything can be said; the reason may say it too.
    pub(crate) fn suggestion(&self, settings: &ServerSettings) -> Option<String> {
        let by_hand = "start its command by hand to see what it says";
        let is_command = matches!(settings.transport, TransportSettings::Command(_));
        let words = match &*self.cause {
            ConnectErrorCause::Other => return None,
            ConnectErrorCause::Spawn(error) => return error.suggestion(),
            ConnectErrorCause::Unauthorized(suggestion) => return suggestion.clone(),
            ConnectErrorCause::TimedOut if settings.transport.downloader().is_some() => {
                "try again; or allow it more time, with --start-timeout 5m once, with start_timeout for good"
            }
            ConnectErrorCause::TimedOut if is_command => {
                "start its command by hand to see what it waits for, or allow it more time with start_timeout"
            }
            ConnectErrorCause::TimedOut => {
                "see whether its url is right, or allow it more time with start_timeout"
            }
            ConnectErrorCause::Exit(_) => by_hand,
            ConnectErrorCause::Failure(failure) => match failure {
                WireError::Unreachable(_) => "see whether the server runs, and whether its url is right",
                WireError::Status { status: 404 | 405, .. } => {
                    "see whether the path of its url is right: most servers are at /mcp, older ones at /sse"
                }
                WireError::Status { status: 500.., .. } => {
                    "the server, or a proxy before it, is in trouble: its log says more"
                }
                WireError::Redirected { to, .. } => {
                    return Some(format!("if you trust {to}, set it as the url of this server"));
                }
                WireError::Status { .. } => "see whether its url and headers are right",
                WireError::Protocol(_) | WireError::Lost(_) if is_command => {
                    "start its command by hand: it must speak MCP, and nothing else, on its standard output; some servers \
                     want an argument such as `stdio` for that"
                }
                WireError::Protocol(_) => {
                    "see whether its url is that of an MCP server, and not of a web page"
                }
                WireError::Lost(_) | WireError::SessionGone | WireError::Rpc(_) => {
                    "the log of the server may say more"
                }
                WireError::Unauthorized { .. } => "see whether the token and the headers are right",
                WireError::TooLarge(_) => {
                    "if the server can be trusted with that much memory, raise the limit under [limits]; enabled_tools does \
                     not help, because the whole list is read"
                }
            },
        };
        Some(words.to_owned())
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
    fn whatever_went_wrong_there_is_something_to_do() {
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
        for (what, settings) in
            [("address", at_address()), ("command", started("sh")), ("download", started("npx"))]
        {
            let mut tell = |about: &str, refused: ConnectError| {
                table
                    .push(format!("{what} / {about}: {}", refused.suggestion(&settings).unwrap_or_default()));
            };
            failures().into_iter().for_each(|failure| tell(&format!("{failure:?}"), failure.into()));
            tell("slow", ConnectError::timed_out(&settings));
            let fate = ProcessExit { description: "exited with code 3".to_owned(), code: Some(3) };
            tell(
                "exit",
                ConnectError { cause: Box::new(ConnectErrorCause::Exit(fate)), ..ConnectError::new("no") },
            );
            tell("login", ConnectError::unauthorized(&AuthError::LoginNeeded, "s"));
        }
        let table = table.join("\n");
        assert!(!table.contains("secret"), "{table}");
        insta::assert_snapshot!(table);
    }
}
