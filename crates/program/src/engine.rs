//! The engine: runs programs in Python processes inside a sandbox. It trusts the sandbox only after
//! attacking it. It deals with Python, processes and pipes, knows nothing about tools, and never
//! runs a program outside the sandbox.

#[cfg(target_os = "linux")]
mod attacks;
#[cfg(target_os = "linux")]
mod frame;
#[cfg(target_os = "linux")]
pub mod fuzzing;
#[cfg(target_os = "linux")]
mod launch;
mod layer;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(target_os = "linux")]
mod zygote;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::program::{PendingProgramQuestion, Program, ProgramOutcome, SandboxUnavailable};

#[cfg(target_os = "linux")]
use supervisor::SandboxSupervisor;
#[cfg(not(target_os = "linux"))]
use unsupported::UnsupportedSandbox as SandboxSupervisor;

#[cfg(target_os = "linux")]
pub use launch::{LaunchSettings, launch, launch_without_layers};
pub use layer::SandboxLayer;
#[cfg(not(target_os = "linux"))]
pub use unsupported::{UnsupportedLaunch as LaunchSettings, launch, launch_without_layers};

#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// The command that builds the sandbox: this binary with its hidden subcommand.
    pub launcher: Vec<OsString>,
    /// The Python to run. Default: `python3` from the search path.
    pub python: Option<PathBuf>,
    /// The layers to omit, for tests that prove the effect of each layer. The launcher of the
    /// product rejects this.
    pub without: Vec<SandboxLayer>,
}

/// The environment of programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxInfo {
    /// The version of Python, such as `3.12.4`.
    pub python_version: String,
    /// Modules of the standard library that are preloaded and free to import.
    pub modules: Vec<String>,
    /// The names of layers that this kernel does not support. The sandbox withstood all attacks
    /// without them.
    pub missing: Vec<String>,
}

/// The result of one attack on the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttackReport {
    pub name: &'static str,
    /// What the attack tries to do.
    pub about: &'static str,
    pub outcome: AttackOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttackOutcome {
    /// The sandbox withstood the attack.
    Held,
    /// The attack succeeded. Contains what it achieved.
    Escaped(String),
    /// The attack could not be carried out. Counts as an escape.
    Unclear(String),
}

/// Runs programs in one sandbox, which it starts on first use.
#[derive(Debug)]
pub struct Engine {
    supervisor: SandboxSupervisor,
}

impl Engine {
    /// Creates an engine. Does not start the sandbox.
    pub fn new(settings: EngineSettings) -> Arc<Self> {
        Arc::new(Self { supervisor: SandboxSupervisor::new(settings) })
    }

    /// Starts Python and attacks the sandbox, unless that has already happened.
    pub async fn ready(&self) -> Result<SandboxInfo, SandboxUnavailable> {
        self.supervisor.ready().await
    }

    /// Runs one program. Dropping the future or canceling `cancel` kills the program.
    pub async fn run(
        &self,
        program: Program,
        questions: mpsc::Sender<PendingProgramQuestion>,
        cancel: CancellationToken,
    ) -> Result<ProgramOutcome, SandboxUnavailable> {
        self.supervisor.run(program, questions, cancel).await
    }

    /// Runs all attacks on the sandbox and reports the results.
    pub async fn run_attacks(&self) -> Result<Vec<AttackReport>, SandboxUnavailable> {
        self.supervisor.run_attacks().await
    }

    /// Runs one attack, selected by name.
    pub async fn run_attack(&self, name: &str) -> Result<AttackReport, SandboxUnavailable> {
        self.supervisor.run_attack(name).await
    }

    /// Returns the ID of the process that all programs are forked from, if it is running.
    pub fn pid(&self) -> Option<u32> {
        self.supervisor.pid()
    }

    /// Stops Python and all running programs. The next program starts Python again.
    pub async fn stop(&self) {
        self.supervisor.stop().await;
    }
}
