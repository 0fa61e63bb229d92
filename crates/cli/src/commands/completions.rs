//! `toolyard completions`, and what a shell is answered when it asks.

use clap::CommandFactory;
use clap_complete::CompleteEnv;
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};

use crate::Exit;
use crate::args::{Args, CompletionsArgs, Shell};
use crate::error::CommandError;
use crate::terminal::StdoutWriter;

/// The variable in which a shell says that it wants to know what could come next.
const ASKED: &str = "TOOLYARD_COMPLETE";

/// Answers the shell and ends, if a shell has asked; else nothing happens.
pub(crate) fn complete_for_shell() {
    if std::env::var_os(ASKED).is_some() {
        CompleteEnv::with_factory(Args::command).var(ASKED).complete();
    }
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, CommandError> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut script = Vec::new();
    shell.write_registration(ASKED, "toolyard", "toolyard", "toolyard", &mut script)?;
    let mut out = StdoutWriter::new();
    out.write_bytes(&script)?;
    out.flush()?;
    Ok(Exit::Success)
}
