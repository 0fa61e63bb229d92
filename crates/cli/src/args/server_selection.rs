//! Which servers a command uses: all configured servers, one of them, or a server given on the
//! command line.

use std::path::PathBuf;

use clap::Args;

use crate::name_cache;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServerSelectionArgs {
    /// Configuration file, as for `serve`. Can be repeated.
    #[arg(long, value_name = "FILE", help_heading = "Which servers")]
    pub(crate) config: Vec<PathBuf>,

    /// Use only this server of the configuration. No other server is started.
    #[arg(long, value_name = "NAME", help_heading = "Which servers", add = name_cache::server_completer())]
    pub(crate) server: Option<String>,

    /// Time limit for the start of a server, such as 2m. Its command may have to be downloaded
    /// first. Default: the limit in the configuration, else 30s.
    #[arg(long, value_name = "TIME", help_heading = "Which servers", value_parser = super::parse_time)]
    pub(crate) start_timeout: Option<std::time::Duration>,

    #[command(flatten)]
    pub(crate) other: AdHocServerArgs,
}

/// A server that is not in a configuration.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AdHocServerArgs {
    /// URL of a server that is not in a configuration.
    #[arg(long, value_name = "URL", help_heading = "Which servers", conflicts_with_all = ["config", "server"])]
    pub(crate) url: Option<String>,

    /// HTTP header for that URL, as 'Name: value'. Can be repeated.
    #[arg(long, value_name = "NAME: VALUE", help_heading = "Which servers", requires = "url")]
    pub(crate) header: Vec<String>,

    /// Command of a server that is not in a configuration, with its arguments, after `--`.
    /// `NAME=value` before the command sets an environment variable. Of the variables of this
    /// process, the command inherits only those that programs need to run.
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["config", "server", "url"])]
    pub(crate) command: Vec<String>,
}
