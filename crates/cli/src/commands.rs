//! The commands for browsing and calling tools and for managing the configuration, one file per
//! command or family. They share `one_shot` (the servers), `terminal` (output) and `error`
//! (failures).

mod call;
mod complete;
mod completions;
mod configure;
mod diff;
mod doctor;
mod execute;
mod export;
mod import;
mod inspect;
mod lint;
mod list;
mod lock;
mod man;
mod offer_operand;
mod prompt;
mod read;
mod record;
mod replay;
mod result_output;
mod save_test;
mod search;
mod test;

use std::process::ExitCode;

use tokio_util::sync::CancellationToken;

pub(crate) use completions::complete_for_shell;
pub(crate) use save_test::test_writer;

use crate::Exit;
use crate::args::WorkbenchCommand;
use crate::error::CommandError;
use crate::signals::until_stopped;

/// Runs a command and reports its error.
pub(crate) fn run(log: Option<&str>, verb: WorkbenchCommand) -> ExitCode {
    // These commands report problems of servers themselves, so they log only on request.
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
        WorkbenchCommand::Test(args) => run_single_threaded(|stop| test::run(*args, stop)),
        WorkbenchCommand::Record(args) => run_single_threaded(|stop| record::run(args, stop)),
        WorkbenchCommand::Replay(args) => run_single_threaded(|stop| replay::run(args, stop)),
        WorkbenchCommand::Diff(args) => run_single_threaded(|stop| diff::run(args, stop)),
        WorkbenchCommand::Lint(args) => run_single_threaded(|stop| lint::run(args, stop)),
        WorkbenchCommand::Lock(args) => run_single_threaded(|stop| lock::run(args, stop)),
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

/// Runs a command that talks to servers on the current thread, because a single command has no
/// parallel work. The first Ctrl-C cancels the work, the second ends it.
fn run_single_threaded<W: Future<Output = Result<Exit, CommandError>>>(
    work: impl FnOnce(CancellationToken) -> W,
) -> Result<Exit, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| anyhow::Error::new(error).context("cannot start the async runtime"))?;
    let stop = CancellationToken::new();
    let done = runtime.block_on(Box::pin(until_stopped(stop.clone(), work(stop))));
    // A pending read of standard input must not keep the process alive.
    runtime.shutdown_background();
    done?.unwrap_or(Ok(Exit::Interrupted))
}
