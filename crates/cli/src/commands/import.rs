//! `toolyard import`: which servers other programs know, and taking them by reading their files too.

use std::path::{Path, PathBuf};

use serde_json::json;
use toolyard_config::{Config, Environment, ServerEntry, add_imports, read_imports};
use toolyard_upstream::{TransportSettings, UrlKind};

use super::configure::target;
use crate::Exit;
use crate::args::{ClientApp, ImportArgs};
use crate::clean::{clean_line, clean_name};
use crate::configuration::process_environment;
use crate::error::CommandError;
use crate::terminal::{StdoutWriter, note, note_detail};

/// A file that names servers.
struct ImportCandidate {
    program: ClientApp,
    path: PathBuf,
    servers: Vec<ServerEntry>,
    /// Whether it is read already.
    already_imported: bool,
}

pub(crate) fn run(args: &ImportArgs) -> Result<Exit, CommandError> {
    let around = process_environment();
    let own = target(args.scope, &around)?;
    let found = find(args, &around, &imported_files(&own, &around));
    show(args, &found, &own, &around)?;
    let new: Vec<&ImportCandidate> = found.iter().filter(|found| !found.already_imported).collect();
    if new.is_empty() {
        note(match found.is_empty() {
            true => "no other program on this machine knows a server",
            false => "everything is taken already",
        });
        return Ok(Exit::Success);
    }
    let count: usize = new.iter().map(|found| found.servers.len()).sum();
    if !args.write {
        note(&format!("`toolyard import --write` takes {count} of them into {}", own.display()));
        return Ok(Exit::Success);
    }
    let paths: Vec<String> = new.iter().map(|found| import_path(&found.path, &own, &around)).collect();
    add_imports(&own, &paths)?;
    note(&format!("took {count} servers: {} reads {} more files", own.display(), new.len()));
    note_detail("`toolyard list servers` shows how they are");
    Ok(Exit::Success)
}

fn find(args: &ImportArgs, around: &Environment, taken: &[PathBuf]) -> Vec<ImportCandidate> {
    let mut all = Vec::new();
    for program in
        ClientApp::ALL.into_iter().filter(|program| args.from.is_empty() || args.from.contains(program))
    {
        for path in program.files(around).into_iter().filter(|path| path.is_file()) {
            match toolyard_config::load_servers_from(&path, around) {
                Ok(config) if config.servers().is_empty() => {}
                Ok(config) => {
                    let taken = taken.contains(&path);
                    all.push(ImportCandidate {
                        program,
                        servers: config.servers().to_vec(),
                        path,
                        already_imported: taken,
                    });
                }
                Err(problems) => problems.0.iter().for_each(|problem| note(&problem.to_string())),
            }
        }
    }
    all
}

/// The files that this toolyard.toml reads already.
fn imported_files(own: &Path, around: &Environment) -> Vec<PathBuf> {
    let folder = own.parent().unwrap_or(Path::new(""));
    read_imports(own).iter().map(|path| around.resolve(path, folder)).collect()
}

/// A path as a person would write it into that file.
fn import_path(path: &Path, own: &Path, around: &Environment) -> String {
    let below =
        |folder: Option<&Path>| folder.and_then(|folder| path.strip_prefix(folder).ok()).map(Path::to_owned);
    // What is kept beside the file moves with it; the rest is the person's own.
    match (below(own.parent()), below(around.home())) {
        (Some(near), _) => near.display().to_string(),
        (None, Some(own)) => format!("~/{}", own.display()),
        (None, None) => path.display().to_string(),
    }
}

fn show(
    args: &ImportArgs,
    all: &[ImportCandidate],
    own: &Path,
    around: &Environment,
) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    let ours = Config::load(&[own.to_owned()], around);
    let ours: Vec<String> =
        ours.iter().flat_map(Config::servers).map(|entry| entry.name().to_string()).collect();
    if args.json {
        let one = |found: &ImportCandidate| {
            let servers = found.servers.iter().map(|entry| {
                let (transport, target) = describe_server(entry);
                json!({"name": entry.name().as_str(), "transport": transport, "target": target})
            });
            json!({
                "program": found.program.as_str(), "file": found.path, "taken": found.already_imported,
                "servers": servers.collect::<Vec<_>>(),
            })
        };
        let all: Vec<_> = all.iter().map(one).collect();
        out.write_line(&json!(all).to_string())?;
        return Ok(out.flush()?);
    }
    let mut seen: Vec<String> = Vec::new();
    for found in all {
        let taken = if found.already_imported { " (taken already)" } else { "" };
        out.write_line(&format!("{}  {}{taken}", found.program.as_str(), found.path.display()))?;
        for entry in &found.servers {
            let name = entry.name().to_string();
            let (transport, target) = describe_server(entry);
            let clash = match (found.already_imported, ours.contains(&name), seen.contains(&name)) {
                (false, true, _) => "  (toolyard.toml has one of this name, which wins)",
                (_, _, true) => "  (takes the place of the one above)",
                _ => "",
            };
            out.write_line(&format!("  {}  {transport}  {target}{clash}", clean_name(&name)))?;
            seen.push(name);
        }
    }
    Ok(out.flush()?)
}

/// How a server is reached, without anything that could be a secret: arguments and addresses may hold some.
fn describe_server(entry: &ServerEntry) -> (&'static str, String) {
    let settings = match entry {
        ServerEntry::Ready(settings) => settings,
        ServerEntry::Document(_) => return ("openapi", "an OpenAPI document".to_owned()),
        ServerEntry::Broken(broken) => return ("broken", clean_line(&broken.reason())),
    };
    match &settings.transport {
        TransportSettings::Command(command) => ("stdio", clean_line(&command.program)),
        TransportSettings::Url(url) => {
            let host = reqwest::Url::parse(&url.url).ok();
            let host = host.as_ref().and_then(|url| url.host_str()).unwrap_or("?");
            (if url.kind == UrlKind::LegacySse { "sse" } else { "http" }, clean_line(host))
        }
    }
}
