//! The arguments of `toolyard openapi`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

#[derive(Debug, Parser)]
pub(crate) struct OpenApiArgs {
    /// The document, JSON or YAML: a file, a URL, or `-` for standard input.
    pub(crate) document: String,

    /// Print the tools as a JSON array of MCP definitions instead of a table.
    #[arg(long)]
    pub(crate) json: bool,

    /// File to write the JSON array to. The table is printed as well, unless you pass --json.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// How to report the diagnostics of the document on standard error.
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) diagnostics: DiagnosticsFormat,

    /// Only operations with this tag. `*` matches any text. Can be repeated, like all filters.
    #[arg(long, value_name = "GLOB")]
    pub(crate) tag: Vec<String>,

    /// Exclude operations with this tag.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude_tag: Vec<String>,

    /// Only operations with this method.
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Vec<String>,

    /// Exclude operations with this method.
    #[arg(long, value_name = "METHOD")]
    pub(crate) exclude_method: Vec<String>,

    /// Only operations whose path matches.
    #[arg(long, value_name = "GLOB")]
    pub(crate) path: Vec<String>,

    /// Exclude operations whose path matches.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude_path: Vec<String>,

    /// Only operations whose operationId matches.
    #[arg(long, value_name = "GLOB")]
    pub(crate) operation: Vec<String>,

    /// Exclude operations whose operationId matches.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude_operation: Vec<String>,

    /// Omit the output schemas of the tools.
    #[arg(long)]
    pub(crate) no_output_schemas: bool,

    /// Size limit of a tool's input schema, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 10)]
    pub(crate) input_budget: usize,

    /// Size limit of a tool's output schema, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 10)]
    pub(crate) output_budget: usize,

    /// Also follow references to URLs. References to files below the document's directory are
    /// always followed.
    #[arg(long)]
    pub(crate) network_references: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiagnosticsFormat {
    /// Warnings and errors, one per line.
    Text,
    /// All diagnostics including notes, one per line.
    All,
    /// All diagnostics, as one JSON array.
    Json,
    /// No diagnostics.
    None,
}
