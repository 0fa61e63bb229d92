//! `toolyard add`, `remove`, `enable` and `disable`: changes to a toolyard.toml that leave everything else in it as it
//! is. A file that is only named with --config is never written.

use std::path::{Path, PathBuf};

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, value};
use toolyard_hub::nearest;

use crate::args::{AddArgs, RemoveArgs, Scope, ScopeArgs, ToggleArgs, TransportArg};
use crate::clean::{clean_name, is_deceptive};
use crate::config::{self, Config, Environment, TOOLYARD_TOML, carries_credentials};
use crate::error::CommandError;
use crate::terminal::{note, note_more};
use crate::{Exit, atomic};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enablement {
    On,
    Off,
}

pub(crate) fn add(args: &AddArgs) -> Result<Exit, CommandError> {
    let around = Environment::from_process();
    let path = target(args.scope, &around)?;
    let mut entry = entry(args)?;
    if args.cwd.is_none()
        && let Some(program) = args.command.first()
    {
        pin(&mut entry, program, &path, around.folder());
    }
    edit(&path, |document| {
        let servers = servers(document)?;
        if servers.contains_key(&args.name) {
            return Err(CommandError::usage(format!(
                "there is a server {} in {}",
                args.name,
                path.display()
            ))
            .suggest(format!("choose another name, or `toolyard remove {}` first", args.name)));
        }
        servers.insert(&args.name, Item::Table(entry));
        Ok(())
    })?;
    note(&format!("added {} to {}", args.name, path.display()));
    note_more(&format!("`toolyard list tools {}` shows what it offers", args.name));
    Ok(Exit::Fine)
}

pub(crate) fn remove(args: &RemoveArgs) -> Result<Exit, CommandError> {
    let around = Environment::from_process();
    let path = target(args.scope, &around)?;
    edit(&path, |document| {
        let servers = servers(document)?;
        match servers.remove(&args.name) {
            Some(_) => Ok(()),
            None => Err(unknown(&args.name, servers, &path, &around)),
        }
    })?;
    note(&format!("removed {} from {}", args.name, path.display()));
    Ok(Exit::Fine)
}

pub(crate) fn set_enabled(args: &ToggleArgs, switch: Enablement) -> Result<Exit, CommandError> {
    let around = Environment::from_process();
    let path = target(args.scope, &around)?;
    edit(&path, |document| {
        let servers = servers(document)?;
        match servers.get_mut(&args.name).and_then(Item::as_table_like_mut) {
            Some(server) => {
                set(server, "enabled", switch == Enablement::On);
                Ok(())
            }
            None => Err(unknown(&args.name, servers, &path, &around)),
        }
    })?;
    let word = if switch == Enablement::On { "enabled" } else { "disabled" };
    note(&format!("{word} {} in {}", args.name, path.display()));
    Ok(Exit::Fine)
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
        None => Ok(config::default_config_file(around).unwrap_or_else(project)),
    }
}

/// Changes a file while nobody else does. Comments, order and blanks stay.
pub(super) fn edit(
    path: &Path,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let cannot = |what: &str, error: &std::io::Error| {
        CommandError::new(Exit::Failed, format!("cannot {what} {}: {error}", path.display()))
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| cannot("make the folder of", &error))?;
    }
    let _held = atomic::lock_folder(path).map_err(|error| cannot("change", &error))?;
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(cannot("read", &error)),
    };
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        CommandError::usage(format!("{} is no TOML: {}", path.display(), error.message()))
            .suggest("`toolyard doctor` shows where")
    })?;
    change(&mut document)?;
    atomic::write(path, document.to_string().as_bytes()).map_err(|error| cannot("write", &error))
}

fn servers(document: &mut DocumentMut) -> Result<&mut dyn TableLike, CommandError> {
    let item = document.entry("servers").or_insert_with(|| {
        let mut table = Table::new();
        // `[servers.name]` says it all.
        table.set_implicit(true);
        Item::Table(table)
    });
    item.as_table_like_mut().ok_or_else(|| CommandError::usage("`servers` is no table in this file"))
}

/// Sets a key and keeps the comment behind its value.
fn set(table: &mut dyn TableLike, key: &str, to: bool) {
    let mut new = toml_edit::Value::from(to);
    if let Some(old) = table.get(key).and_then(Item::as_value) {
        *new.decor_mut() = old.decor().clone();
    }
    table.insert(key, Item::Value(new));
}

fn unknown(name: &str, servers: &dyn TableLike, path: &Path, around: &Environment) -> CommandError {
    let fault = CommandError::usage(format!("there is no server {} in {}", clean_name(name), path.display()));
    let elsewhere = Config::load(&[], around)
        .is_ok_and(|config| config.servers().iter().any(|entry| entry.name().as_str() == name));
    if elsewhere {
        return fault.suggest("it comes from a file that is imported: change it there");
    }
    let names: Vec<String> = servers.iter().map(|(name, _)| name.to_owned()).collect();
    match nearest(name, names.iter().map(String::as_str)) {
        Some(close) => fault.suggest(format!("did you mean {close}?")),
        None if names.is_empty() => fault.suggest("it has none"),
        None => fault.suggest(format!("there are: {}", names.join(", "))),
    }
}

