//! The arguments of the verbs about this program itself: what is wrong, completions, manual pages.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use super::server_selection::ServerSelectionArgs;

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard doctor
  toolyard doctor --server files
  toolyard doctor --json -- npx -y @modelcontextprotocol/server-everything

The exit code is that of the worst finding: 2 for the configuration, 3 for authorisation, 4 for a server that cannot be
reached, 0 if nothing has failed.")]
pub(crate) struct DoctorArgs {
    /// Print JSON: a list of findings.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Parser)]
#[command(after_help = "Put one of these lines where your shell reads it:
  ~/.bashrc                    source <(toolyard completions bash)
  ~/.zshrc                     source <(toolyard completions zsh)
  ~/.config/fish/config.fish   toolyard completions fish | source

Names of tools and prompts are those of the last time that a verb asked the servers: completing starts none.")]
pub(crate) struct CompletionsArgs {
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard man | man -l -
  toolyard man call | man -l -
  toolyard man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The verb; the program as a whole if none is said.
    pub(crate) verb: Option<String>,

    /// Write the pages of the program and of every verb into this folder.
    #[arg(long, value_name = "FOLDER", conflicts_with = "verb")]
    pub(crate) dir: Option<PathBuf>,
}
