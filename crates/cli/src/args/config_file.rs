//! The arguments of the commands that change toolyard.toml, import servers from other applications
//! and export ours to them.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};

use crate::name_cache;

/// Which configuration to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// ./toolyard.toml
    Project,
    /// Your user configuration, ~/.config/toolyard/toolyard.toml, which applies in directories
    /// without a toolyard.toml.
    User,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ScopeArgs {
    /// Which configuration to change. Default: ./toolyard.toml if it exists, or else your user
    /// configuration if that exists, or else a new ./toolyard.toml.
    #[arg(long, value_enum)]
    pub(crate) scope: Option<Scope>,
}

/// The transport of a server.
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

To keep a secret out of the file, write ${NAME} in the command, the URL, a header or a variable.
Toolyard replaces it with the value of the environment variable NAME when it starts the server. Use
single quotes around the argument, so that your shell does not replace the variable. Comments and
all other content of the file are preserved.")]
pub(crate) struct AddArgs {
    /// Name of the server in your yard.
    pub(crate) name: String,

    /// URL of the server.
    #[arg(conflicts_with = "command")]
    pub(crate) url: Option<String>,

    /// HTTP header for the URL, as 'Name: value'. Can be repeated.
    #[arg(long, short = 'H', value_name = "NAME: VALUE", conflicts_with = "command")]
    pub(crate) header: Vec<String>,

    /// Environment variable for the command, as NAME=value. Can be repeated.
    #[arg(long, short = 'e', value_name = "NAME=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,

    /// Working directory of the command.
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub(crate) cwd: Option<String>,

    /// Transport of the server. Default: determined from the command or the URL.
    #[arg(long, short, value_enum)]
    pub(crate) transport: Option<TransportArg>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    /// Command of the server and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

// A server of toolyard.toml to remove, enable or disable. This is not a doc comment because help
// would show it.
#[derive(Debug, Parser)]
pub(crate) struct ConfiguredServerArgs {
    /// Name of the server in toolyard.toml.
    #[arg(add = name_cache::server_completer())]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

/// Applications that have MCP servers in their configuration.
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
  toolyard import                     show the servers that can be imported
  toolyard import --write             import them
  toolyard import --from cursor --write

The servers stay in their files, which toolyard.toml lists under `imports`. Changes in those files
take effect, and no secret is copied. A server of the same name in toolyard.toml takes precedence.")]
pub(crate) struct ImportArgs {
    /// Search only this application. Can be repeated.
    #[arg(long, value_enum, value_name = "APP")]
    pub(crate) from: Vec<ClientApp>,

    /// Import the servers: add their files to `imports` in toolyard.toml.
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
  toolyard export                                          configure every known application
  toolyard export cursor                                   configure one application
  toolyard export codex --http http://127.0.0.1:8080/mcp   connect to a running yard; the token is
                                                           read from TOOLYARD_TOKEN
  toolyard export vscode --servers                         export the servers without Toolyard")]
pub(crate) struct ExportArgs {
    /// The application. Default: all known applications.
    #[arg(value_enum, value_name = "APP")]
    pub(crate) program: Option<ClientApp>,

    /// Connect to this URL instead of starting `toolyard stdio`.
    #[arg(long, value_name = "URL", conflicts_with = "servers")]
    pub(crate) http: Option<String>,

    /// Export the servers in toolyard.toml themselves, without Toolyard in between.
    #[arg(long)]
    pub(crate) servers: bool,

    /// The toolyard.toml to export.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Print JSON: a list with the application, the file and the text for each.
    #[arg(long)]
    pub(crate) json: bool,
}
