//! `toolyard sandbox`: this executable as the launcher of the sandbox for programs.

use std::process::ExitCode;

use toolyard_program::{LaunchSettings, launch};

use crate::args::SandboxArgs;

pub(crate) fn run(args: SandboxArgs) -> ExitCode {
    launch(&LaunchSettings { python: args.python })
}
