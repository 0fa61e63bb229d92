//! `toolyard import`: finds the servers of other applications, and imports them by listing their
//! files in toolyard.toml.

use std::path::{Path, PathBuf};

use serde_json::json;
use toolyard_config::{Config, Environment, ServerEntry, add_imports, read_imports};
use toolyard_upstream::{TransportSettings, UrlKind};

use super::configure::target;
use crate::Exit;
use crate::args::{ClientApp, ImportArgs};
use crate::clean::{clean_line, clean_name};
use crate::configuration::{process_environment, report_problem};
use crate::error::CommandError;
use crate::terminal::{StdoutWriter, format_count, print_hint, print_note};

/// A file that defines servers.
struct ImportCandidate {
    program: ClientApp,
    path: PathBuf,
    servers: Vec<ServerEntry>,
    /// Whether toolyard.toml imports it already.
    already_imported: bool,
}

pub(crate) fn run(args: &ImportArgs) -> Result<Exit, CommandError> {
    let around = process_environment();
    let own = target(args.scope, &around)?;
    let candidates = find(args, &around, &imported_files(&own, &around));
    show(args, &candidates, &own, &around)?;
    let new: Vec<&ImportCandidate> =
        candidates.iter().filter(|candidate| !candidate.already_imported).collect();
    if new.is_empty() {
        print_note(match candidates.is_empty() {
            true => "no MCP servers found in other applications",
            false => "all servers are already imported",
        });
        return Ok(Exit::Success);
    }
    let count: usize = new.iter().map(|candidate| candidate.servers.len()).sum();
    let count = format_count(count, "server");
    if !args.write {
        print_note(&format!("{count} can be imported into {}", own.display()));
        print_hint("run `toolyard import --write` to import them");
        return Ok(Exit::Success);
    }
    let paths: Vec<String> =
        new.iter().map(|candidate| import_path(&candidate.path, &own, &around)).collect();
    add_imports(&own, &paths)?;
    let files = format_count(new.len(), "more file");
    print_note(&format!("imported {count}: {} now imports {files}", own.display()));
    print_hint("run `toolyard list servers` to see their state");
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
                Err(problems) => problems.0.iter().for_each(report_problem),
            }
        }
    }
    all
}

/// Returns the files that this toolyard.toml imports already.
fn imported_files(own: &Path, around: &Environment) -> Vec<PathBuf> {
    let folder = own.parent().unwrap_or(Path::new(""));
    read_imports(own).iter().map(|path| around.resolve(path, folder)).collect()
}

/// Returns a path as a user would write it in that file.
fn import_path(path: &Path, own: &Path, around: &Environment) -> String {
    let below =
        |folder: Option<&Path>| folder.and_then(|folder| path.strip_prefix(folder).ok()).map(Path::to_owned);
    // Relative to the file if it is nearby, so that both can be moved together, else relative to
    // the home directory.
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
        let one = |candidate: &ImportCandidate| {
            let servers = candidate.servers.iter().map(|entry| {
                let (transport, target) = describe_server(entry);
                json!({"name": entry.name().as_str(), "transport": transport, "target": target})
            });
            json!({
                "program": candidate.program.as_str(), "file": candidate.path, "taken": candidate.already_imported,
                "servers": servers.collect::<Vec<_>>(),
            })
        };
        let all: Vec<_> = all.iter().map(one).collect();
        out.write_line(&json!(all).to_string())?;
        return Ok(out.flush()?);
    }
    let mut seen: Vec<String> = Vec::new();
    for candidate in all {
        let taken = if candidate.already_imported { " (already imported)" } else { "" };
        out.write_line(&format!("{}  {}{taken}", candidate.program.as_str(), candidate.path.display()))?;
        for entry in &candidate.servers {
            let name = entry.name().to_string();
            let (transport, target) = describe_server(entry);
            let clash = match (candidate.already_imported, ours.contains(&name), seen.contains(&name)) {
                (false, true, _) => "  (overridden by the server of this name in toolyard.toml)",
                (_, _, true) => "  (overrides the server of this name above)",
                _ => "",
            };
            out.write_line(&format!("  {}  {transport}  {target}{clash}", clean_name(&name)))?;
            seen.push(name);
        }
    }
    Ok(out.flush()?)
}

/// Describes how a server is reached, without arguments and URLs, which may contain secrets.
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
