//! The command line: global options, the commands and the arguments of those that start a yard.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use toolyard_config::AuthMode;

use crate::configuration::ConfigInputs;

mod calls;
mod cassette;
mod catalog;
mod config_file;
mod definitions;
mod generic_run;
mod maintenance;
mod openapi;
mod parse;
#[cfg(test)]
mod reference;
mod server_selection;
mod suite;
mod token;
mod ui;
mod workbench;

pub(crate) use calls::{CallArgs, CompleteArgs, CompletionTarget, PromptArgs, ReadArgs};
pub(crate) use cassette::{RecordArgs, ReplayArgs};
pub(crate) use catalog::{InspectArgs, ListArgs, ListKind, SearchArgs};
pub(crate) use config_file::{
    AddArgs, ClientApp, ConfiguredServerArgs, ExportArgs, ImportArgs, Scope, ScopeArgs, TransportArg,
};
pub(crate) use definitions::{DiffArgs, LintArgs, LockArgs, SeverityArg};
pub(crate) use maintenance::{CompletionsArgs, DoctorArgs, ManArgs, Shell};
pub(crate) use openapi::{DiagnosticsFormat, OpenApiArgs};
pub(crate) use parse::parse;
pub(crate) use server_selection::{AdHocServerArgs, ServerSelectionArgs};
pub(crate) use suite::{ImportArg, TestArgs};
pub(crate) use token::{ListTokensArgs, NewTokenArgs, RevokeTokenArgs, TokenCommand};
pub(crate) use ui::UiArgs;
pub(crate) use workbench::WorkbenchCommand;

/// Find, test, call, serve and script MCP tools.
#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true, max_term_width = 110, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: CliCommand,

    /// Log filter for standard error, such as `info` or `toolyard_hub=debug`.
    #[arg(long, global = true, env = "TOOLYARD_LOG", value_name = "FILTER")]
    pub(crate) log: Option<String>,
}

const EXAMPLES: &str =
    "A yard is the set of servers and tools that Toolyard runs. Until you add servers, Toolyard uses its
built-in demo yard.

Examples:
  toolyard list                               list the tools of your servers, or of the demo yard
  toolyard inspect add                        show a tool and its parameters
  toolyard call add a=2 b=3                   call a tool
  toolyard call echo message=hi -- npx -y @modelcontextprotocol/server-everything
                                              call a tool of a server that is not configured
  toolyard add files -- npx -y @modelcontextprotocol/server-filesystem .
                                              add a server to ./toolyard.toml
  toolyard import                             find the servers configured in other applications
  toolyard test                               run the tests of your servers in tests/
  toolyard serve                              serve on http://127.0.0.1:8080 with a generated token
  toolyard serve --listen 127.0.0.1:0 --json  serve on a free port, print address and token as JSON
  toolyard serve --auth none                  serve without authentication, on this machine only
  toolyard serve --openapi petstore.yaml      serve the operations of an OpenAPI document as tools
  toolyard stdio                              serve a client that starts its MCP servers itself
  toolyard stdio --expose tester              serve nine tools for testing any MCP server
  toolyard stdio --expose programs            serve three tools for calling tools from a script
  toolyard run report.py                      run a Python script that calls tools";

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    #[command(flatten)]
    Workbench(WorkbenchCommand),
    /// Serve the yard over HTTP.
    Serve(ServeArgs),
    /// Serve the yard to the client that started this process, over standard input and output.
    Stdio(StdioArgs),
    /// Browse servers, call their tools and see the results in a terminal UI.
    Ui(UiArgs),
    /// Log in to a server in a browser, with OAuth.
    Login(LoginArgs),
    /// Delete the stored credentials of a server.
    Logout(LogoutArgs),
    /// Create, list and revoke tokens for clients.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Run a Python script in a sandbox, where it can call every tool of the yard.
    Run(RunArgs),
    /// Watch the servers, calls and log of a running yard.
    Watch(WatchArgs),
    /// Generate types for the parameters and results of every tool, for a client library.
    Types(TypesArgs),
    /// Show the tools generated from an OpenAPI document.
    #[command(name = "openapi")]
    OpenApi(OpenApiArgs),
    /// Supervises the process of a server. Toolyard starts itself with this command; it is not for
    /// users.
    #[command(hide = true)]
    Keeper(SupervisorArgs),
    /// Sets up the sandbox for programs. Toolyard starts itself with this command; it is not for
    /// users.
    #[command(hide = true)]
    Sandbox(SandboxArgs),
}

