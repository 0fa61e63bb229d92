//! The commands for browsing and calling tools and for managing the configuration, in the order of
//! the help. Their arguments are in the sibling modules.

use clap::Subcommand;

use super::calls::{CallArgs, CompleteArgs, PromptArgs, ReadArgs};
use super::cassette::{RecordArgs, ReplayArgs};
use super::catalog::{InspectArgs, ListArgs, SearchArgs};
use super::config_file::{AddArgs, ConfiguredServerArgs, ExportArgs, ImportArgs};
use super::definitions::{DiffArgs, LintArgs, LockArgs};
use super::maintenance::{CompletionsArgs, DoctorArgs, ManArgs};
use super::suite::TestArgs;

const TOGGLE_EXAMPLES: &str = "Examples:
  toolyard disable files
  toolyard enable files";

#[derive(Debug, Subcommand)]
pub(crate) enum WorkbenchCommand {
    /// List servers, tools, resources, templates or prompts.
    List(ListArgs),
    /// Show a tool: its names, description and parameters.
    Inspect(InspectArgs),
    /// Call a tool and print the result.
    Call(Box<CallArgs>),
    /// Read a resource.
    Read(ReadArgs),
    /// Get a prompt.
    Prompt(PromptArgs),
    /// Complete an argument of a prompt or of a resource template.
    Complete(CompleteArgs),
    /// Search the tools of all servers.
    Search(SearchArgs),
    /// Run test files against MCP servers.
    Test(Box<TestArgs>),
    /// Record a session between a client and a server.
    Record(RecordArgs),
    /// Serve a recorded session in place of the server.
    Replay(ReplayArgs),
    /// Compare what two servers, versions or saved lists offer.
    Diff(DiffArgs),
    /// Write down what the servers offer, in toolyard.lock.
    Lock(LockArgs),
    /// Check what the servers offer for problems, without calling anything.
    Lint(LintArgs),
    /// Add a server to toolyard.toml.
    Add(AddArgs),
    /// Remove a server from toolyard.toml.
    #[command(after_help = "Example:\n  toolyard remove files")]
    Remove(ConfiguredServerArgs),
    /// Enable a server in toolyard.toml.
    #[command(after_help = TOGGLE_EXAMPLES)]
    Enable(ConfiguredServerArgs),
    /// Disable a server in toolyard.toml.
    #[command(after_help = TOGGLE_EXAMPLES)]
    Disable(ConfiguredServerArgs),
    /// Find the MCP servers configured in other applications on this machine, and import them.
    Import(ImportArgs),
    /// Print the configuration with which other applications can use your tools.
    Export(ExportArgs),
    /// Diagnose problems with the configuration, the servers and this machine, and show how to fix
    /// them.
    Doctor(DoctorArgs),
    /// Print the completion script for a shell.
    Completions(CompletionsArgs),
    /// Print a manual page, or write the pages of all commands.
    Man(ManArgs),
}
