//! The arguments of the commands that only read the catalog.

use clap::{Parser, ValueEnum};

use super::server_selection::ServerSelectionArgs;
use crate::name_cache;

/// What to list.
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
  toolyard list                                   list the tools of all servers
  toolyard list servers                           show the state of every server
  toolyard list resources files                   list the resources of one server
  toolyard list tools --json | jq '.[].name'      print the names for a script
  toolyard list tools --url https://mcp.example.com/mcp
  toolyard list -- npx -y @modelcontextprotocol/server-everything

Servers that are unavailable are reported on standard error. As long as one server is available, the
exit code is 0. Otherwise it is 4, or 3 if authentication is required.")]
pub(crate) struct ListArgs {
    /// What to list.
    #[arg(value_enum, default_value = "tools")]
    pub(crate) what: ListKind,

    /// List only this server. Other servers are not started.
    #[arg(value_name = "SERVER", conflicts_with_all = ["server", "url"], add = name_cache::server_completer())]
    pub(crate) of: Option<String>,

    /// Print a JSON array of objects that contain each definition as the server sent it.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard inspect mcp__files__read_text_file     by full name; starts only the server `files`
  toolyard inspect read_text_file                 by bare name, if only one server has such a tool
  toolyard inspect echo --json -- npx -y @modelcontextprotocol/server-everything")]
pub(crate) struct InspectArgs {
    /// Full name of the tool, or its bare name if that is unique.
    #[arg(add = name_cache::tool_completer())]
    pub(crate) tool: String,

    /// Print the definition exactly as the server sent it.
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
    /// Words to search for in names, titles, descriptions and parameters.
    #[arg(required = true)]
    pub(crate) words: Vec<String>,

    /// Maximum number of tools to show.
    #[arg(long, value_name = "NUMBER", default_value = "20")]
    pub(crate) limit: usize,

    /// Print JSON: a list of objects, best match first.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}
