//! `toolyard completions`, and the answers to shells that request completions.

use clap::CommandFactory;
use clap_complete::CompleteEnv;
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};

use crate::Exit;
use crate::args::{Args, CompletionsArgs, Shell};
use crate::error::CommandError;
use crate::terminal::StdoutWriter;

/// The environment variable that a shell sets to request completions.
const REQUEST_VARIABLE: &str = "TOOLYARD_COMPLETE";

/// Prints completions and exits if a shell requests them. Otherwise does nothing.
pub(crate) fn complete_for_shell() {
    if std::env::var_os(REQUEST_VARIABLE).is_some() {
        CompleteEnv::with_factory(Args::command).var(REQUEST_VARIABLE).complete();
    }
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, CommandError> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut script = Vec::new();
    shell.write_registration(REQUEST_VARIABLE, "toolyard", "toolyard", "toolyard", &mut script)?;
    let mut out = StdoutWriter::new();
    out.write_bytes(&script)?;
    out.flush()?;
    Ok(Exit::Success)
}
