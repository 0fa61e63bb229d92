//! The verbs with which people look at tools, call them and keep their configuration: one file each, or one for a
//! family. What they share is above: `visit` (the servers), `terminal` (what people see), `fault` (what went wrong).

mod call;
mod complete;
mod completions;
mod configure;
mod doctor;
mod execute;
mod export;
mod import;
mod inspect;
mod list;
mod man;
mod prompt;
mod read;
mod result_output;
mod search;

use std::process::ExitCode;

use tokio_util::sync::CancellationToken;

pub(crate) use completions::complete_for_shell;

use crate::Exit;
use crate::args::WorkbenchCommand;
use crate::error::CommandError;
use crate::signals::until_stopped;

/// Runs a verb to its end and tells what went wrong, if anything did.
pub(crate) fn run(log: Option<&str>, verb: WorkbenchCommand) -> ExitCode {
    // What servers do is told by the verbs themselves; the log is for whoever asks for it.
    if log.is_some() {
        crate::log::start(log);
    }
    let done = match verb {
        WorkbenchCommand::List(args) => run_single_threaded(|stop| list::run(args, stop)),
        WorkbenchCommand::Inspect(args) => run_single_threaded(|stop| inspect::run(args, stop)),
        WorkbenchCommand::Call(args) => run_single_threaded(|stop| call::run(*args, stop)),
        WorkbenchCommand::Read(args) => run_single_threaded(|stop| read::run(args, stop)),
        WorkbenchCommand::Prompt(args) => run_single_threaded(|stop| prompt::run(args, stop)),
        WorkbenchCommand::Complete(args) => run_single_threaded(|stop| complete::run(args, stop)),
        WorkbenchCommand::Search(args) => run_single_threaded(|stop| search::run(args, stop)),
        WorkbenchCommand::Doctor(args) => run_single_threaded(|stop| doctor::run(args, stop)),
        WorkbenchCommand::Add(args) => configure::add(&args),
        WorkbenchCommand::Remove(args) => configure::remove(&args),
        WorkbenchCommand::Enable(args) => configure::set_enabled(&args, configure::Enablement::On),
        WorkbenchCommand::Disable(args) => configure::set_enabled(&args, configure::Enablement::Off),
        WorkbenchCommand::Import(args) => import::run(&args),
        WorkbenchCommand::Export(args) => export::run(&args),
        WorkbenchCommand::Completions(args) => completions::run(&args),
        WorkbenchCommand::Man(args) => man::run(&args),
    };
    if log.is_some() {
        crate::log::finish();
    }
    done.unwrap_or_else(CommandError::report).into()
}

/// Runs what talks to servers on this very thread: one command has nothing to do in parallel that would be worth
/// threads. The first Ctrl-C cancels what is under way, the second ends.
fn run_single_threaded<W: Future<Output = Result<Exit, CommandError>>>(
    work: impl FnOnce(CancellationToken) -> W,
) -> Result<Exit, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| anyhow::Error::new(error).context("cannot start"))?;
    let stop = CancellationToken::new();
    let done = runtime.block_on(Box::pin(until_stopped(stop.clone(), work(stop))));
    // A read of standard input that nobody will answer must not keep the process alive.
    runtime.shutdown_background();
    done?.unwrap_or(Ok(Exit::Interrupted))
}
