//! Writes a call as a test: a new test file, or a test more in an existing one.

use std::path::Path;

use serde_json::Value;
use toolyard_hub::{CallTarget, HubError, Outcome, Raw, ToolEntry};
use toolyard_suite::{
    SavedCall, SavedOutcome, SavedRequest, SavedServer, append_saved_test, render_saved_tests,
};
use toolyard_tui::UiTestWriter;
use toolyard_upstream::TransportSettings;

use crate::Exit;
use crate::args::AdHocServerArgs;
use crate::error::CommandError;
use crate::one_shot::ad_hoc;
use crate::terminal::print_note;

/// Writes the test. `result` is what the server answered.
pub(super) fn save_test(
    path: &Path,
    other: &AdHocServerArgs,
    tool: &ToolEntry,
    arguments: Value,
    result: Result<&Outcome, &HubError>,
) -> Result<(), CommandError> {
    let outcome = match result {
        Ok(outcome) => SavedOutcome::Result(serde_json::from_str(outcome.body.get()).unwrap_or_default()),
        Err(error) => match error.source_error() {
            Some(answer) => SavedOutcome::Error(Some(answer.code)),
            None => {
                print_note(&format!("{} was not written, because the server did not answer", path.display()));
                return Ok(());
            }
        },
    };
    let call = SavedCall { request: SavedRequest::Call { tool: tool.raw_name.clone(), arguments }, outcome };
    // Before the path of the server is written, which starts at this folder.
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| {
            CommandError::new(Exit::Failed, format!("cannot create the folder {}: {error}", folder.display()))
        })?;
    }
    let text = match std::fs::read_to_string(path) {
        Ok(existing) => append_saved_test(path, &existing, &call).map_err(|reason| {
            CommandError::usage(format!("cannot add a test to {}: {reason}", path.display()))
                .suggest("pass another file")
        })?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            render_saved_tests(&server(Some(path), other, tool.source.as_str())?, std::slice::from_ref(&call))
        }
        Err(error) => {
            return Err(CommandError::usage(format!("cannot read {}: {error}", path.display())));
        }
    };
    toolyard_config::write_atomically(path, text.as_bytes()).map_err(|error| {
        CommandError::new(Exit::Failed, format!("cannot write {}: {error}", path.display()))
            .suggest("check the folder and the free space")
    })?;
    print_note(&format!("the test was written to {}", path.display()));
    Ok(())
}

/// Returns how the UI writes a call as a test. The text can be saved anywhere.
pub(crate) fn test_writer(other: &AdHocServerArgs) -> UiTestWriter {
    let other = other.clone();
    UiTestWriter::new(move |call| {
        let read = |arguments: Option<&Raw>| {
            arguments.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
        };
        let name = call.raw_name.to_owned();
        let request = match call.target {
            CallTarget::Resource { uri } => SavedRequest::Read { uri: uri.clone() },
            CallTarget::Prompt { arguments, .. } => {
                SavedRequest::Prompt { name, arguments: read(arguments.as_ref()) }
            }
            CallTarget::Tool { arguments, .. } => {
                SavedRequest::Call { tool: name, arguments: read(arguments.as_ref()) }
            }
            CallTarget::Completion { .. } => return String::new(),
        };
        let result = serde_json::from_str(call.result).unwrap_or_default();
        let call_to_save = SavedCall { request, outcome: SavedOutcome::Result(result) };
        // The arguments of the command line were checked at the start.
        let server = server(AnyFolder::default(), &other, call.server)
            .unwrap_or_else(|_| SavedServer::Configured(call.server.to_owned()));
        render_saved_tests(&server, &[call_to_save])
    })
}

/// The file is not known yet.
type AnyFolder<'a> = Option<&'a Path>;

/// Returns the server of a test. `path` is the file, if it is known.
fn server(path: AnyFolder<'_>, other: &AdHocServerArgs, name: &str) -> Result<SavedServer, CommandError> {
    Ok(match ad_hoc::server_settings(other)?.map(|settings| settings.transport) {
        None => SavedServer::Configured(name.to_owned()),
        Some(TransportSettings::Url(url)) => {
            SavedServer::Url { url: url.url, headers: url.headers.into_keys().collect() }
        }
        Some(TransportSettings::Command(command)) => {
            let here = match path {
                Some(path) => folder_from(path),
                None => std::env::current_dir().ok().map(|folder| folder.display().to_string()),
            };
            // A program with a path is looked up in the folder of the file.
            let is_relative = command.program.contains('/') && Path::new(&command.program).is_relative();
            let program = match &here {
                Some(here) if is_relative => format!("{here}/{}", command.program),
                _ => command.program,
            };
            let env = command.env.into_keys().collect();
            SavedServer::Command { program, args: command.args, env, cwd: here }
        }
    })
}

/// Returns the current folder as seen from the folder of a file, unless they are the same.
fn folder_from(file: &Path) -> Option<String> {
    let here = std::env::current_dir().and_then(std::fs::canonicalize).ok()?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    let folder = std::fs::canonicalize(folder).ok()?;
    match folder.strip_prefix(&here).map(|inner| inner.components().count()) {
        Ok(0) => None,
        Ok(depth) => Some(vec![".."; depth].join("/")),
        Err(_) => Some(here.display().to_string()),
    }
}
