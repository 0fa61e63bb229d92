//! The verbs with which people look at tools, call them, and keep their configuration: which there are, and in which
//! order help shows them. What each takes is in the files beside this one.

use clap::Subcommand;

use super::calls::{CallArgs, CompleteArgs, PromptArgs, ReadArgs};
use super::catalog::{InspectArgs, ListArgs, SearchArgs};
use super::config_file::{AddArgs, ConfiguredServerArgs, ExportArgs, ImportArgs};
use super::maintenance::{CompletionsArgs, DoctorArgs, ManArgs};

const TOGGLE_EXAMPLES: &str = "Examples:
  toolyard disable files
  toolyard enable files";

#[derive(Debug, Subcommand)]
pub(crate) enum WorkbenchCommand {
    /// List servers, tools, resources, templates or prompts.
    List(ListArgs),
    /// Show one tool: its names, its description and its parameters.
    Inspect(InspectArgs),
    /// Call a tool and print what it answers.
    Call(Box<CallArgs>),
    /// Read a resource.
    Read(ReadArgs),
    /// Get a prompt.
    Prompt(PromptArgs),
    /// Ask what an argument of a prompt or of a template could be.
    Complete(CompleteArgs),
    /// Search the tools of all servers for words.
    Search(SearchArgs),
    /// Add a server to toolyard.toml.
    Add(AddArgs),
    /// Remove a server from toolyard.toml.
    #[command(after_help = "Example:\n  toolyard remove files")]
    Remove(ConfiguredServerArgs),
    /// Switch a server of toolyard.toml on.
    #[command(after_help = TOGGLE_EXAMPLES)]
    Enable(ConfiguredServerArgs),
    /// Switch a server of toolyard.toml off.
    #[command(after_help = TOGGLE_EXAMPLES)]
    Disable(ConfiguredServerArgs),
    /// Find the servers that other programs on this machine know, and take them.
    Import(ImportArgs),
    /// Print what to paste into other programs so that they use your tools.
    Export(ExportArgs),
    /// Find out what is wrong with the configuration, the servers and this machine, and how to mend it.
    Doctor(DoctorArgs),
    /// Print what makes a shell complete verbs, options, servers and tools.
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for every verb.
    Man(ManArgs),
}
