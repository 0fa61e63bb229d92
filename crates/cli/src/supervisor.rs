//! `toolyard keeper`: this program as the keeper of a server's process.

use std::process::ExitCode;

use toolyard_upstream::{SupervisedCommand, supervise_process};

use crate::args::SupervisorArgs;

pub(crate) fn run(args: SupervisorArgs) -> ExitCode {
    let mut command = args.command.into_iter();
    let program = command.next().unwrap_or_default();
    match supervise_process(&SupervisedCommand { parent_pid: args.watch, program, args: command.collect() }) {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("toolyard: {error}");
            error.code().into()
        }
    }
}
