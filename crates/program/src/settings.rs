//! What running programs obeys.

use std::time::Duration;

/// What one program may use up, and how many there may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSettings {
    /// The longest that a program may take, waiting for tools included.
    pub time: Duration,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes that a program may print.
    pub output: u64,
    /// Calls that a program may make.
    pub calls: usize,
    /// Calls of a program that run at once; more wait.
    pub parallel: usize,
    /// Programs that run at once; more wait.
    pub programs: usize,
    /// How long the tools wait for servers that are still starting.
    pub start_wait: Duration,
    /// What descriptions say of Python, such as `3.12`, where it is known.
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
