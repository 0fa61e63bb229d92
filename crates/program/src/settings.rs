//! The settings of programs.

use std::time::Duration;

/// The limits of one program, and of all programs together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSettings {
    /// The maximum run time of a program, including the time spent waiting for tools.
    pub time: Duration,
    /// The memory of a program, in bytes.
    pub memory: u64,
    /// The output of a program, in bytes.
    pub output: u64,
    /// The number of calls that a program may make.
    pub calls: usize,
    /// The number of concurrent calls of a program. Further calls wait.
    pub parallel: usize,
    /// The number of concurrent programs. Further programs wait.
    pub programs: usize,
    /// How long the program tools wait for servers that are still starting.
    pub start_wait: Duration,
    /// The Python version for tool descriptions, such as `3.12`, if it is known.
    pub python: Option<String>,
}

impl Default for ProgramSettings {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(300),
            memory: 512 << 20,
            output: 100_000,
            calls: 1_000,
            parallel: 16,
            programs: 4,
            start_wait: Duration::from_secs(3),
            python: None,
        }
    }
}
