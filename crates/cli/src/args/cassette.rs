//! The arguments of `toolyard record` and `toolyard replay`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;

use super::server_selection::AdHocServerArgs;
use crate::name_cache;

#[derive(Debug, Parser)]
#[command(
    after_help = "Use the command in place of the server: in the configuration of a client, or after `--` of another
command. All messages pass unchanged. A server behind a URL is recorded at a local URL, which is printed.

Values that look like secrets, and the values of environment variables and headers whose names say that
they are secret, are replaced by `[redacted]`. Check a recording before you share it.

Examples:
  toolyard record -o session.cassette -- npx -y @modelcontextprotocol/server-everything
  toolyard record -o session.cassette --server files
  toolyard record -o session.cassette --url https://mcp.example.com/mcp --header 'Authorization: Bearer TOKEN'
  toolyard call echo message=hi -- toolyard record -o echo.cassette -- node build/index.js"
)]
pub(crate) struct RecordArgs {
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Replace the file if it exists.
    #[arg(long)]
    pub(crate) force: bool,

    /// Where to listen if the server has a URL: a loopback address and port. A port alone binds to
    /// 127.0.0.1. Default: a free port.
    #[arg(long, value_name = "ADDRESS", value_parser = toolyard_config::parse_listen_address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Configuration file. Can be repeated. Default: ./toolyard.toml, or else your user
    /// configuration, or else the built-in demo yard.
    #[arg(long, value_name = "FILE", help_heading = "Server selection")]
    pub(crate) config: Vec<PathBuf>,

    /// The server of the configuration to record.
    #[arg(long, value_name = "NAME", help_heading = "Server selection", add = name_cache::server_completer())]
    pub(crate) server: Option<String>,

    #[command(flatten)]
    pub(crate) other: AdHocServerArgs,
}

#[derive(Debug, Parser)]
#[command(
    after_help = "A request is answered as in the recording if its method and params are the same. Request IDs,
progress tokens and metadata of the protocol do not count. Requests that were sent several times get
their answers in order, and then the last one again. Other requests get an error that names the nearest
recorded one.

Examples:
  toolyard replay session.cassette
  toolyard replay session.cassette --listen 8090
  toolyard call echo message=hi -- toolyard replay session.cassette"
)]
pub(crate) struct ReplayArgs {
    /// The recording.
    #[arg(value_name = "CASSETTE")]
    pub(crate) cassette: PathBuf,

    /// Serve over HTTP at this loopback address and port instead of stdio. A port alone binds to
    /// 127.0.0.1. Port 0 picks a free port. The URL is printed.
    #[arg(long, value_name = "ADDRESS", value_parser = toolyard_config::parse_listen_address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Take as long for each answer as the server did.
    #[arg(long)]
    pub(crate) timing: bool,
}
