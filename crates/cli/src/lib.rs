//! The `toolyard` command: arguments, verbs, wiring, and words for humans. What the product does is in
//! the other crates; nothing below this one reads the environment, prints or exits. The binary calls
//! [`main`].
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "talking to people is this crate's job")]
#![allow(clippy::disallowed_methods, reason = "only this crate reads the environment")]

mod args;
mod assembly;
mod client_apps;
mod codegen;
mod commands;
mod configuration;
mod demo;
mod elicitation;
mod error;
mod log;
mod login;
mod name_cache;
mod one_shot;
mod openapi;
mod programs;
mod recording;
mod run;
mod sandbox;
mod serve;
mod servers;
mod signals;
mod stdio;
mod supervisor;
mod terminal;
mod token;
mod tool_arguments;
mod ui;
mod upstream_setup;
mod watch;

use std::process::ExitCode;

use toolyard_hub::printable as clean;

use args::{CliCommand, TokenCommand};

/// How the process ended, as its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Success,
    /// Something failed that is not the caller's doing.
    Failed,
    /// The arguments or the configuration are wrong.
    Usage,
    /// A server does not know who we are.
    Unauthorized,
    /// A server cannot be reached.
    Unreachable,
    /// A tool or a program failed.
    ToolFailed,
    /// There is a limit on how often this may be done.
    RateLimited,
    /// It took longer than it may.
    TimedOut,
    /// Stopped by Ctrl-C, before calls in flight were done.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Unauthorized => 3,
            Exit::Unreachable => 4,
            Exit::ToolFailed => 5,
            Exit::RateLimited => 6,
            Exit::TimedOut => 7,
            Exit::Interrupted => 130,
        })
    }
}

/// Runs the command that the arguments of this process name.
pub fn main() -> ExitCode {
    // A shell that wants to know what could be typed next; otherwise this does nothing.
    commands::complete_for_shell();
    let args = args::parse();
    match args.verb {
        CliCommand::Workbench(verb) => commands::run(args.log.as_deref(), verb),
        CliCommand::Serve(verb) => run_async(args.log.as_deref(), serve::run(verb)),
        CliCommand::Stdio(verb) => run_async(args.log.as_deref(), stdio::run(verb)),
        CliCommand::Ui(verb) => run_async(args.log.as_deref(), ui::run(verb)),
        CliCommand::Login(verb) => run_async(args.log.as_deref(), login::log_in(verb)),
        CliCommand::Logout(verb) => run_async(args.log.as_deref(), login::log_out(verb)),
        CliCommand::Token(TokenCommand::New(verb)) => {
            run_async(args.log.as_deref(), async { token::run(verb) })
        }
        CliCommand::Run(verb) => run_async(args.log.as_deref(), run::run(verb)),
        CliCommand::Watch(verb) => run_async(args.log.as_deref(), watch::run(verb)),
        CliCommand::Types(verb) => run_async(args.log.as_deref(), codegen::run(verb)),
        CliCommand::OpenApi(verb) => run_async(args.log.as_deref(), openapi::run(verb)),
        // There is one of these beside every server that we start, so it has neither log nor runtime.
        CliCommand::Keeper(verb) => supervisor::run(verb),
        // It gives up its rights one after the other, for which it must have one thread.
        CliCommand::Sandbox(verb) => sandbox::run(verb),
    }
}

fn run_async(log: Option<&str>, work: impl Future<Output = anyhow::Result<Exit>>) -> ExitCode {
    log::start(log);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("toolyard: cannot start: {error}");
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(work);
    log::finish();
    // A read of standard input that nobody will answer must not keep the process alive.
    runtime.shutdown_background();
    exit.unwrap_or_else(|error| {
        eprintln!("toolyard: {error:#}");
        Exit::Failed
    })
    .into()
}
