//! The engine where there is no Linux: it says so. Nothing ever runs without a sandbox.

use std::path::PathBuf;
use std::process::ExitCode;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{About, Attacked, EngineSettings, Layer};
use crate::program::{Asked, Ending, Program, Unavailable};

/// What the launcher would be asked to build.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    pub python: Option<PathBuf>,
}

pub fn launch(_launch: &Launch) -> ExitCode {
    ExitCode::FAILURE
}

pub fn launch_without(_launch: &Launch, _without: &[Layer]) -> ExitCode {
    ExitCode::FAILURE
}

#[derive(Debug)]
pub(super) struct House;

impl House {
    pub(super) fn new(_settings: EngineSettings) -> Self {
        Self
    }

    pub(super) async fn ready(&self) -> Result<About, Unavailable> {
        Err(not_linux())
    }

    pub(super) async fn run(
        &self,
        _program: Program,
        _asked: mpsc::Sender<Asked>,
        _cancel: CancellationToken,
    ) -> Result<Ending, Unavailable> {
        Err(not_linux())
    }

    pub(super) async fn attacks(&self) -> Result<Vec<Attacked>, Unavailable> {
        Err(not_linux())
    }

    pub(super) async fn attack(&self, _name: &str) -> Result<Attacked, Unavailable> {
        Err(not_linux())
    }

    pub(super) fn process(&self) -> Option<u32> {
        None
    }

    pub(super) async fn stop(&self) {}
}

fn not_linux() -> Unavailable {
    Unavailable {
        reason: format!("programs run on Linux only, and this is {}", std::env::consts::OS),
        suggestion: Some(
            "run the yard on Linux, in a virtual machine or in a container that allows namespaces".into(),
        ),
    }
}
