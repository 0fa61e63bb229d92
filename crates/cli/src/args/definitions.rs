//! The arguments of the commands that compare and check definitions.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use toolyard_definitions::compare::ChangeClass;
use toolyard_definitions::lint::LintSeverity;

use super::server_selection::ServerSelectionArgs;
use crate::name_cache;

/// The least important class of changes that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClassArg {
    /// Something that worked can fail.
    Breaking,
    /// The above, and new or wider offers.
    Compatible,
    /// Every change, including descriptions.
    Wording,
}

impl From<ClassArg> for ChangeClass {
    fn from(arg: ClassArg) -> Self {
        match arg {
            ClassArg::Breaking => Self::Breaking,
            ClassArg::Compatible => Self::Compatible,
            ClassArg::Wording => Self::Wording,
        }
    }
}

#[derive(Debug, Parser)]
#[command(after_help = "OLD and NEW are each one of these:
  files                       a server of the configuration
  https://mcp.example.com/mcp the URL of a server
  'npx -y pkg@1 --flag'       the command of a server, with its arguments, in quotes
  command:./server            the command of a server without arguments
  tools.json, -               a list saved with `toolyard list --json`, the result of tools/list, or
                              a lock file; `-` reads it from standard input

Every change is breaking, compatible or wording. A tool that accepts more arguments is compatible; a
tool that returns more than its old output schema allows is breaking. What cannot be shown to be
compatible is breaking, and says so.

Examples:
  toolyard diff 'npx -y my-server@1' 'npx -y my-server@2'
  toolyard diff tools-v1.json https://mcp.example.com/mcp --fail-on breaking
  toolyard diff --locked                          compare the servers with toolyard.lock
  toolyard diff --locked --fail-on breaking       accept compatible changes
  toolyard diff --locked --markdown >> \"$GITHUB_STEP_SUMMARY\"

Exit codes: 0 if there are no changes, or none that count; 9 if there are; 2 for invalid arguments,
files or lock files; 4 if a server cannot be reached, or 3 if authentication is required.")]
pub(crate) struct DiffArgs {
    /// What to compare: a server, a URL, a command in quotes, a saved list, or a lock file.
    #[arg(value_name = "OLD", required_unless_present = "locked", conflicts_with = "locked", requires = "new", add = name_cache::server_completer())]
    pub(crate) old: Option<String>,

    /// What to compare it with.
    #[arg(value_name = "NEW", required_unless_present = "locked", conflicts_with = "locked", add = name_cache::server_completer())]
    pub(crate) new: Option<String>,

    /// Compare the servers of the configuration with the lock file. Any change exits with 9.
    #[arg(long)]
    pub(crate) locked: bool,

    /// Compare only this server with the lock file. Other servers are not started.
    #[arg(long, value_name = "NAME", requires = "locked", add = name_cache::server_completer())]
    pub(crate) server: Option<String>,

    /// Lock file. Default: toolyard.lock beside the configuration.
    #[arg(long, value_name = "FILE", requires = "locked")]
    pub(crate) lock_file: Option<PathBuf>,

    /// Exit with 9 if there are changes of this class or a more important one. Default with
    /// --locked: wording.
    #[arg(long, value_name = "CLASS")]
    pub(crate) fail_on: Option<ClassArg>,

    /// Print the changes as JSON.
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,

    /// Print the changes as Markdown, for a pull request.
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Configuration file. Can be repeated. Default: ./toolyard.toml, or else your user
    /// configuration, or else the built-in demo yard.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    /// How long a server may take to start, such as 2m. Default: the limit in the configuration, or
    /// else 30s.
    #[arg(long, value_name = "TIME", value_parser = super::parse_time)]
    pub(crate) start_timeout: Option<std::time::Duration>,
}

#[derive(Debug, Parser)]
#[command(
    after_help = "The lock file contains the definitions of all tools, prompts, resources and templates, and what each
server says about itself. It is the same for the same offers, so that you can commit it and review
its changes. Credentials from the configuration are masked if a server repeats them.

Examples:
  toolyard lock                       write toolyard.lock beside the configuration
  toolyard lock --server files        update the entry of one server
  toolyard diff --locked              fail if the servers offer something else

Exit codes: 0 if the file is up to date; 4 if a server cannot be reached, or 3 if authentication is
required, and then nothing is written."
)]
pub(crate) struct LockArgs {
    /// Lock file. Default: toolyard.lock beside the configuration.
    #[arg(long, value_name = "FILE")]
    pub(crate) lock_file: Option<PathBuf>,

    /// Keep the entries of servers that cannot be reached, instead of failing.
    #[arg(long)]
    pub(crate) keep_unreachable: bool,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}

/// The least severe findings that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SeverityArg {
    /// What is certainly wrong.
    Error,
    /// The above, and what gives some clients or models trouble.
    Warning,
    /// Everything.
    Info,
}

impl From<SeverityArg> for LintSeverity {
    fn from(arg: SeverityArg) -> Self {
        match arg {
            SeverityArg::Error => Self::Error,
            SeverityArg::Warning => Self::Warning,
            SeverityArg::Info => Self::Info,
        }
    }
}

#[derive(Debug, Parser)]
#[command(
    after_help = "SERVER is a server of the configuration, a URL, a command in quotes, or a saved list, as for `diff`.
The rules, and how to silence a finding, are in the reference.

Examples:
  toolyard lint                               check all servers
  toolyard lint files --all                   show what could be better, too
  toolyard lint 'npx -y @modelcontextprotocol/server-memory'
  toolyard lint --sarif > lint.sarif          for code scanning
  toolyard lint --fail-on warning -- uvx mcp-server-git

Exit codes: 0 if nothing that counts was found; 8 if something was; 2 for invalid arguments or files;
4 if a server cannot be reached, or 3 if authentication is required."
)]
pub(crate) struct LintArgs {
    /// What to check. Default: all servers of the configuration.
    #[arg(value_name = "SERVER", conflicts_with_all = ["server", "url"], add = name_cache::server_completer())]
    pub(crate) of: Vec<String>,

    /// Exit with 8 if there are findings of this severity or a higher one.
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    pub(crate) fail_on: SeverityArg,

    /// Show the findings of severity info, too.
    #[arg(long)]
    pub(crate) all: bool,

    /// Print all findings as JSON.
    #[arg(long, conflicts_with = "sarif")]
    pub(crate) json: bool,

    /// Print all findings as SARIF 2.1.0.
    #[arg(long)]
    pub(crate) sarif: bool,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}
