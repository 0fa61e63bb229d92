//! `[programs]`: scripts over all tools, and what they may use up.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_program::ProgramSettings;

use super::environment::Environment;
use super::limits::SettingProblem;
use super::values::ConfigDuration;

/// Below this Python does not start; above, the number is a slip.
const LEAST_MEMORY: u64 = 64 << 20;
const MOST_MEMORY: u64 = 1 << 40;
/// More of these than anybody needs.
const MOST: usize = 1_000_000;

/// Scripts over all tools, in a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct ProgramKeys {
    /// Whether there are programs at all.
    enabled: Option<bool>,
    /// The Python to run: a name to be found in the search path, or a path, seen from the folder of this file.
    python: Option<String>,
    /// The longest that a program may take.
    timeout: Option<ConfigDuration>,
    /// How much memory a program may use, in bytes.
    memory_bytes: Option<u64>,
    /// How much a program may print, in bytes.
    output_bytes: Option<u64>,
    /// How many calls a program may make.
    max_calls: Option<usize>,
    /// Calls of one program at once; more wait.
    max_parallel: Option<usize>,
    /// Programs at once; more wait.
    max_programs: Option<usize>,
}

impl ProgramKeys {
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    /// The Python that was asked for.
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

    /// A path is seen from the folder of the file that says it; a name is looked for when it is needed.
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
            (self.python.as_deref() != Some(""), "python", "must name a program"),
            (memory, "memory_bytes", "must be at least 67108864, 64 MB, and at most a terabyte"),
            (output, "output_bytes", "must be at least 1, and at most a terabyte"),
            (some(self.max_calls), "max_calls", "must be from 1 to 1000000"),
            (some(self.max_parallel), "max_parallel", "must be from 1 to 1000000"),
            (some(self.max_programs), "max_programs", "must be from 1 to 1000000"),
        ];
        let wrong = checks.into_iter().filter(|(fine, ..)| !fine);
        wrong.map(|(_, key, why)| SettingProblem::new(&["programs", key], why)).collect()
    }
}
