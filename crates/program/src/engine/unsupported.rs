//! The engine on systems other than Linux. It only reports that programs are not supported; nothing
//! ever runs without a sandbox.

use std::path::PathBuf;
use std::process::ExitCode;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{AttackReport, EngineSettings, SandboxInfo, SandboxLayer};
use crate::program::{PendingProgramQuestion, Program, ProgramOutcome, SandboxUnavailable};

/// The settings of the launcher.
#[derive(Debug, Clone, Default)]
pub struct UnsupportedLaunch {
    pub python: Option<PathBuf>,
}

pub fn launch(_launch: &UnsupportedLaunch) -> ExitCode {
    ExitCode::FAILURE
}

pub fn launch_without_layers(_launch: &UnsupportedLaunch, _without: &[SandboxLayer]) -> ExitCode {
    ExitCode::FAILURE
}

#[derive(Debug)]
pub(super) struct UnsupportedSandbox;

impl UnsupportedSandbox {
    pub(super) fn new(_settings: EngineSettings) -> Self {
        Self
    }

    pub(super) async fn ready(&self) -> Result<SandboxInfo, SandboxUnavailable> {
        Err(not_linux())
    }

    pub(super) async fn run(
        &self,
        _program: Program,
        _questions: mpsc::Sender<PendingProgramQuestion>,
        _cancel: CancellationToken,
    ) -> Result<ProgramOutcome, SandboxUnavailable> {
        Err(not_linux())
    }

    pub(super) async fn run_attacks(&self) -> Result<Vec<AttackReport>, SandboxUnavailable> {
        Err(not_linux())
    }

    pub(super) async fn run_attack(&self, _name: &str) -> Result<AttackReport, SandboxUnavailable> {
        Err(not_linux())
    }

    pub(super) fn pid(&self) -> Option<u32> {
        None
    }

    pub(super) async fn stop(&self) {}
}

fn not_linux() -> SandboxUnavailable {
    SandboxUnavailable {
        reason: format!("programs need Linux, but this is {}", std::env::consts::OS),
        suggestion: Some(
            "run the yard on Linux, in a virtual machine or in a container that allows namespaces".into(),
        ),
    }
}
