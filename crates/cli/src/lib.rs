//! The `toolyard` command: arguments, configuration, wiring, and words for humans. What the product does is in
//! the other crates; nothing below this one reads the environment, prints or exits. It is a library so that fuzz targets
//! reach the configuration; the binary calls [`main`].
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "talking to people is this crate's job")]
#![allow(clippy::disallowed_methods, reason = "only this crate reads the environment")]

mod apps;
mod args;
mod arguments;
mod atomic;
mod attach;
mod config;
mod demo;
mod fault;
mod fleet;
#[doc(hidden)]
pub mod fuzzing;
mod keeper;
mod keeping;
mod known;
mod log;
mod login;
mod mirror;
mod openapi;
mod outside;
mod programs;
mod question;
mod run;
mod sandbox;
mod serve;
mod shapes;
mod shared;
mod signals;
mod stdio;
mod terminal;
mod token;
mod ui;
mod verbs;
mod visit;
mod watch;
mod yard;

use std::process::ExitCode;

use toolyard_hub::printable as clean;

use args::{TokenVerb, Verb};

/// How the process ended, as its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Fine,
    /// Something failed that is not the caller's doing.
    Failed,
    /// The arguments or the configuration are wrong.
    Usage,
    /// A server does not know who we are.
    Unauthorised,
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
            Exit::Fine => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Unauthorised => 3,
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
    verbs::complete_for_shell();
    let args = args::parse();
    match args.verb {
        Verb::Workbench(verb) => verbs::run(args.log.as_deref(), verb),
        Verb::Serve(verb) => start(args.log.as_deref(), serve::run(verb)),
        Verb::Stdio(verb) => start(args.log.as_deref(), stdio::run(verb)),
        Verb::Ui(verb) => start(args.log.as_deref(), ui::run(verb)),
        Verb::Login(verb) => start(args.log.as_deref(), login::log_in(verb)),
        Verb::Logout(verb) => start(args.log.as_deref(), login::log_out(verb)),
        Verb::Token(TokenVerb::New(verb)) => start(args.log.as_deref(), async { token::run(verb) }),
        Verb::Run(verb) => start(args.log.as_deref(), run::run(verb)),
        Verb::Watch(verb) => start(args.log.as_deref(), watch::run(verb)),
        Verb::Types(verb) => start(args.log.as_deref(), shapes::run(verb)),
        Verb::OpenApi(verb) => start(args.log.as_deref(), openapi::run(verb)),
        // There is one of these beside every server that we start, so it has neither log nor runtime.
        Verb::Keeper(verb) => keeper::run(verb),
        // It gives up its rights one after the other, for which it must have one thread.
        Verb::Sandbox(verb) => sandbox::run(verb),
    }
}

fn start(log: Option<&str>, work: impl Future<Output = anyhow::Result<Exit>>) -> ExitCode {
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