#[derive(Debug, Parser)]
pub(crate) struct ServeArgs {
    /// Configuration file: toolyard.toml, or the file of another application that lists MCP
    /// servers. Can be repeated. Default: ./toolyard.toml, or else your user configuration
    /// (~/.config/toolyard/toolyard.toml), or else the built-in demo yard.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) documents: DocumentArgs,

    /// IP address and port to listen on. A port alone binds to 127.0.0.1. Port 0 picks a free port.
    /// Default: 127.0.0.1:8080.
    #[arg(long, value_name = "ADDRESS", value_parser = toolyard_config::parse_listen_address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Whether clients must send a token. `none` is allowed only on a loopback address, which only
    /// this machine can reach. Default: token.
    #[arg(long)]
    pub(crate) auth: Option<AuthArg>,

    /// Token of the owner of the yard, who has all permissions. Default: a token generated at every
    /// start, unless the configuration has [[tokens]] or [jwt].
    #[arg(long, env = "TOOLYARD_TOKEN", hide_env_values = true, allow_hyphen_values = true)]
    pub(crate) token: Option<String>,

    /// Once the yard listens, print its URL, and the token if it was generated, as JSON to standard
    /// output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// OpenAPI documents to serve without a configuration.
#[derive(Debug, clap::Args)]
pub(crate) struct DocumentArgs {
    /// OpenAPI document whose operations are served as tools: a file or a URL. Can be repeated. No
    /// configuration is read unless you also pass --config.
    #[arg(long, value_name = "DOCUMENT", value_parser = parse_document_location)]
    pub(crate) openapi: Vec<String>,

    /// Base URL of the operations. Replaces the `servers` in the documents.
    #[arg(long, value_name = "URL", requires = "openapi", value_parser = parse_http_url)]
    pub(crate) base_url: Option<reqwest::Url>,
}

fn parse_time(text: &str) -> Result<Duration, String> {
    toolyard_config::duration_from_text(text).ok_or_else(|| {
        "expected a duration greater than zero and at most one year, such as 30s, 2m or 500ms".to_owned()
    })
}

/// Rejects a file that does not exist now. A document that may appear later belongs in a
/// configuration.
fn parse_document_location(text: &str) -> Result<String, String> {
    if !toolyard_config::is_http_url(text)
        && let Err(error) = std::fs::metadata(text)
    {
        return Err(format!("cannot read the file: {error}"));
    }
    Ok(text.to_owned())
}

fn parse_http_url(text: &str) -> Result<reqwest::Url, String> {
    let url = reqwest::Url::parse(text).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!("the URL scheme is `{other}`, expected `http` or `https`")),
    }
}

impl DocumentArgs {
    /// Combines these documents with configuration files.
    pub(crate) fn config_inputs(&self, files: Vec<PathBuf>) -> ConfigInputs {
        let base_url = self.base_url.as_ref().map(reqwest::Url::to_string);
        ConfigInputs { files, documents: self.openapi.clone(), base_url, only: None }
    }
}

/// What `toolyard stdio` can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Expose {
    /// The tools, resources and prompts of the yard.
    Tools,
    /// Nine tools for testing any MCP server.
    Tester,
    /// Three tools for calling many tools from one script.
    Programs,
}

#[derive(Debug, Parser)]
pub(crate) struct StdioArgs {
    /// What to serve. Separate several values with commas.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "tools")]
    pub(crate) expose: Vec<Expose>,

    /// Configuration file: toolyard.toml, or the file of another application that lists MCP
    /// servers. Can be repeated. Default: ./toolyard.toml, or else your user configuration
    /// (~/.config/toolyard/toolyard.toml), or else the built-in demo yard.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) documents: DocumentArgs,
}

