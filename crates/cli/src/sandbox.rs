//! `toolyard sandbox`: this program as the launcher of the sandbox for programs.

use std::process::ExitCode;

use toolyard_program::{Launch, launch};

use crate::args::SandboxArgs;

pub(crate) fn run(args: SandboxArgs) -> ExitCode {
    launch(&Launch { python: args.python })
}
