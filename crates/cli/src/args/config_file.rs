//! The arguments of the verbs that change toolyard.toml, take servers from other programs, and give ours to them.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};

use crate::name_cache;

/// Whose configuration is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// ./toolyard.toml
    Project,
    /// The one among your configurations, for wherever there is no other.
    User,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ScopeArgs {
    /// Whose configuration: ./toolyard.toml or your own. Without this the one that is in use, else ./toolyard.toml.
    #[arg(long, value_enum)]
    pub(crate) scope: Option<Scope>,
}

/// How a server behind an address is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TransportArg {
    Stdio,
    Http,
    Sse,
}

impl TransportArg {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard add files -- npx -y @modelcontextprotocol/server-filesystem .
  toolyard add search https://mcp.example.com/mcp --header 'Authorization: Bearer ${SEARCH_TOKEN}'
  toolyard add time --env TZ=UTC -- uvx mcp-server-time

${NAME} in the command, the address, a header or a variable is replaced when the server is started, so that secrets stay
out of the file. Comments and everything else in the file stay as they are.")]
pub(crate) struct AddArgs {
    /// The name of the server in your yard.
    pub(crate) name: String,

    /// The address of the server.
    #[arg(conflicts_with = "command")]
    pub(crate) url: Option<String>,

    /// A header for the address; may be given several times.
    #[arg(long, short = 'H', value_name = "NAME: VALUE", conflicts_with = "command")]
    pub(crate) header: Vec<String>,

    /// An environment variable for the command; may be given several times.
    #[arg(long, short = 'e', value_name = "NAME=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,

    /// The folder that the command starts in.
    #[arg(long, value_name = "FOLDER", conflicts_with = "url")]
    pub(crate) cwd: Option<String>,

    /// How to speak to it; clear from the command or the address if this is not said.
    #[arg(long, short, value_enum)]
    pub(crate) transport: Option<TransportArg>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    /// The command of the server with its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

// A server of toolyard.toml, to remove it or to switch it on or off. No doc comment: help would show it.
#[derive(Debug, Parser)]
pub(crate) struct ConfiguredServerArgs {
    /// The server, by its name in toolyard.toml.
    #[arg(add = name_cache::server_completer())]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

/// Programs that know MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientApp {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
    Windsurf,
    Codex,
    Gemini,
}

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard import                     shows which servers there are to take
  toolyard import --write             takes them
  toolyard import --from cursor --write

The servers stay in the files that they are in: toolyard.toml is told to read those too, under `imports`. What changes
there is followed, and no secret is copied. A server of the same name in toolyard.toml wins.")]
pub(crate) struct ImportArgs {
    /// Only what this program knows; may be given several times.
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub(crate) from: Vec<ClientApp>,

    /// Take them: write the files' names into toolyard.toml.
    #[arg(long)]
    pub(crate) write: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard export                                            how to let every known program start `toolyard stdio`
  toolyard export cursor                                     only for one
  toolyard export codex --http http://127.0.0.1:8080/mcp     the address of a yard that runs; the token stays in
                                                             TOOLYARD_TOKEN
  toolyard export vscode --servers                           the servers themselves, without Toolyard in between")]
pub(crate) struct ExportArgs {
    /// The program; all that are known if none is said.
    #[arg(value_enum)]
    pub(crate) program: Option<ClientApp>,

    /// Point at this address instead of starting `toolyard stdio`.
    #[arg(long, value_name = "URL", conflicts_with = "servers")]
    pub(crate) http: Option<String>,

    /// The servers of toolyard.toml themselves, as they are written there.
    #[arg(long)]
    pub(crate) servers: bool,

    /// The toolyard.toml whose yard is exported.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Print JSON: a list with the program, the file and the text for each.
    #[arg(long)]
    pub(crate) json: bool,
}
