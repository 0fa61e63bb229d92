//! The engine: runs programs in Python processes inside a sandbox that was attacked before it was trusted. It knows
//! Python, processes and pipes, and nothing of tools; it never runs a program outside of the sandbox.

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
pub use unsupported::{UnsupportedLaunch as LaunchSettings, launch, launch_without};

#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// The command that builds the sandbox: this very binary with its hidden verb.
    pub launcher: Vec<OsString>,
    /// The Python to run; `python3` from the search path if there is none.
    pub python: Option<PathBuf>,
    /// What the sandbox is to be built without, for tests that prove what each layer is good for. The launcher of the
    /// product does not know how to leave anything out and refuses.
    pub without: Vec<SandboxLayer>,
}

/// What programs find here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxInfo {
    /// Such as `3.12.4`.
    pub python_version: String,
    /// Modules of the standard library that are loaded already and cost nothing to import.
    pub modules: Vec<String>,
    /// Layers that this kernel does not have, in words. The attacks were fended off without them.
    pub missing: Vec<String>,
}

/// One attack on the sandbox, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttackReport {
    pub name: &'static str,
    /// What it tries to do.
    pub about: &'static str,
    pub outcome: AttackOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttackOutcome {
    /// It was fended off.
    Held,
    /// It got through, and this is what it got.
    Escaped(String),
    /// It did not get as far as attacking, so that nothing is known; counts like an escape.
    Unclear(String),
}

#[derive(Debug)]
pub struct Engine {
    house: SandboxSupervisor,
}

impl Engine {
    /// Starts nothing yet.
    pub fn new(settings: EngineSettings) -> Arc<Self> {
        Arc::new(Self { house: SandboxSupervisor::new(settings) })
    }

    /// Starts Python and attacks the sandbox, if that has not been done yet.
    pub async fn ready(&self) -> Result<SandboxInfo, SandboxUnavailable> {
        self.house.ready().await
    }

    /// Runs one program. Dropping the future, and `cancel`, kill it.
    pub async fn run(
        &self,
        program: Program,
        asked: mpsc::Sender<PendingProgramQuestion>,
        cancel: CancellationToken,
    ) -> Result<ProgramOutcome, SandboxUnavailable> {
        self.house.run(program, asked, cancel).await
    }

    /// Attacks the sandbox now, and says what came of each attack.
    pub async fn run_attacks(&self) -> Result<Vec<AttackReport>, SandboxUnavailable> {
        self.house.run_attacks().await
    }

    /// Makes one of the attacks, by its name.
    pub async fn run_attack(&self, name: &str) -> Result<AttackReport, SandboxUnavailable> {
        self.house.run_attack(name).await
    }

    /// The process that all programs are forks of, while there is one.
    pub fn pid(&self) -> Option<u32> {
        self.house.pid()
    }

    /// Ends Python and every program that is running. The next program would start it again.
    pub async fn stop(&self) {
        self.house.stop().await;
    }
}
