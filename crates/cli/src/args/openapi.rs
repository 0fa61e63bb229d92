//! `toolyard openapi`: the tools that an OpenAPI document becomes.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

#[derive(Debug, Parser)]
pub(crate) struct OpenApiArgs {
    /// The document, JSON or YAML: a file, an address, or `-` for standard input.
    pub(crate) document: String,

    /// Print the tools as a JSON array, as MCP has them, instead of a table.
    #[arg(long)]
    pub(crate) json: bool,

    /// The file to write the JSON array to; the table is still printed unless --json is said.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// How to tell, on standard error, what was found out about the document.
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) diagnostics: DiagnosticsFormat,

    /// Only operations with this tag; `*` stands for anything; may be given several times, like all of these.
    #[arg(long, value_name = "GLOB")]
    pub(crate) tag: Vec<String>,

    /// No operations with this tag.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude_tag: Vec<String>,

    /// Only operations with this method.
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Vec<String>,

    /// No operations with this method.
    #[arg(long, value_name = "METHOD")]
    pub(crate) exclude_method: Vec<String>,

    /// Only operations whose path is like this.
    #[arg(long, value_name = "GLOB")]
    pub(crate) path: Vec<String>,

    /// No operations whose path is like this.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude_path: Vec<String>,

    /// Only operations whose operationId is like this.
    #[arg(long, value_name = "GLOB")]
    pub(crate) operation: Vec<String>,

    /// No operations whose operationId is like this.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude_operation: Vec<String>,

    /// Leave out what the tools say about their answers.
    #[arg(long)]
    pub(crate) no_output_schemas: bool,

    /// Bytes that the input schema of one tool may take.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 10)]
    pub(crate) input_budget: usize,

    /// Bytes that the output schema of one tool may take.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 10)]
    pub(crate) output_budget: usize,

    /// Follow references of the document to addresses as well; files below its folder are always read.
    #[arg(long)]
    pub(crate) network_references: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiagnosticsFormat {
    /// Warnings and errors, a line each.
    Text,
    /// Everything, notes included, a line each.
    All,
    /// Everything, as one JSON array.
    Json,
    None,
}
