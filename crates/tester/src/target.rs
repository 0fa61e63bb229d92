//! The target of a connection: an address, a configured server, a script, or a command line.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use toolyard_hub::{ErrorKind, HubError, Principal, Secret, SourceName, nearest};
use toolyard_upstream::{
    CommandSettings, EnvInheritance, ServerSettings, TransportSettings, UrlKind, UrlSettings,
};

/// The configured servers by name. The owner replaces the map when the configuration is reloaded.
pub type TesterServers = Arc<ArcSwap<BTreeMap<String, TesterServer>>>;

/// A configured server.
#[derive(Debug, Clone)]
pub enum TesterServer {
    Ready(Box<ServerSettings>),
    /// The configuration of this server is invalid, for this reason.
    Invalid(String),
}

/// The target of a connection.
#[derive(Debug)]
pub(crate) enum TesterTarget {
    /// An address from the caller.
    Address(ServerSettings),
    /// A program to start for the caller.
    Command(ServerSettings),
    Configured(Box<ServerSettings>),
}

/// Parses the target of a connection.
pub(crate) fn parse_target(
    text: &str,
    servers: &BTreeMap<String, TesterServer>,
    principal: &Principal,
) -> Result<TesterTarget, HubError> {
    let text = text.trim();
    let settings = |transport| ServerSettings::new(SourceName::new("server under test"), transport);
    if is_http_url(text) {
        let url = UrlSettings { url: text.to_owned(), headers: BTreeMap::new(), kind: UrlKind::Any };
        return Ok(TesterTarget::Address(settings(TransportSettings::Url(url))));
    }
    // Servers that are hidden from this principal are ignored.
    match servers.get(text).filter(|_| principal.can_access_source(&SourceName::new(text))) {
        Some(TesterServer::Ready(settings)) => return Ok(TesterTarget::Configured(settings.clone())),
        Some(TesterServer::Invalid(reason)) => {
            let message = format!("the configured server {text} cannot be used: {reason}");
            return Err(connect_error(message).with_suggestion("fix the configuration of this server"));
        }
        None => {}
    }
    if let Some((scheme, _)) = text.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', ' '])) {
        let message = format!("unsupported URL scheme `{scheme}`");
        return Err(
            connect_error(message).with_suggestion("use an address that starts with http:// or https://")
        );
    }
    parse_command(text).map(|command| TesterTarget::Command(settings(TransportSettings::Command(command))))
}

fn is_http_url(text: &str) -> bool {
    let starts =
        |prefix: &str| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    starts("http://") || starts("https://")
}

fn connect_error(message: impl Into<String>) -> HubError {
    HubError::new(ErrorKind::CannotConnect, message)
}

fn parse_command(text: &str) -> Result<CommandSettings, HubError> {
    // A path may contain spaces, so the complete text is checked before it is split.
    let words = match Path::new(text).is_file() {
        true => vec![text.to_owned()],
        false => shlex::split(text).ok_or_else(|| {
            connect_error("the command line has an unclosed quote")
                .with_suggestion("quote arguments as in a shell")
        })?,
    };
    let mut words = words.into_iter().peekable();
    let mut env = BTreeMap::new();
    while let Some((name, value)) = words.peek().and_then(|word| parse_env_assignment(word)) {
        env.insert(name.to_owned(), Secret::new(value));
        words.next();
    }
    let Some(first) = words.next() else {
        let error = connect_error("nothing to connect to");
        return Err(
            error.with_suggestion("pass an address, a command line, or the name of a configured server")
        );
    };
    let mut started = command_for_file(&first);
    let mut args: Vec<String> = started.split_off(1);
    let program = started.remove(0);
    args.extend(words);
    Ok(CommandSettings { program, args, env, cwd: None, inherit: EnvInheritance::AllowList })
}

/// Returns the configured server that was probably meant by a command that could not be started.
pub(crate) fn suggest_server<'a>(
    text: &str,
    servers: &'a BTreeMap<String, TesterServer>,
    principal: &Principal,
) -> Option<&'a str> {
    let seen = servers.keys().filter(|name| principal.can_access_source(&SourceName::new(name.as_str())));
    nearest(text.trim(), seen.map(String::as_str))
}

/// Parses a `NAME=value` assignment before a command, as a shell does.
fn parse_env_assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    let goes_on = letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    (begins && goes_on).then_some((name, value))
}

/// Returns the program for this word and its first arguments. A script that is not executable is
/// run with the interpreter for its file extension.
fn command_for_file(word: &str) -> Vec<String> {
    let path = Path::new(word);
    let Ok(found) = path.metadata() else { return vec![word.to_owned()] };
    if !found.is_file() {
        return vec![word.to_owned()];
    }
    let interpreter: &[&str] = match path.extension().and_then(|extension| extension.to_str()) {
        _ if found.permissions().mode() & 0o111 != 0 => &[],
        Some("py") => &["python3"],
        Some("js" | "mjs" | "cjs") => &["node"],
        Some("ts" | "mts" | "cts") => &["npx", "-y", "tsx"],
        Some("rb") => &["ruby"],
        Some("sh") => &["sh"],
        _ => &[],
    };
    let mut words: Vec<String> = interpreter.iter().map(|word| (*word).to_owned()).collect();
    // Without a slash, it would be searched on the `PATH`.
    words.push(if word.contains('/') { word.to_owned() } else { format!("./{word}") });
    words
}
