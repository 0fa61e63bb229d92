//! The arguments of the commands that send one request to a server: call, read, prompt and
//! complete.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use super::server_selection::ServerSelectionArgs;
use crate::name_cache;

#[derive(Debug, Parser)]
#[command(after_help = "Syntax of arguments:
  key=value       converted to the type in the tool's schema; a string if the schema has no type.
                  Pass an object as JSON, or its fields one by one, as in a.b=1
  key=a key=b     a list, one element each; key='[1, 2]' passes the whole list
  key:=json       JSON, regardless of the schema
  key=@file       the text of a file; key:=@file passes JSON from a file; key=@@text is text that
                  starts with @
  --args JSON     all arguments as one JSON object: inline, from @file, or from standard input (-).
                  Arguments that are also given as key=value override those in the object

Output: text is printed as received, except that on a terminal, control sequences are removed and
JSON is indented. Structured content is printed only if the result has no other content. Images,
audio and files are listed on standard error; use -o to save them. If the tool fails, its message
goes to standard error and the exit code is 5. --json prints the whole result exactly as received.

Examples:
  toolyard call add a=2 b=3
  toolyard call mcp__files__read_text_file path=README.md
  toolyard call convert_temperature --args '{\"value\": 20, \"from\": \"celsius\", \"to\": \"kelvin\"}' --json
  toolyard call draw_swatch color='#008080' -o swatch.png
  toolyard call echo message=hi -- npx -y @modelcontextprotocol/server-everything
  toolyard call mcp__files__read_text_file path=a --save-test tests/files.mcp.yaml")]
pub(crate) struct CallArgs {
    /// Full name of the tool, or its bare name if that is unique.
    #[arg(add = name_cache::tool_completer())]
    pub(crate) tool: String,

    /// Arguments of the tool, as key=value or key:=json.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) arguments: Vec<String>,

    /// All arguments as one JSON object: inline, @file, or - for standard input.
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,

    /// Time limit of the call, such as 30s, 2m or 500ms. Default: the limit in the configuration.
    #[arg(long, value_name = "TIME", value_parser = super::parse_time)]
    pub(crate) timeout: Option<Duration>,

    /// Report progress on standard error, even if standard error is not a terminal.
    #[arg(long)]
    pub(crate) progress: bool,

    /// Print the whole result as JSON, exactly as received.
    #[arg(long)]
    pub(crate) json: bool,

    /// Save the first image, audio or file of the result to this file, and further ones as NAME-2,
    /// NAME-3 and so on. If the result has none, save its text.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Write the call and its result to this test file. If the file exists, the test is added to it.
    #[arg(long, value_name = "FILE")]
    pub(crate) save_test: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard read demo://about
  toolyard read demo://squares/7 --json
  toolyard read file:///tmp/logo.png --server files -o logo.png

Binary contents are written to FILE or to a pipe, never to a terminal.")]
pub(crate) struct ReadArgs {
    /// URI of the resource.
    pub(crate) uri: String,

    /// File to write to.
    #[arg(long, short, value_name = "FILE", conflicts_with = "json")]
    pub(crate) output: Option<PathBuf>,

    /// Print the whole result as JSON, exactly as received.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard list prompts
  toolyard prompt explain_tool tool=add
  toolyard prompt simple-prompt --json -- npx -y @modelcontextprotocol/server-everything")]
pub(crate) struct PromptArgs {
    /// Full name of the prompt, or its bare name if that is unique.
    #[arg(add = name_cache::prompt_completer())]
    pub(crate) name: String,

    /// Arguments of the prompt, as key=value. Values are always text.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) arguments: Vec<String>,

    /// Print the whole result as JSON, exactly as received.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}

/// What has arguments that can be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompletionTarget {
    Prompt,
    Template,
}

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard complete prompt explain_tool tool a
  toolyard complete prompt completable-prompt name A department=Engineering")]
pub(crate) struct CompleteArgs {
    /// Whether the argument belongs to a prompt or to a resource template.
    #[arg(value_enum)]
    pub(crate) of: CompletionTarget,

    /// Name of the prompt, or URI of the template.
    pub(crate) name: String,

    /// Name of the argument.
    pub(crate) argument: String,

    /// The part of the value typed so far.
    #[arg(default_value = "")]
    pub(crate) value: String,

    /// Other arguments whose values are already known, as key=value.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) others: Vec<String>,

    /// Print the whole result as JSON, exactly as received.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}