#[derive(Debug, Parser)]
#[command(after_help = "In the script, every tool is an async function. Call it by its full name, or by its
bare name if only one server has it. If a name is not a valid Python identifier, look it up in
`tools`, or write `_` for each character that Python does not allow. Await every call:
  print(await add(a=2, b=3))
  print(await tools[\"get-sum\"](a=2, b=3))
  print(await search_tools(\"weather\"))                find tools
  print(await inspect_tool(\"get-sum\"))                show its parameters
The Python standard library is available. Network, files and other processes are not.

Examples:
  toolyard run report.py
  echo 'print(await add(a=2, b=3))' | toolyard run -")]
pub(crate) struct RunArgs {
    /// The script. `-` reads it from standard input.
    #[arg(value_name = "SCRIPT")]
    pub(crate) script: PathBuf,

    /// Configuration file, as for `serve`. Can be repeated. Its servers run only as long as the
    /// script.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) documents: DocumentArgs,

    /// Time limit of the script, such as 30s or 5m. Default: the limit in the configuration.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) timeout: Option<Duration>,

    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct LoginArgs {
    /// Name of the server in the configuration.
    pub(crate) server: String,

    /// Configuration file, as for `serve`. Can be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    /// Print the URL of the login page instead of opening a browser.
    #[arg(long)]
    pub(crate) no_browser: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct LogoutArgs {
    /// Name of the server in the configuration.
    pub(crate) server: String,

    /// Configuration file, as for `serve`. Can be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
}

/// The language of a client library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// TypeScript, for `@toolyard/client`.
    Ts,
    /// Python, for `mcp_client`.
    Python,
}

#[derive(Debug, Parser)]
pub(crate) struct TypesArgs {
    /// Language of the generated types.
    #[arg(long)]
    pub(crate) lang: Language,

    /// Configuration file, as for `serve`. Can be repeated. Its servers are started, queried and
    /// stopped.
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) config: Vec<PathBuf>,

    /// URL of a running yard to query instead.
    #[arg(long)]
    pub(crate) url: Option<reqwest::Url>,

    /// Token for that yard.
    #[arg(long, env = "TOOLYARD_TOKEN", hide_env_values = true, allow_hyphen_values = true)]
    pub(crate) token: Option<String>,

    /// File to write. Default: standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Parser)]
pub(crate) struct WatchArgs {
    /// URL of the yard. You can also pass the `page` URL that `serve` prints, which contains the
    /// token.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    pub(crate) url: reqwest::Url,

    /// Token for that yard.
    #[arg(long, env = "TOOLYARD_TOKEN", hide_env_values = true, allow_hyphen_values = true)]
    pub(crate) token: Option<String>,

    /// Print every event as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Show only calls.
    #[arg(long)]
    pub(crate) calls: bool,

    /// Show only events of this server.
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Parser)]
pub(crate) struct SupervisorArgs {
    /// Process ID of the parent. When it exits, the supervisor cleans up and exits too.
    #[arg(long, value_name = "PID")]
    pub(crate) watch: u32,

    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Parser)]
pub(crate) struct SandboxArgs {
    /// Python interpreter to run in the sandbox.
    #[arg(long, value_name = "FILE")]
    pub(crate) python: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuthArg {
    Token,
    None,
}

impl From<AuthArg> for AuthMode {
    fn from(arg: AuthArg) -> Self {
        match arg {
            AuthArg::Token => Self::Token,
            AuthArg::None => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Args;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_token_may_start_with_a_dash() {
        let words: [&[&str]; 4] = [&["serve"], &["watch"], &["types", "--lang", "ts"], &["ui"]];
        for verb in words {
            let arguments = [&["toolyard"], verb, &["--token", "-Sx"]].concat();
            let parsed = Args::command().try_get_matches_from(&arguments);
            let parsed = parsed.unwrap_or_else(|error| panic!("{verb:?}: {error}"));
            let (_, verb) = parsed.subcommand().unwrap();
            assert_eq!(verb.get_one::<String>("token").map(String::as_str), Some("-Sx"));
        }
    }

    #[test]
    fn help_helps() {
        let mut command = Args::command().term_width(100);
        command.build();
        insta::assert_snapshot!("help", command.render_long_help().to_string());
        for verb in command.get_subcommands_mut().filter(|verb| verb.get_name() != "help") {
            show(verb, "help");
        }
    }

    #[test]
    fn the_documentation_has_every_verb_and_every_exit_code() {
        let docs = include_str!("../../../docs/reference/cli.md");
        let mut command = Args::command();
        command.build();
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
        {
            let name = verb.get_name();
            assert!(
                docs.contains(&format!("\n### `toolyard {name}`\n")),
                "cli.md does not describe the command {name}"
            );
        }
        for code in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130] {
            assert!(docs.contains(&format!("\n| {code} |")), "cli.md does not explain the exit code {code}");
        }
    }

    /// Keeps one snapshot per command, so that a new command does not change the others.
    fn show(verb: &mut clap::Command, above: &str) {
        let name = format!("{above}_{}", verb.get_name());
        insta::assert_snapshot!(name.as_str(), verb.render_long_help().to_string());
        for below in verb.get_subcommands_mut().filter(|below| below.get_name() != "help") {
            show(below, &name);
        }
    }
}
