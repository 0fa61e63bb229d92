//! Finds Python, and what it needs to run: asks it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::python_command;
use crate::program::SandboxUnavailable;

const PROBE: &str = include_str!("../worker/probe.py");

/// A Python on this machine, with everything resolved to real files.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Python {
    pub(super) executable: PathBuf,
    /// The standard library.
    pub(super) library: PathBuf,
    /// Where the standard library is to be found from the prefix, such as `lib/python3.12`.
    pub(super) folder: PathBuf,
    /// Shared libraries outside of the standard library.
    pub(super) libraries: Vec<PathBuf>,
    /// Other names of those.
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
    let shown = name.to_string_lossy().into_owned();
    let mut command = Command::new(&name);
    command.args(["-I", "-S", "-B", "-W", "ignore", "-c", PROBE]);
    let output = command.stdin(Stdio::null()).output().map_err(|error| SandboxUnavailable {
        reason: format!("programs need Python, and {shown} cannot be started: {error}"),
        suggestion: Some("install CPython 3.9 or newer, or name one in the configuration".into()),
    })?;
    let answer = serde_json::from_slice(&output.stdout);
    match answer {
        Ok(ProbeOutput::Found(found)) => Ok(found),
        Ok(ProbeOutput::Refused { refused }) => Err(SandboxUnavailable {
            reason: format!("programs need CPython 3.9 or newer, and {shown} is {refused}"),
            suggestion: Some("install a newer CPython, or name one in the configuration".into()),
        }),
        Err(_) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.trim().lines().next_back().unwrap_or("it said nothing").to_owned();
            Err(SandboxUnavailable {
                reason: format!("{shown} does not say what it is ({}): {last}", output.status),
                suggestion: Some("install CPython 3.9 or newer, or name one in the configuration".into()),
            })
        }
    }
}
