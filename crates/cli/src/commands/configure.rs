//! `toolyard add`, `remove`, `enable` and `disable`: changes to a toolyard.toml that leave everything else in it as it
//! is. A file that is only named with --config is never written.

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
use crate::terminal::{note, note_detail};

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
    note(&format!("added {} to {}", args.name, path.display()));
    note_detail(&format!("`toolyard list tools {}` shows what it offers", args.name));
    Ok(Exit::Success)
}

pub(crate) fn remove(args: &ConfiguredServerArgs) -> Result<Exit, CommandError> {
    let around = process_environment();
    let path = target(args.scope, &around)?;
    remove_server(&path, &args.name).map_err(|error| explain(error, &around))?;
    note(&format!("removed {} from {}", args.name, path.display()));
    Ok(Exit::Success)
}

pub(crate) fn set_enabled(args: &ConfiguredServerArgs, switch: Enablement) -> Result<Exit, CommandError> {
    let around = process_environment();
    let path = target(args.scope, &around)?;
    let enabled = switch == Enablement::On;
    set_server_enabled(&path, &args.name, enabled).map_err(|error| explain(error, &around))?;
    let word = if enabled { "enabled" } else { "disabled" };
    note(&format!("{word} {} in {}", args.name, path.display()));
    Ok(Exit::Success)
}

/// The file that a change is made to.
pub(super) fn target(scope: ScopeArgs, around: &Environment) -> Result<PathBuf, CommandError> {
    let project = || around.folder().join(TOOLYARD_TOML);
    match scope.scope {
        Some(Scope::Project) => Ok(project()),
        Some(Scope::User) => {
            let home = around.config_home();
            let home = home
                .ok_or_else(|| CommandError::usage("there is no home folder to keep a configuration in"))?;
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
            ConfigEditError::Syntax { .. } => failure.suggest("`toolyard doctor` shows where"),
            ConfigEditError::ServerExists { name, .. } => {
                failure.suggest(format!("choose another name, or `toolyard remove {name}` first"))
            }
            ConfigEditError::UnknownServer { name, known, .. } => {
                match nearest(&name, known.iter().map(String::as_str)) {
                    Some(close) => failure.suggest(format!("did you mean {close}?")),
                    None if known.is_empty() => failure.suggest("it has none"),
                    None => failure.suggest(format!("there are: {}", known.join(", "))),
                }
            }
            _ => failure,
        }
    }
}

/// A server that this file does not have may come from one that it imports.
fn explain(error: ConfigEditError, around: &Environment) -> CommandError {
    let imported = match &error {
        ConfigEditError::UnknownServer { name, .. } => Config::load(&[], around)
            .is_ok_and(|config| config.servers().iter().any(|entry| entry.name().as_str() == name)),
        _ => false,
    };
    let error = CommandError::from(error);
    if imported { error.suggest("it comes from a file that is imported: change it there") } else { error }
}

fn new_server(args: &AddArgs) -> Result<NewServer, CommandError> {
    let fine = !args.name.trim().is_empty() && !args.name.contains(|c: char| is_deceptive(c) || c == '/');
    if !fine {
        return Err(CommandError::usage(
            "a server's name must not be empty, and must have no slash and no invisible character",
        ));
    }
    Ok(match (&args.url, args.command.split_first()) {
        (Some(url), _) => {
            if args.transport == Some(TransportArg::Stdio) {
                return Err(CommandError::usage("a server with an address is not spoken to over stdio")
                    .suggest("say the command after `--`"));
            }
            // What a variable will bring nobody knows yet.
            if !toolyard_config::is_http_url(url) && !url.contains("${") {
                let fault =
                    CommandError::usage(format!("{url} is no address that starts with http:// or https://"));
                return Err(fault.suggest("a command goes after `--`, as in `toolyard add NAME -- command`"));
            }
            let headers = args
                .header
                .iter()
                .map(|header| toolyard_config::parse_header(header).map_err(CommandError::usage));
            let headers: Vec<(String, String)> = headers.collect::<Result<_, _>>()?;
            if headers.iter().any(|(name, value)| carries_credentials(name) && !value.contains("${")) {
                note("a secret is written into the file as it is; ${NAME} would keep it in the environment");
            }
            let transport = args.transport.map(|transport| transport.as_str().to_owned());
            NewServer::Url { url: url.clone(), transport, headers }
        }
        (None, Some((program, rest))) => {
            if args.transport.is_some_and(|transport| transport != TransportArg::Stdio) {
                return Err(CommandError::usage("a command is spoken to over stdio")
                    .suggest("say the address instead of a command"));
            }
            let pair = |text: &String| match text.split_once('=') {
                Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
                _ => Err(CommandError::usage("an environment variable is written as NAME=value")),
            };
            let env: Vec<(String, String)> = args.env.iter().map(pair).collect::<Result<_, _>>()?;
            NewServer::Command { program: program.clone(), args: rest.to_vec(), env, cwd: args.cwd.clone() }
        }
        (None, None) => {
            return Err(CommandError::usage("what is the server? say an address, or a command after `--`")
                .suggest("as in `toolyard add NAME https://…` or `toolyard add NAME -- command`"));
        }
    })
}
