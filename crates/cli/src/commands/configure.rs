//! `toolyard add`, `remove`, `enable` and `disable`: change a toolyard.toml and leave everything
//! else in it untouched. A file passed with --config is never written.

use std::borrow::Cow;
use std::path::PathBuf;

use toolyard_config::{
    Config, ConfigEditError, Environment, NewServer, TOOLYARD_TOML, add_server, carries_credentials,
    remove_server, set_server_enabled,
};
use toolyard_hub::nearest;

use crate::Exit;
use crate::args::{AddArgs, ConfiguredServerArgs, Scope, ScopeArgs, TransportArg};
use crate::clean::is_deceptive;
use crate::configuration::process_environment;
use crate::error::CommandError;
use crate::terminal::{print_hint, print_note, print_warning};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enablement {
    On,
    Off,
}

pub(crate) fn add(args: &AddArgs) -> Result<Exit, CommandError> {
    let around = process_environment();
    let path = target(args.scope, &around)?;
    let mut server = new_server(args)?;
    server.pin_program(&path, around.folder());
    add_server(&path, &args.name, &server)?;
    print_note(&format!("added `{}` to {}", args.name, path.display()));
    print_hint(&format!("run `toolyard list tools {}` to see its tools", shell_word(&args.name)));
    Ok(Exit::Success)
}

pub(crate) fn remove(args: &ConfiguredServerArgs) -> Result<Exit, CommandError> {
    let around = process_environment();
    let path = target(args.scope, &around)?;
    remove_server(&path, &args.name).map_err(|error| explain(error, &around))?;
    print_note(&format!("removed `{}` from {}", args.name, path.display()));
    Ok(Exit::Success)
}

pub(crate) fn set_enabled(args: &ConfiguredServerArgs, switch: Enablement) -> Result<Exit, CommandError> {
    let around = process_environment();
    let path = target(args.scope, &around)?;
    let enabled = switch == Enablement::On;
    set_server_enabled(&path, &args.name, enabled).map_err(|error| explain(error, &around))?;
    let word = if enabled { "enabled" } else { "disabled" };
    print_note(&format!("{word} `{}` in {}", args.name, path.display()));
    Ok(Exit::Success)
}

/// Quotes `text` for a shell if necessary, so that a command in a hint works when it is pasted.
fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:@%+=".contains(c);
    match text.chars().all(is_plain) && !text.is_empty() {
        true => text.into(),
        false => format!("'{}'", text.replace('\'', r"'\''")).into(),
    }
}

/// Returns the file to change.
pub(super) fn target(scope: ScopeArgs, around: &Environment) -> Result<PathBuf, CommandError> {
    let project = || around.folder().join(TOOLYARD_TOML);
    match scope.scope {
        Some(Scope::Project) => Ok(project()),
        Some(Scope::User) => {
            let home = around.config_home();
            let home =
                home.ok_or_else(|| CommandError::usage("no home directory for the user configuration"))?;
            Ok(home.join("toolyard").join(TOOLYARD_TOML))
        }
        None => Ok(toolyard_config::default_config_file(around).unwrap_or_else(project)),
    }
}

impl From<ConfigEditError> for CommandError {
    fn from(error: ConfigEditError) -> Self {
        let exit = match &error {
            ConfigEditError::Io { .. } => Exit::Failed,
            _ => Exit::Usage,
        };
        let failure = Self::new(exit, error.to_string());
        match error {
            ConfigEditError::Syntax { .. } => failure.suggest("run `toolyard doctor` to see the location"),
            ConfigEditError::ServerExists { name, .. } => {
                failure.suggest(format!("choose another name, or run `toolyard remove {name}` first"))
            }
            ConfigEditError::UnknownServer { name, known, .. } => {
                match nearest(&name, known.iter().map(String::as_str)) {
                    Some(close) => failure.suggest(format!("did you mean `{close}`?")),
                    None if known.is_empty() => failure.suggest("this file defines no servers"),
                    None => failure.suggest(format!("servers in this file: {}", known.join(", "))),
                }
            }
            _ => failure,
        }
    }
}

/// Explains an edit error. An unknown server may come from an imported file.
fn explain(error: ConfigEditError, around: &Environment) -> CommandError {
    let imported = match &error {
        ConfigEditError::UnknownServer { name, .. } => Config::load(&[], around)
            .is_ok_and(|config| config.servers().iter().any(|entry| entry.name().as_str() == name)),
        _ => false,
    };
    let error = CommandError::from(error);
    if imported { error.suggest("the server comes from an imported file; change it there") } else { error }
}

fn new_server(args: &AddArgs) -> Result<NewServer, CommandError> {
    let fine = !args.name.trim().is_empty() && !args.name.contains(|c: char| is_deceptive(c) || c == '/');
    if !fine {
        return Err(CommandError::usage(
            "a server name must not be empty or contain a slash, a control character or an invisible character",
        ));
    }
    Ok(match (&args.url, args.command.split_first()) {
        (Some(url), _) => {
            if args.transport == Some(TransportArg::Stdio) {
                return Err(CommandError::usage("the transport `stdio` requires a command, not a URL")
                    .suggest("pass the command after `--`"));
            }
            // The value of a variable is not known yet.
            if !toolyard_config::is_http_url(url) && !url.contains("${") {
                let fault = CommandError::usage(format!("`{url}` is not an http:// or https:// URL"));
                return Err(fault
                    .suggest("to add a command, pass it after `--`, as in `toolyard add NAME -- COMMAND`"));
            }
            let headers = args
                .header
                .iter()
                .map(|header| toolyard_config::parse_header(header).map_err(CommandError::usage));
            let headers: Vec<(String, String)> = headers.collect::<Result<_, _>>()?;
            if headers.iter().any(|(name, value)| carries_credentials(name) && !value.contains("${")) {
                print_warning("the secret is stored in the file in plain text");
                print_hint("write ${NAME} to read it from an environment variable");
            }
            let transport = args.transport.map(|transport| transport.as_str().to_owned());
            NewServer::Url { url: url.clone(), transport, headers }
        }
        (None, Some((program, rest))) => {
            if args.transport.is_some_and(|transport| transport != TransportArg::Stdio) {
                return Err(CommandError::usage("a command requires the transport `stdio`")
                    .suggest("pass a URL instead of a command"));
            }
            let pair = |text: &String| match text.split_once('=') {
                Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
                _ => Err(CommandError::usage("an environment variable must have the form NAME=value")),
            };
            let env: Vec<(String, String)> = args.env.iter().map(pair).collect::<Result<_, _>>()?;
            NewServer::Command { program: program.clone(), args: rest.to_vec(), env, cwd: args.cwd.clone() }
        }
        (None, None) => {
            return Err(CommandError::usage("a URL or a command is required")
                .suggest("run `toolyard add NAME https://…` or `toolyard add NAME -- COMMAND`"));
        }
    })
}
