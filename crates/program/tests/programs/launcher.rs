//! The launcher for tests. It builds the same sandbox as the product, and with `--without LAYER` a
//! weaker one, to prove the effect of each layer. The product has no such argument. `host` stands in
//! for a yard that a test kills: it prints the ID of the Python process and runs an endless program.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the test reads the output")]
#![allow(clippy::disallowed_methods, reason = "a main function reads its arguments")]

use std::process::ExitCode;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolyard_program::{
    Engine, EngineSettings, LaunchSettings, Program, ProgramLimits, SandboxLayer, launch_without_layers,
};

const USAGE: &str = "toolyard-sandbox host | [--python FILE] [--without LAYER]...";

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|command| command == "host") {
        return host();
    }
    let (mut sandbox, mut without) = (LaunchSettings::default(), Vec::new());
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next();
        match (argument.to_str(), value) {
            (Some("--python"), Some(python)) => sandbox.python = Some(python.into()),
            (Some("--without"), Some(layer)) => match layer.to_str().and_then(SandboxLayer::from_name) {
                Some(layer) => without.push(layer),
                None => return usage(),
            },
            _ => return usage(),
        }
    }
    launch_without_layers(&sandbox, &without)
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

#[tokio::main(flavor = "current_thread")]
async fn host() -> ExitCode {
    let Ok(own) = std::env::current_exe() else { return ExitCode::FAILURE };
    let engine =
        Engine::new(EngineSettings { launcher: vec![own.into()], python: None, without: Vec::new() });
    if let Err(unavailable) = engine.ready().await {
        eprintln!("toolyard-sandbox: {unavailable}");
        return ExitCode::FAILURE;
    }
    println!("{}", engine.pid().unwrap_or_default());
    let limits = ProgramLimits { time: Duration::from_secs(600), memory: 64 << 20, output: 1024 };
    let program = Program {
        code: "while True: pass".into(),
        bindings: Vec::new(),
        limits,
        printed: watch::Sender::default(),
    };
    let (questions, _unanswered) = mpsc::channel(1);
    let ending = engine.run(program, questions, CancellationToken::new()).await;
    eprintln!("toolyard-sandbox: {ending:?}");
    ExitCode::FAILURE
}