fn entry(args: &AddArgs) -> Result<Table, CommandError> {
    let fine = !args.name.trim().is_empty() && !args.name.contains(|c: char| is_deceptive(c) || c == '/');
    if !fine {
        return Err(CommandError::usage(
            "a server's name must not be empty, and must have no slash and no invisible character",
        ));
    }
    let mut table = Table::new();
    match (&args.url, args.command.split_first()) {
        (Some(url), _) => {
            if args.transport == Some(TransportArg::Stdio) {
                return Err(CommandError::usage("a server with an address is not spoken to over stdio")
                    .suggest("say the command after `--`"));
            }
            // What a variable will bring nobody knows yet.
            if !config::is_http_url(url) && !url.contains("${") {
                let fault =
                    CommandError::usage(format!("{url} is no address that starts with http:// or https://"));
                return Err(fault.suggest("a command goes after `--`, as in `toolyard add NAME -- command`"));
            }
            table.insert("url", value(url));
            if let Some(transport) = args.transport {
                table.insert("type", value(transport.as_str()));
            }
            let headers =
                args.header.iter().map(|header| config::parse_header(header).map_err(CommandError::usage));
            let headers: Vec<(String, String)> = headers.collect::<Result<_, _>>()?;
            if headers.iter().any(|(name, value)| carries_credentials(name) && !value.contains("${")) {
                note("a secret is written into the file as it is; ${NAME} would keep it in the environment");
            }
            put(&mut table, "headers", headers);
        }
        (None, Some((program, rest))) => {
            if args.transport.is_some_and(|transport| transport != TransportArg::Stdio) {
                return Err(CommandError::usage("a command is spoken to over stdio")
                    .suggest("say the address instead of a command"));
            }
            table.insert("command", value(program));
            if !rest.is_empty() {
                table.insert("args", value(rest.iter().collect::<Array>()));
            }
            let pair = |text: &String| match text.split_once('=') {
                Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
                _ => Err(CommandError::usage("an environment variable is written as NAME=value")),
            };
            let env: Vec<(String, String)> = args.env.iter().map(pair).collect::<Result<_, _>>()?;
            put(&mut table, "env", env);
            if let Some(cwd) = &args.cwd {
                table.insert("cwd", value(cwd));
            }
        }
        (None, None) => {
            return Err(CommandError::usage("what is the server? say an address, or a command after `--`")
                .suggest("as in `toolyard add NAME https://…` or `toolyard add NAME -- command`"));
        }
    }
    Ok(table)
}

/// A program that is named by its place in this folder is found from elsewhere too. In the file of this very folder that is
/// said with the folder that the server starts in, so that the file can be moved and shared; anywhere else with the whole
/// path.
fn pin(entry: &mut Table, program: &str, file: &Path, folder: &Path) {
    let here = folder.join(program);
    if !program.contains('/') || Path::new(program).is_absolute() || program.contains("${") || !here.is_file()
    {
        return;
    }
    if file.parent() == Some(folder) {
        entry.insert("cwd", value("."));
        return;
    }
    if let Some(whole) = std::path::absolute(&here).ok().as_deref().and_then(Path::to_str) {
        entry.insert("command", value(whole));
    }
}

fn put(table: &mut Table, key: &str, pairs: Vec<(String, String)>) {
    if !pairs.is_empty() {
        table.insert(key, value(pairs.into_iter().collect::<InlineTable>()));
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{CommandError, Item, Table, edit, servers, set};

    fn scratch(name: &str, text: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("toolyard-edit-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("toolyard.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn comments_order_and_blanks_stay() {
        let text = "# mine\nlisten = \"127.0.0.1:1\"  # here\n\n[servers.a] # the first\ncommand = \"x\"\nenabled = true # for now\n\n# the end\n";
        let path = scratch("stay", text);
        edit(&path, |document| {
            let servers = servers(document)?;
            set(servers.get_mut("a").and_then(Item::as_table_like_mut).unwrap(), "enabled", false);
            servers.insert("b", Item::Table(Table::from_iter([("url", "http://b")])));
            Ok(())
        })
        .unwrap();
        let expected = text
            .replace("enabled = true", "enabled = false")
            .replace("\n# the end\n", "\n[servers.b]\nurl = \"http://b\"\n\n# the end\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn a_change_that_fails_leaves_the_file_alone() {
        let path = scratch("alone", "a = 1\n");
        edit(&path, |_| Err(CommandError::usage("no"))).unwrap_err();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a = 1\n");
        std::fs::write(&path, "a = \n").unwrap();
        edit(&path, |_| Ok(())).unwrap_err();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a = \n");
    }
}
