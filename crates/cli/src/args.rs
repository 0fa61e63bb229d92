//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use toolyard_config::AuthMode;

use crate::configuration::ConfigInputs;

mod calls;
mod catalog;
mod config_file;
mod maintenance;
mod openapi;
mod parse;
mod server_selection;
mod ui;
mod workbench;

pub(crate) use calls::{CallArgs, CompleteArgs, CompletionTarget, PromptArgs, ReadArgs};
pub(crate) use catalog::{InspectArgs, ListArgs, ListKind, SearchArgs};
pub(crate) use config_file::{
    AddArgs, ClientApp, ConfiguredServerArgs, ExportArgs, ImportArgs, Scope, ScopeArgs, TransportArg,
};
pub(crate) use maintenance::{CompletionsArgs, DoctorArgs, ManArgs, Shell};
pub(crate) use openapi::{DiagnosticsFormat, OpenApiArgs};
pub(crate) use parse::parse;
pub(crate) use server_selection::{AdHocServerArgs, ServerSelectionArgs};
pub(crate) use ui::UiArgs;
pub(crate) use workbench::WorkbenchCommand;

/// Find, test, call, serve and script MCP tools.
#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true, max_term_width = 110, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: CliCommand,

    /// What to log on standard error, such as `info` or `toolyard_hub=debug`.
    #[arg(long, global = true, env = "TOOLYARD_LOG", value_name = "FILTER")]
    pub(crate) log: Option<String>,
}

const EXAMPLES: &str = "Examples:
  toolyard list                               the tools of your servers; of the demo yard, if you have none
  toolyard inspect add                        one tool with its parameters
  toolyard call add a=2 b=3                   calls it
  toolyard call echo message=hi -- npx -y @modelcontextprotocol/server-everything
                                              the same of a server that is in no configuration
  toolyard add files -- npx -y @modelcontextprotocol/server-filesystem .
                                              puts a server into ./toolyard.toml
  toolyard import                             finds the servers that your other programs know
  toolyard serve                              the demo yard on http://127.0.0.1:8080, with a fresh token
  toolyard serve --listen 127.0.0.1:0 --json  on a free port; the address and token as JSON
  toolyard serve --auth none                  without a token, on this machine only
  toolyard serve --openapi petstore.yaml      the operations of an OpenAPI document as tools
  toolyard stdio                              for a client that starts its servers itself
  toolyard stdio --expose tester              nine tools that let an assistant test any MCP server
  toolyard stdio --expose programs            three tools that let an assistant call all others from one script
  toolyard run report.py                      a Python script that can call every tool of the yard";

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    #[command(flatten)]
    Workbench(WorkbenchCommand),
    /// Serve the yard over HTTP.
    Serve(ServeArgs),
    /// Serve the yard to the client that started this process, over standard input and output.
    Stdio(StdioArgs),
    /// Look at servers, call their tools and see the results, in the terminal.
    Ui(UiArgs),
    /// Log in to a server that wants to know who you are, in a browser.
    Login(LoginArgs),
    /// Forget what a login to a server has brought.
    Logout(LogoutArgs),
    /// Tokens with which others may call.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Run a Python script that can call every tool of the yard, in a sandbox.
    Run(RunArgs),
    /// Watch what happens in a yard that runs: its servers, its calls and its log.
    Watch(WatchArgs),
    /// Print the parameters and results of every tool as types for a client library.
    Types(TypesArgs),
    /// Show the tools that an OpenAPI document becomes.
    #[command(name = "openapi")]
    OpenApi(OpenApiArgs),
    /// Keeps the process of a server: this program starts itself like that, people do not.
    #[command(hide = true)]
    Keeper(SupervisorArgs),
    /// Builds the sandbox for programs: this program starts itself like that, people do not.
    #[command(hide = true)]
    Sandbox(SandboxArgs),
}

#[derive(Debug, Parser)]
pub(crate) struct ServeArgs {
    /// A configuration: toolyard.toml, or the file of another program that names MCP servers; may be given several
    /// times. Without one: ./toolyard.toml, the one among your configurations, or the embedded demo yard.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) documents: DocumentArgs,

