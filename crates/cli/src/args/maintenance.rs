//! The arguments of the commands about Toolyard itself: diagnosis, shell completions and manual
//! pages.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use super::server_selection::ServerSelectionArgs;

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard doctor
  toolyard doctor --server files
  toolyard doctor --json -- npx -y @modelcontextprotocol/server-everything

Exit codes: 0 if there are no errors, 2 for an error in the configuration, 3 if authentication is
required, 4 if a server cannot be reached. If there are several errors, the first of 2, 3 and 4.")]
pub(crate) struct DoctorArgs {
    /// Print the findings as a JSON array.
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
#[command(after_help = "Add the line for your shell to its startup file:
  ~/.bashrc                    source <(toolyard completions bash)
  ~/.zshrc                     source <(toolyard completions zsh)
  ~/.config/fish/config.fish   toolyard completions fish | source

Completion starts no servers. It offers the tool and prompt names that the servers reported last.")]
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
    /// The command to document. Default: the program as a whole.
    #[arg(value_name = "COMMAND")]
    pub(crate) verb: Option<String>,

    /// Write the pages of the program and of every command to this directory.
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    pub(crate) dir: Option<PathBuf>,
}
