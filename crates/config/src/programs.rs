//! `[programs]`: Python programs that call tools, and their limits.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_program::ProgramSettings;

use super::environment::Environment;
use super::limits::SettingProblem;
use super::values::ConfigDuration;

/// Python does not start with less memory. A larger value than the maximum is most likely a typo.
const LEAST_MEMORY: u64 = 64 << 20;
const MOST_MEMORY: u64 = 1 << 40;
/// Upper bound of the counters, to catch typos.
const MOST: usize = 1_000_000;

/// Python programs that call tools from a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct ProgramKeys {
    /// Whether programs are available. Default: true.
    enabled: Option<bool>,
    /// Python interpreter: a name that is looked up in `PATH`, or a path relative to the directory
    /// of this file; `~` is the home directory. Default: "python3".
    python: Option<String>,
    /// Maximum duration of a program, including the time that it waits for tools.
    /// `limits.call_seconds` also applies. Default: 300s.
    timeout: Option<ConfigDuration>,
    /// Maximum memory of a program, in bytes. From 67108864 to 1099511627776. Default: 536870912.
    memory_bytes: Option<u64>,
    /// Maximum output of a program, in bytes. Further output is dropped, and the result says so.
    /// Default: 100000.
    output_bytes: Option<u64>,
    /// Maximum number of tool calls of a program. Default: 1000.
    max_calls: Option<usize>,
    /// Maximum number of concurrent tool calls of one program. Further calls are queued. Default:
    /// 16.
    max_parallel: Option<usize>,
    /// Maximum number of programs that run at the same time. One principal can use all but one of
    /// them. Further programs are queued. Default: 4.
    max_programs: Option<usize>,
}

impl ProgramKeys {
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    /// Returns the configured Python interpreter.
    pub fn python(&self) -> Option<PathBuf> {
        self.python.as_deref().map(PathBuf::from)
    }

    pub fn settings(&self) -> ProgramSettings {
        let usual = ProgramSettings::default();
        ProgramSettings {
            time: self.timeout.map_or(usual.time, |time| time.0),
            memory: self.memory_bytes.unwrap_or(usual.memory),
            output: self.output_bytes.unwrap_or(usual.output),
            calls: self.max_calls.unwrap_or(usual.calls),
            parallel: self.max_parallel.unwrap_or(usual.parallel),
            programs: self.max_programs.unwrap_or(usual.programs),
            ..usual
        }
    }

    /// Resolves a path relative to `folder`. A plain name is looked up later, when a program
    /// starts.
    pub(super) fn resolve(&mut self, around: &Environment, folder: &Path) {
        if let Some(python) = self.python.as_mut().filter(|python| python.contains('/')) {
            *python = around.resolve(python, folder).display().to_string();
        }
    }

    pub(super) fn with_fallback(self, earlier: Self) -> Self {
        Self {
            enabled: self.enabled.or(earlier.enabled),
            python: self.python.or(earlier.python),
            timeout: self.timeout.or(earlier.timeout),
            memory_bytes: self.memory_bytes.or(earlier.memory_bytes),
            output_bytes: self.output_bytes.or(earlier.output_bytes),
            max_calls: self.max_calls.or(earlier.max_calls),
            max_parallel: self.max_parallel.or(earlier.max_parallel),
            max_programs: self.max_programs.or(earlier.max_programs),
        }
    }

    pub(super) fn validate(&self) -> Vec<SettingProblem> {
        let some = |number: Option<usize>| number.is_none_or(|number| (1..=MOST).contains(&number));
        let memory = self.memory_bytes.is_none_or(|bytes| (LEAST_MEMORY..=MOST_MEMORY).contains(&bytes));
        let output = self.output_bytes.is_none_or(|bytes| (1..=MOST_MEMORY).contains(&bytes));
        let checks = [
            (self.python.as_deref() != Some(""), "python", "must not be empty"),
            (memory, "memory_bytes", "must be from 67108864 (64 MiB) to 1099511627776 (1 TiB)"),
            (output, "output_bytes", "must be from 1 to 1099511627776 (1 TiB)"),
            (some(self.max_calls), "max_calls", "must be from 1 to 1000000"),
            (some(self.max_parallel), "max_parallel", "must be from 1 to 1000000"),
            (some(self.max_programs), "max_programs", "must be from 1 to 1000000"),
        ];
        let wrong = checks.into_iter().filter(|(fine, ..)| !fine);
        wrong.map(|(_, key, why)| SettingProblem::new(&["programs", key], why)).collect()
    }
}
