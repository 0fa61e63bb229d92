//! Programs as configured. The engine is this executable with its hidden `sandbox` command.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolyard_config::ProgramKeys;
use toolyard_hub::Yard;
use toolyard_program::{Engine, EngineSettings, ProgramSettings, ProgramSource};
use toolyard_serve::Identity;

use crate::upstream_setup::current_exe;

/// Builds the source that runs programs over the tools of this yard. Nothing is started before the
/// first program.
pub(crate) fn build(keys: &ProgramKeys, yard: &Arc<Yard>) -> anyhow::Result<Arc<ProgramSource>> {
    let python = keys.python();
    let settings = ProgramSettings { python: version(python.as_deref()), ..keys.settings() };
    let launcher = vec![current_exe()?.into_os_string(), "sandbox".into()];
    let engine = Engine::new(EngineSettings { launcher, python, without: Vec::new() });
    Ok(ProgramSource::new(yard, engine, settings))
}

/// The identity of the programs server as an MCP server.
pub(crate) fn identity() -> Identity {
    Identity {
        name: "toolyard-programs".to_owned(),
        title: Some("Toolyard programs".to_owned()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: Some(
            "Find tools with search_tools, look at one with inspect_tool, then send one Python script to execute_program that \
             calls them and prints only what is needed."
                .to_owned(),
        ),
    }
}

/// The version of a Python interpreter, as far as its file name tells. Running it to find out would
/// take longer than the rest of the startup.
fn version(python: Option<&Path>) -> Option<String> {
    let name = python.unwrap_or(Path::new("python3"));
    let file = if name.components().count() > 1 { name.to_owned() } else { find_in_path(name)? };
    let real = file.canonicalize().ok()?;
    let version = real.file_name()?.to_str()?.strip_prefix("python")?;
    let numbers =
        version.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    (numbers && version.contains('.')).then(|| version.to_owned())
}

fn find_in_path(name: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}
