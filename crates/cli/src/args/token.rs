//! The arguments of the commands for tokens.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it once, with the lines to add to toolyard.toml, or save it in the
    /// database `cluster.postgres`. Writes no file.
    New(NewTokenArgs),
    /// List the tokens of the configuration and of the database `cluster.postgres`.
    List(ListTokensArgs),
    /// Revoke a token at every replica. Requires `cluster.postgres`.
    Revoke(RevokeTokenArgs),
}

#[derive(Debug, Parser)]
pub(crate) struct NewTokenArgs {
    /// Name of the token's holder, used in the audit log and in metrics.
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// Permission to grant. Can be repeated. `*` grants all permissions.
    #[arg(long, value_name = "PERMISSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) permission: Vec<String>,

    /// Glob of server names that the holder may use. Can be repeated. Default: all servers.
    #[arg(long, value_name = "GLOB", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) server: Vec<String>,

    /// Glob of full tool names that the holder may use. Can be repeated. Default: all tools.
    #[arg(long, value_name = "GLOB", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) tool: Vec<String>,

    /// Limits of the holder, as a TOML table such as '{ calls = 4, call_seconds = 30.0 }'. The keys
    /// are those of `limits` in [[tokens]]. Default: the limits of the yard.
    #[arg(long, value_name = "TABLE")]
    pub(crate) limits: Option<String>,

    /// Lifetime, such as 30d, 12h or 2w, or time of expiry, such as 2027-01-31T12:00:00Z. Default:
    /// the token does not expire.
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<String>,

    /// Save the token in the database `cluster.postgres`, where every replica finds it, instead of
    /// printing lines for toolyard.toml. Only its SHA-256 is saved.
    #[arg(long)]
    pub(crate) save: bool,

    /// Configuration file with `cluster.postgres`, as for `serve`. Can be repeated.
    #[arg(long, value_name = "FILE", requires = "save")]
    pub(crate) config: Vec<PathBuf>,

    /// Print everything as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct ListTokensArgs {
    /// Configuration file, as for `serve`. Can be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    /// Print the list as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct RevokeTokenArgs {
    /// Name of the token, as `toolyard token list` shows it.
    pub(crate) name: String,

    /// Configuration file with `cluster.postgres`, as for `serve`. Can be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
}
