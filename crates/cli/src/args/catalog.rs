//! The arguments of the verbs that look at what there is and change nothing.

use clap::{Parser, ValueEnum};

use super::server_selection::ServerSelectionArgs;
use crate::name_cache;

/// What there is to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListKind {
    Servers,
    Tools,
    Resources,
    Templates,
    Prompts,
}

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard list                                   every tool of every server
  toolyard list servers                           how every server is doing
  toolyard list resources files                   the resources of one server
  toolyard list tools --json | jq '.[].name'      names for a script
  toolyard list tools --url https://mcp.example.com/mcp
  toolyard list -- npx -y @modelcontextprotocol/server-everything

A server that cannot be reached is told on standard error; the exit code is 4 (3 if it wants to know who you are) only
if none could be.")]
pub(crate) struct ListArgs {
    /// What to list.
    #[arg(value_enum, default_value = "tools")]
    pub(crate) what: ListKind,

    /// Only of this server; no other is started.
    #[arg(value_name = "SERVER", conflicts_with_all = ["server", "url"], add = name_cache::server_completer())]
    pub(crate) of: Option<String>,

    /// Print JSON: a list of objects, with every definition as the server sent it.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard inspect mcp__files__read_text_file     starts the server `files` and no other
  toolyard inspect read_text_file                 the bare name, where only one server has such a tool
  toolyard inspect echo --json -- npx -y @modelcontextprotocol/server-everything")]
pub(crate) struct InspectArgs {
    /// The full name of the tool, or its bare name where that is unique.
    #[arg(add = name_cache::tool_completer())]
    pub(crate) tool: String,

    /// Print the definition as the server sent it, byte for byte.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard search read file
  toolyard search --limit 3 --json weather")]
pub(crate) struct SearchArgs {
    /// Words that are looked for in names, titles, descriptions and parameters.
    #[arg(required = true)]
    pub(crate) words: Vec<String>,

    /// How many tools to show.
    #[arg(long, value_name = "NUMBER", default_value = "20")]
    pub(crate) limit: usize,

    /// Print JSON: a list of objects, the best first.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}
