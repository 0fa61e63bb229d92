//! What a person can do about a server that cannot be connected to.

use toolyard_wire::Failure;

use super::{Cause, Refused};
use crate::settings::{ServerSettings, TransportSettings};

impl Refused {
    /// What to do, where anything can be said; the reason may say it too.
    pub(crate) fn suggestion(&self, settings: &ServerSettings) -> Option<String> {
        let by_hand = "start its command by hand to see what it says";
        let is_command = matches!(settings.transport, TransportSettings::Command(_));
        let words = match &*self.cause {
            Cause::Other => return None,
            Cause::Spawn(error) => return error.suggestion(),
            Cause::Unauthorised(suggestion) => return suggestion.clone(),
            Cause::Slow if settings.transport.downloader().is_some() => {
                "try again; or allow it more time, with --start-timeout 5m once, with start_timeout for good"
            }
            Cause::Slow if is_command => {
                "start its command by hand to see what it waits for, or allow it more time with start_timeout"
            }
            Cause::Slow => "see whether its url is right, or allow it more time with start_timeout",
            Cause::Exit(_) => by_hand,
            Cause::Failure(failure) => match failure {
                Failure::Unreachable(_) => "see whether the server runs, and whether its url is right",
                Failure::Status { status: 404 | 405, .. } => {
                    "see whether the path of its url is right: most servers are at /mcp, older ones at /sse"
                }
                Failure::Status { status: 500.., .. } => {
                    "the server, or a proxy before it, is in trouble: its log says more"
                }
                Failure::Redirected { to, .. } => {
                    return Some(format!("if you trust {to}, set it as the url of this server"));
                }
                Failure::Status { .. } => "see whether its url and headers are right",
                Failure::Protocol(_) | Failure::Lost(_) if is_command => {
                    "start its command by hand: it must speak MCP, and nothing else, on its standard output; some servers \
                     want an argument such as `stdio` for that"
                }
                Failure::Protocol(_) => "see whether its url is that of an MCP server, and not of a web page",
                Failure::Lost(_) | Failure::SessionGone | Failure::Rpc(_) => {
                    "the log of the server may say more"
                }
                Failure::Unauthorized { .. } => "see whether the token and the headers are right",
                Failure::TooLarge(_) => {
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
    use toolyard_wire::{Failure, RpcError};

    use super::{Cause, Refused};
    use crate::auth::AuthError;
    use crate::child::Fate;
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
                Failure::Unreachable("no".to_owned()),
                Failure::Lost("no".to_owned()),
                Failure::SessionGone,
                Failure::Protocol("no".to_owned()),
                Failure::Rpc(RpcError::new(-32603, "no")),
                Failure::Unauthorized { challenge: None, status: 401 },
                Failure::Status { status: 400, body: String::new() },
                Failure::Status { status: 404, body: String::new() },
                Failure::Status { status: 503, body: String::new() },
                Failure::Redirected { status: 308, to: "https://b.example/mcp".to_owned() },
                Failure::TooLarge("no".to_owned()),
            ]
        };
        let mut table = Vec::new();
        for (what, settings) in
            [("address", at_address()), ("command", started("sh")), ("download", started("npx"))]
        {
            let mut tell = |about: &str, refused: Refused| {
                table
                    .push(format!("{what} / {about}: {}", refused.suggestion(&settings).unwrap_or_default()));
            };
            failures().into_iter().for_each(|failure| tell(&format!("{failure:?}"), failure.into()));
            tell("slow", Refused::slow(&settings));
            let fate = Fate { words: "exited with code 3".to_owned(), code: Some(3) };
            tell("exit", Refused { cause: Box::new(Cause::Exit(fate)), ..Refused::new("no") });
            tell("login", Refused::unauthorised(&AuthError::LoginNeeded, "s"));
        }
        let table = table.join("\n");
        assert!(!table.contains("secret"), "{table}");
        insta::assert_snapshot!(table);
    }
}