    /// The address to listen on, or a port of 127.0.0.1; port 0 picks a free one [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDRESS", value_parser = toolyard_config::parse_listen_address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Who may come in: whoever has the token, or everybody on this machine [default: token].
    #[arg(long)]
    pub(crate) auth: Option<AuthArg>,

    /// The token that clients must send; made afresh at every start if there is none.
    #[arg(long, env = "TOOLYARD_TOKEN", hide_env_values = true, allow_hyphen_values = true)]
    pub(crate) token: Option<String>,

    /// Print the address and the token as JSON on standard output once they are known.
    #[arg(long)]
    pub(crate) json: bool,
}

/// OpenAPI documents that are served without a configuration.
#[derive(Debug, clap::Args)]
pub(crate) struct DocumentArgs {
    /// An OpenAPI document whose operations are served as tools: a file, or an address; may be given several times. No
    /// configuration is read then unless one is named too.
    #[arg(long, value_name = "DOCUMENT", value_parser = parse_document_location)]
    pub(crate) openapi: Vec<String>,

    /// Where the operations of these documents are, whatever the documents say.
    #[arg(long, value_name = "URL", requires = "openapi", value_parser = parse_http_url)]
    pub(crate) base_url: Option<reqwest::Url>,
}

fn parse_time(text: &str) -> Result<Duration, String> {
    toolyard_config::duration_from_text(text)
        .ok_or_else(|| "a time is a number with a unit, such as 30s, 2m or 500ms".to_owned())
}

/// A file that is not there now was meant to be another one: one that comes and goes belongs into a configuration.
fn parse_document_location(text: &str) -> Result<String, String> {
    if !toolyard_config::is_http_url(text)
        && let Err(error) = std::fs::metadata(text)
    {
        return Err(format!("cannot read it: {error}"));
    }
    Ok(text.to_owned())
}

fn parse_http_url(text: &str) -> Result<reqwest::Url, String> {
    let url = reqwest::Url::parse(text).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!("it starts with {other}:, and has to with http:// or https://")),
    }
}

impl DocumentArgs {
    /// What is served, together with these configurations.
    pub(crate) fn config_inputs(&self, files: Vec<PathBuf>) -> ConfigInputs {
        let base_url = self.base_url.as_ref().map(reqwest::Url::to_string);
        ConfigInputs { files, documents: self.openapi.clone(), base_url, only: None }
    }
}

/// What can be served to a client over standard input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Expose {
    /// The tools, resources and prompts of the yard.
    Tools,
    /// Nine tools that test any MCP server.
    Tester,
    /// Three tools with which one script calls many tools.
    Programs,
}

#[derive(Debug, Parser)]
pub(crate) struct StdioArgs {
    /// What to serve; several with commas between them.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "tools")]
    pub(crate) expose: Vec<Expose>,

    /// A configuration: toolyard.toml, or the file of another program that names MCP servers; may be given several
    /// times. Without one: ./toolyard.toml, the one among your configurations, or the embedded demo yard.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) documents: DocumentArgs,
}

#[derive(Debug, Parser)]
#[command(
    after_help = "In the script every tool is an async function, by its full name and, where only one server has it, by
