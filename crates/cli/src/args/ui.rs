//! `toolyard ui`

use std::path::PathBuf;

use clap::Parser;

use super::DocumentArgs;

#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UiArgs {
    /// A configuration, as for `serve`; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) documents: DocumentArgs,

    /// The address of a yard that runs, to look at that one; the one of its page, with the token in it, will do.
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "openapi", "url", "command"])]
    pub(crate) yard: Option<reqwest::Url>,

    /// The token for that yard.
    #[arg(long, env = "TOOLYARD_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,

    /// The address of a server that is in no configuration.
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "openapi"])]
    pub(crate) url: Option<String>,

    /// The command of a server that is in no configuration, with its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["config", "openapi", "url"])]
    pub(crate) command: Vec<String>,
}

const EXAMPLES: &str = "Examples:
  toolyard ui                                                    the servers of your configuration
  toolyard ui --yard http://127.0.0.1:8080                       a yard that runs: toolyard serve
  toolyard ui --url https://example.com/mcp                      one server at an address
  toolyard ui -- npx -y @modelcontextprotocol/server-everything  one server by its command";
