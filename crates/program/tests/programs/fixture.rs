//! Engines and programs for tests.

use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolyard_program::{
    Engine, EngineSettings, PendingProgramQuestion, Program, ProgramLimits, ProgramOutcome, SandboxLayer,
    SandboxUnavailable,
};

/// Returns the path of the real Python executable, without wrappers.
pub(crate) fn python() -> &'static str {
    static PYTHON: LazyLock<String> = LazyLock::new(|| {
        let output =
            Command::new("python3").args(["-I", "-c", "import sys; print(sys.executable)"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    });
    &PYTHON
}

pub(crate) fn engine() -> Arc<Engine> {
    engine_without(&[])
}

pub(crate) fn engine_without(without: &[SandboxLayer]) -> Arc<Engine> {
    Engine::new(EngineSettings {
        launcher: vec![env!("CARGO_BIN_EXE_toolyard-sandbox").into()],
        python: Some(python().into()),
        without: without.to_vec(),
    })
}

pub(crate) fn limits() -> ProgramLimits {
    ProgramLimits { time: Duration::from_secs(20), memory: 256 << 20, output: 1 << 20 }
}

pub(crate) fn program(code: &str) -> Program {
    Program { code: code.into(), bindings: Vec::new(), limits: limits(), printed: watch::Sender::default() }
}

/// Runs a program without a broker: its requests fail.
pub(crate) async fn run(engine: &Engine, code: &str) -> Result<ProgramOutcome, SandboxUnavailable> {
    let (questions, receiver) = mpsc::channel::<PendingProgramQuestion>(1);
    drop(receiver);
    engine.run(program(code), questions, CancellationToken::new()).await
}
