//! The arguments of the verbs that ask a server to do something: call, read, prompt, complete.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use super::server_selection::ServerSelectionArgs;
use crate::name_cache;

#[derive(Debug, Parser)]
#[command(after_help = "Arguments:
  key=value       becomes what the tool's schema says: a string, a number, true or false; the text as it is where the
                  schema says nothing. For an object: JSON, or its fields one by one, as in a.b=1
  key=a key=b     a list, one element each; key='[1, 2]' is the whole list
  key:=json       JSON as it is, whatever the schema says
  key=@file       the text of a file; key:=@file JSON from a file; key=@@text is text that begins with @
  --args JSON     all arguments at once, as JSON, from @file, or from standard input (-); single ones win

What is printed: text as it came, on a terminal without control sequences and JSON indented. Structured content is
printed if there is nothing else. Images, sound and files are named on standard error and saved with -o. What a tool
says when it fails goes to standard error, and the exit code is 5. --json prints the whole result as it came.

Examples:
  toolyard call add a=2 b=3
  toolyard call mcp__files__read_text_file path=README.md
  toolyard call convert_temperature --args '{\"value\": 20, \"from\": \"celsius\", \"to\": \"kelvin\"}' --json
  toolyard call draw_swatch color='#008080' -o swatch.png
  toolyard call echo message=hi -- npx -y @modelcontextprotocol/server-everything")]
pub(crate) struct CallArgs {
    /// The full name of the tool, or its bare name where that is unique.
    #[arg(add = name_cache::tool_completer())]
    pub(crate) tool: String,

    /// The arguments of the tool, as key=value or key:=json.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) arguments: Vec<String>,

    /// All arguments as JSON: the text itself, @file, or - for standard input.
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,

    /// How long the call may take, such as 30s, 2m or 500ms; what the configuration says if this is not said.
    #[arg(long, value_name = "TIME", value_parser = super::parse_time)]
    pub(crate) timeout: Option<Duration>,

    /// Report progress on standard error, also where that is no terminal.
    #[arg(long)]
    pub(crate) progress: bool,

    /// Print the whole result as JSON, as it came.
    #[arg(long)]
    pub(crate) json: bool,

    /// Save what the tool answers to this file: the first image, sound or file of the answer, else its text.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}

#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  toolyard read demo://about
  toolyard read demo://squares/7 --json
  toolyard read file:///tmp/logo.png --server files -o logo.png

What is not text is written to FILE or into a pipe, never to a terminal.")]
pub(crate) struct ReadArgs {
    /// The URI of the resource.
    pub(crate) uri: String,

    /// The file to write to.
    #[arg(long, short, value_name = "FILE", conflicts_with = "json")]
    pub(crate) output: Option<PathBuf>,

    /// Print the whole result as JSON, as it came.
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
    /// The full name of the prompt, or its bare name where that is unique.
    #[arg(add = name_cache::prompt_completer())]
    pub(crate) name: String,

    /// The arguments of the prompt; they are always text.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) arguments: Vec<String>,

    /// Print the whole result as JSON, as it came.
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
    /// Whether the argument is one of a prompt or of a template.
    #[arg(value_enum)]
    pub(crate) of: CompletionTarget,

    /// The name of the prompt, or the URI of the template.
    pub(crate) name: String,

    /// The argument.
    pub(crate) argument: String,

    /// What has been typed of it so far.
    #[arg(default_value = "")]
    pub(crate) value: String,

    /// Other arguments, as far as they are known.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) others: Vec<String>,

    /// Print the whole result as JSON, as it came.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}
