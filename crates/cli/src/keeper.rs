//! `toolyard keeper`: this program as the keeper of a server's process.

use std::process::ExitCode;

use toolyard_upstream::{Kept, keep};

use crate::args::KeeperArgs;

pub(crate) fn run(args: KeeperArgs) -> ExitCode {
    let mut command = args.command.into_iter();
    let program = command.next().unwrap_or_default();
    match keep(&Kept { watch: args.watch, program, args: command.collect() }) {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("toolyard: {error}");
            error.code().into()
        }
    }
}