its own name. What is no Python name is found in `tools`; calls are awaited:
  print(await add(a=2, b=3))
  print(await tools[\"get-sum\"](a=2, b=3))
  print(await search_tools(\"weather\"))                what there is
  print(await inspect_tool(\"get-sum\"))                what it takes
Python's standard library is there; network, files and other processes are not.

Examples:
  toolyard run report.py
  echo 'print(await add(a=2, b=3))' | toolyard run -"
)]
pub(crate) struct RunArgs {
    /// The script; `-` is standard input.
    #[arg(value_name = "SCRIPT")]
    pub(crate) script: PathBuf,

    /// A configuration, as for `serve`; may be given several times. Its servers are started and stopped again.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) documents: DocumentArgs,

    /// How long the script may take, such as 30s or 5m [default: what the configuration allows].
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) timeout: Option<Duration>,

    /// Print what came of it as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct LoginArgs {
    /// The server, by its name in the configuration.
    pub(crate) server: String,

    /// A configuration, as for `serve`; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    /// Only print the address: the browser is on another machine.
    #[arg(long)]
    pub(crate) no_browser: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct LogoutArgs {
    /// The server, by its name in the configuration.
    pub(crate) server: String,

    /// A configuration, as for `serve`; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token: prints it once, with the lines for toolyard.toml. Nothing is written to a file.
    New(NewTokenArgs),
}

#[derive(Debug, Parser)]
pub(crate) struct NewTokenArgs {
    /// Who gets it; records and counters go by this name.
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// What its holder may do; may be given several times, `*` stands for everything.
    #[arg(long, value_name = "PERMISSION")]
    pub(crate) permission: Vec<String>,

    /// A glob over the names of servers: there are no others for its holder; may be given several times.
    #[arg(long, value_name = "GLOB")]
    pub(crate) server: Vec<String>,

    /// A glob over the full names of tools: there are no others for its holder; may be given several times.
    #[arg(long, value_name = "GLOB")]
    pub(crate) tool: Vec<String>,

    /// How long it is good, such as 30d, 12h or 2w, or until when, such as 2027-01-31T12:00:00Z; for ever if this is not
    /// said.
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<String>,

    /// Print everything as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the client libraries are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// TypeScript, for `@toolyard/client`.
    Ts,
    /// Python, for `mcp_client`.
    Python,
}

#[derive(Debug, Parser)]
pub(crate) struct TypesArgs {
    /// The language of the types.
    #[arg(long)]
    pub(crate) lang: Language,

    /// A configuration, as for `serve`; may be given several times. Its servers are started, asked and stopped.
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) config: Vec<PathBuf>,

    /// The address of a yard that runs, to ask that one instead.
    #[arg(long)]
    pub(crate) url: Option<reqwest::Url>,

    /// The token for that yard.
    #[arg(long, env = "TOOLYARD_TOKEN", hide_env_values = true, allow_hyphen_values = true)]
    pub(crate) token: Option<String>,

    /// The file to write; standard output if none is said.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Parser)]
pub(crate) struct WatchArgs {
    /// The address of the yard; the one of its page, with the token in it, will do.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    pub(crate) url: reqwest::Url,

    /// The token for that yard.
    #[arg(long, env = "TOOLYARD_TOKEN", hide_env_values = true, allow_hyphen_values = true)]
    pub(crate) token: Option<String>,

    /// Print every event as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Only calls.
    #[arg(long)]
    pub(crate) calls: bool,

    /// Only what is about this server.
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Parser)]
pub(crate) struct SupervisorArgs {
    /// The process to outlive by no more than it takes to clean up.
    #[arg(long, value_name = "PID")]
    pub(crate) watch: u32,

    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Parser)]
pub(crate) struct SandboxArgs {
    /// The Python to run in it.
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
            show(verb);
        }
    }

    #[test]
    fn the_documentation_has_every_verb_and_every_exit_code() {
        let docs = include_str!("../../../docs/cli.md");
        let mut command = Args::command();
        command.build();
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
        {
            let name = verb.get_name();
            assert!(docs.contains(&format!("`{name}")), "docs/cli.md does not name the verb {name}");
        }
        for code in [0, 1, 2, 3, 4, 5, 6, 7, 130] {
            assert!(
                docs.contains(&format!("\n| {code} |")),
                "docs/cli.md does not explain the exit code {code}"
            );
        }
    }

    /// One snapshot for each verb, so that a new one changes no other.
    fn show(verb: &mut clap::Command) {
        let name = format!("help_{}", verb.get_name());
        insta::assert_snapshot!(name, verb.render_long_help().to_string());
        for below in verb.get_subcommands_mut().filter(|below| below.get_name() != "help") {
            show(below);
        }
    }
}
