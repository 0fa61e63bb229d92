//! The arguments of `toolyard ui`.

use clap::Parser;

use super::{DocumentArgs, ServerSelectionArgs};

#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UiArgs {
    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,

    #[command(flatten)]
    pub(crate) documents: DocumentArgs,

    /// URL of a running yard to show. You can also pass the `page` URL that `serve` prints, which
    /// contains the token.
    #[arg(
        long,
        value_name = "URL",
        help_heading = "Server selection",
        conflicts_with_all = ["config", "server", "openapi", "url", "command"]
    )]
    pub(crate) yard: Option<reqwest::Url>,

    /// Token for that yard.
    #[arg(
        long,
        env = "TOOLYARD_TOKEN",
        hide_env_values = true,
        allow_hyphen_values = true,
        help_heading = "Server selection"
    )]
    pub(crate) token: Option<String>,
}

const EXAMPLES: &str = "Examples:
  toolyard ui                                                    all configured servers
  toolyard ui --server files                                     one configured server
  toolyard ui --url https://example.com/mcp                      one server by URL
  toolyard ui -- npx -y @modelcontextprotocol/server-everything  one server by command
  toolyard ui --yard http://127.0.0.1:8080                       a running yard (`toolyard serve`)";
