//! The `toolyard` command: arguments, commands, wiring and user-facing messages. The product itself
//! is in the other crates. Only this crate reads the environment, prints or exits. The binary calls
//! [`main`].
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this crate is the user interface")]
#![allow(clippy::disallowed_methods, reason = "only this crate reads the environment")]

mod accepted_tokens;
mod args;
mod assembly;
mod client_apps;
mod cluster;
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
use error::CommandError;

/// How the process ended, as its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Success,
    /// Internal or I/O error.
    Failed,
    /// Invalid arguments or configuration.
    Usage,
    /// Authentication required or permission denied.
    Unauthorized,
    /// A server cannot be reached.
    Unreachable,
    /// A tool or a program failed.
    ToolFailed,
    /// A rate limit was exceeded.
    RateLimited,
    /// A time limit was exceeded.
    TimedOut,
    /// Tests failed, or lint found problems.
    TestsFailed,
    /// What was compared differs.
    Different,
    /// Stopped by a second Ctrl-C, before calls in flight finished.
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
            Exit::TestsFailed => 8,
            Exit::Different => 9,
            Exit::Interrupted => 130,
        })
    }
}

/// Runs the command given by the arguments of this process.
pub fn main() -> ExitCode {
    // Answers a completion request of a shell and exits. Does nothing otherwise.
    commands::complete_for_shell();
    let args = args::parse();
    match args.verb {
        CliCommand::Workbench(verb) => commands::run(args.log.as_deref(), verb),
        CliCommand::Serve(verb) => run_async(args.log.as_deref(), serve::run(verb)),
        CliCommand::Stdio(verb) => run_async(args.log.as_deref(), stdio::run(verb)),
        CliCommand::Ui(verb) => run_async(args.log.as_deref(), ui::run(verb)),
        CliCommand::Login(verb) => run_async(args.log.as_deref(), login::log_in(verb)),
        CliCommand::Logout(verb) => run_async(args.log.as_deref(), login::log_out(verb)),
        CliCommand::Token(TokenCommand::New(verb)) => run_async(args.log.as_deref(), token::create(verb)),
        CliCommand::Token(TokenCommand::List(verb)) => run_async(args.log.as_deref(), token::list(verb)),
        CliCommand::Token(TokenCommand::Revoke(verb)) => run_async(args.log.as_deref(), token::revoke(verb)),
        // It reports unavailable servers itself.
        CliCommand::Run(verb) => run_async(args.log.as_deref().or(Some("error")), run::run(verb)),
        CliCommand::Watch(verb) => run_async(args.log.as_deref(), watch::run(verb)),
        CliCommand::Types(verb) => run_async(args.log.as_deref(), codegen::run(verb)),
        CliCommand::OpenApi(verb) => run_async(args.log.as_deref(), openapi::run(verb)),
        // One of these runs next to every server process, so it has neither a log nor a runtime.
        CliCommand::Keeper(verb) => supervisor::run(verb),
        // It drops its privileges step by step, which requires a single thread.
        CliCommand::Sandbox(verb) => sandbox::run(verb),
    }
}

fn run_async(log: Option<&str>, work: impl Future<Output = anyhow::Result<Exit>>) -> ExitCode {
    log::start(log);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::print_error(&format!("cannot start the async runtime: {error}"));
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(work);
    log::finish();
    // A pending read of standard input must not keep the process alive.
    runtime.shutdown_background();
    exit.unwrap_or_else(|error| CommandError::Other(error).report()).into()
}
