//! Finds Python and the files that it needs, by running a probe script.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::python_command;
use crate::program::SandboxUnavailable;

const PROBE: &str = include_str!("../worker/probe.py");
const INSTALL: &str = "install CPython 3.9 or newer, or set `programs.python` in the configuration";

/// A Python on this machine. All paths are resolved to real files.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Python {
    pub(super) executable: PathBuf,
    /// The standard library.
    pub(super) library: PathBuf,
    /// The path of the standard library relative to the prefix, such as `lib/python3.12`.
    pub(super) folder: PathBuf,
    /// Shared libraries outside the standard library.
    pub(super) libraries: Vec<PathBuf>,
    /// Symbolic links to those libraries, with their targets.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum ProbeOutput {
    Refused { refused: String },
    Found(Python),
}

pub(super) fn find(python: Option<&Path>) -> Result<Python, SandboxUnavailable> {
    let name = python_command(python);
    let command_name = name.to_string_lossy().into_owned();
    let mut command = Command::new(&name);
    command.args(["-I", "-S", "-B", "-W", "ignore", "-c", PROBE]);
    let output = command.stdin(Stdio::null()).output().map_err(|error| SandboxUnavailable {
        reason: format!("programs need Python, but `{command_name}` cannot be started: {error}"),
        suggestion: Some(INSTALL.into()),
    })?;
    let answer = serde_json::from_slice(&output.stdout);
    match answer {
        Ok(ProbeOutput::Found(python)) => Ok(python),
        Ok(ProbeOutput::Refused { refused }) => Err(SandboxUnavailable {
            reason: format!("programs need CPython 3.9 or newer, but `{command_name}` is {refused}"),
            suggestion: Some(INSTALL.into()),
        }),
        Err(_) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let last = stderr.trim().lines().next_back().unwrap_or("no error output").to_owned();
            Err(SandboxUnavailable {
                reason: format!("`{command_name}` did not report its version ({}): {last}", output.status),
                suggestion: Some(INSTALL.into()),
            })
        }
    }
}
