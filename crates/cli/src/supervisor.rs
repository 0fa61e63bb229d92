//! `toolyard keeper`: this executable as the supervisor of a server process.

use std::process::ExitCode;

use toolyard_upstream::{SupervisedCommand, supervise_process};

use crate::args::SupervisorArgs;
use crate::terminal::print_error;

pub(crate) fn run(args: SupervisorArgs) -> ExitCode {
    let mut command = args.command.into_iter();
    let program = command.next().unwrap_or_default();
    match supervise_process(&SupervisedCommand { parent_pid: args.watch, program, args: command.collect() }) {
        Ok(code) => code.into(),
        Err(error) => {
            print_error(&error.to_string());
            error.code().into()
        }
    }
}
