//! Which servers a verb is about: those of a configuration, one of them, or one that is named on the command line.

use std::path::PathBuf;

use clap::Args;

use crate::name_cache;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServerSelectionArgs {
    /// A configuration, as for `serve`; may be given several times.
    #[arg(long, value_name = "FILE", help_heading = "Which servers")]
    pub(crate) config: Vec<PathBuf>,

    /// Only this server of the configuration; no other is started.
    #[arg(long, value_name = "NAME", help_heading = "Which servers", add = name_cache::server_completer())]
    pub(crate) server: Option<String>,

    /// How long a server may take to start, such as 2m: its command may have to be downloaded first [default: what the
    /// configuration says, else 30s].
    #[arg(long, value_name = "TIME", help_heading = "Which servers", value_parser = super::parse_time)]
    pub(crate) start_timeout: Option<std::time::Duration>,

    #[command(flatten)]
    pub(crate) other: AdHocServerArgs,
}

/// A server that needs no configuration.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AdHocServerArgs {
    /// The address of a server that is in no configuration.
    #[arg(long, value_name = "URL", help_heading = "Which servers", conflicts_with_all = ["config", "server"])]
    pub(crate) url: Option<String>,

    /// A header for that address; may be given several times.
    #[arg(long, value_name = "NAME: VALUE", help_heading = "Which servers", requires = "url")]
    pub(crate) header: Vec<String>,

    /// The command of a server that is in no configuration, with its arguments, after `--`. `NAME=value` before it
    /// sets environment variables; of those of this process it is given only what programs need to run.
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["config", "server", "url"])]
    pub(crate) command: Vec<String>,
}
