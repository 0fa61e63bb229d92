//! `toolyard ui`

use clap::Parser;

use super::{DocumentArgs, ServerSelectionArgs};

#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UiArgs {
    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,

    #[command(flatten)]
    pub(crate) documents: DocumentArgs,

    /// The address of a yard that runs, to look at that one; the one of its page, with the token in it, will do.
    #[arg(
        long,
        value_name = "URL",
        help_heading = "Which servers",
        conflicts_with_all = ["config", "server", "openapi", "url", "command"]
    )]
    pub(crate) yard: Option<reqwest::Url>,

    /// The token for that yard.
    #[arg(
        long,
        env = "TOOLYARD_TOKEN",
        hide_env_values = true,
        allow_hyphen_values = true,
        help_heading = "Which servers"
    )]
    pub(crate) token: Option<String>,
}

const EXAMPLES: &str = "Examples:
  toolyard ui                                                    the servers of your configuration
  toolyard ui --server files                                     one of them
  toolyard ui --url https://example.com/mcp                      one server at an address
  toolyard ui -- npx -y @modelcontextprotocol/server-everything  one server by its command
  toolyard ui --yard http://127.0.0.1:8080                       a yard that runs: toolyard serve";
