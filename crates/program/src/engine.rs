//! The engine: runs programs in Python processes inside a sandbox that was attacked before it was trusted. It knows
//! Python, processes and pipes, and nothing of tools; it never runs a program outside of the sandbox.

mod layer;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::program::{Asked, Ending, Program, Unavailable};

pub use layer::Layer;

#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// The command that builds the sandbox: this very binary with its hidden verb.
    pub launcher: Vec<OsString>,
    /// The Python to run; `python3` from the search path if there is none.
    pub python: Option<PathBuf>,
    /// What the sandbox is to be built without, for tests that prove what each layer is good for. The launcher of the
    /// product does not know how to leave anything out and refuses.
    pub without: Vec<Layer>,
}

/// What programs find here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Such as `3.12.4`.
    pub python_version: String,
    /// Modules of the standard library that are loaded already and cost nothing to import.
    pub modules: Vec<String>,
    /// Layers that this kernel does not have, in words. The attacks were fended off without them.
    pub missing: Vec<String>,
}

/// One attack on the sandbox, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attacked {
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
    settings: EngineSettings,
}

impl Engine {
    /// Starts nothing yet.
    pub fn new(settings: EngineSettings) -> Arc<Self> {
        Arc::new(Self { settings })
    }

    /// Starts Python and attacks the sandbox, if that has not been done yet.
    pub async fn ready(&self) -> Result<About, Unavailable> {
        Err(not_yet(&self.settings))
    }

    /// Runs one program. Dropping the future, and `cancel`, kill it.
    pub async fn run(
        &self,
        _program: Program,
        _asked: mpsc::Sender<Asked>,
        _cancel: CancellationToken,
    ) -> Result<Ending, Unavailable> {
        Err(not_yet(&self.settings))
    }

    /// Attacks the sandbox now, and says what came of each attack.
    pub async fn attacks(&self) -> Result<Vec<Attacked>, Unavailable> {
        Err(not_yet(&self.settings))
    }

    /// Ends Python and every program that is running. The next program would start it again.
    pub async fn stop(&self) {}
}

fn not_yet(_settings: &EngineSettings) -> Unavailable {
    Unavailable { reason: "the engine is not there yet".into(), suggestion: None }
}
