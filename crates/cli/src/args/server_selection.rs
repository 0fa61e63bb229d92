//! Which servers a command uses: all configured servers, one of them, or a server given on the
//! command line.

use std::path::PathBuf;

use clap::Args;

use crate::name_cache;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServerSelectionArgs {
    /// Configuration file. Can be repeated. Default: ./toolyard.toml, or else your user
    /// configuration, or else the built-in demo yard.
    #[arg(long, value_name = "FILE", help_heading = "Server selection")]
    pub(crate) config: Vec<PathBuf>,

    /// Use only this server of the configuration. Other servers are not started.
    #[arg(long, value_name = "NAME", help_heading = "Server selection", add = name_cache::server_completer())]
    pub(crate) server: Option<String>,

    /// How long a server may take to start, such as 2m. The first start can take longer, for
    /// example if npx downloads the server. Default: the limit in the configuration, or else 30s.
    #[arg(long, value_name = "TIME", help_heading = "Server selection", value_parser = super::parse_time)]
    pub(crate) start_timeout: Option<std::time::Duration>,

    #[command(flatten)]
    pub(crate) other: AdHocServerArgs,
}

/// A server that is not in a configuration.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AdHocServerArgs {
    /// URL of a server to use instead of the configured ones.
    #[arg(long, value_name = "URL", help_heading = "Server selection", conflicts_with_all = ["config", "server"])]
    pub(crate) url: Option<String>,

    /// HTTP header for that URL, as 'Name: value'. Can be repeated.
    #[arg(long, value_name = "NAME: VALUE", help_heading = "Server selection", requires = "url")]
    pub(crate) header: Vec<String>,

    /// Command of a server to use instead of the configured ones, with its arguments, after `--`.
    /// `NAME=value` before the command sets an environment variable. The command inherits only
    /// variables that programs commonly need, such as PATH and HOME.
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["config", "server", "url"])]
    pub(crate) command: Vec<String>,
}
