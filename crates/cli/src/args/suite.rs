//! The arguments of `toolyard test`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Parser, ValueEnum};
use toolyard_suite::{ReportFormat, Shard};
use toolyard_upstream::Era;

use super::generic_run::GenericArgs;
use super::server_selection::ServerSelectionArgs;

#[derive(Debug, Parser)]
#[command(
    after_help = "Exit codes: 0 if all tests passed, 2 for a mistake in a test file, 8 if a test failed, if no \
test ran, or if the coverage is too low, 130 after Ctrl-C. Reports are written in all of these cases except 2.

Snapshots: a missing one is written, unless CI is set in the environment or --ci is passed.

Examples:
  toolyard test                               run tests/**/*.mcp.yaml
  toolyard test tests/files.mcp.yaml --filter 'read*'
  toolyard test --era legacy --era modern     run every test in both eras
  toolyard test --report junit=junit.xml --report html=report.html
  toolyard test --coverage --fail-under 80
  toolyard test tests/files.mcp.yaml -- node build/index.js
                                              test another build of the server
  toolyard test --generic -- node build/index.js
                                              test a server without a test file
  toolyard test --from mcp-assert evals --fixture fixtures
  toolyard test --verify session.cassette -- node build/index.js"
)]
pub(crate) struct TestArgs {
    /// Test files, and folders with test files. Default: the folder `tests`.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Run only tests whose name or file contains this text. `*` matches anything, `tag:NAME` selects
    /// by tag, and `!` in front excludes. Can be repeated.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) filter: Vec<String>,

    /// Run only a part of the tests, such as 1/3, to distribute them over several machines.
    #[arg(long, value_name = "N/M")]
    pub(crate) shard: Option<Shard>,

    /// Repeat a failed test up to N times, each time with a new server. A test that passes then is
    /// reported as flaky.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=20))]
    pub(crate) retry: u8,

    /// Stop at the first failure.
    #[arg(long)]
    pub(crate) fail_fast: bool,

    /// Run again whenever a test file or a fixture changes.
    #[arg(long, conflicts_with_all = ["list", "json"])]
    pub(crate) watch: bool,

    /// How many test files run at the same time. Default: the number of processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,

    /// Run every test in this era, whatever the files say. Can be repeated.
    #[arg(long, value_name = "ERA")]
    pub(crate) era: Vec<EraArg>,

    /// Write snapshots that are missing or differ, and remove those that no test uses.
    #[arg(long)]
    pub(crate) update: bool,

    /// Never write snapshots. Default if CI is set in the environment.
    #[arg(long, conflicts_with = "update")]
    pub(crate) ci: bool,

    /// Write a report, as FORMAT=FILE. The formats are json, junit, tap, github and html, and with
    /// --generic sarif. Can be repeated.
    #[arg(long, value_name = "FORMAT=FILE")]
    pub(crate) report: Vec<ReportFile>,

    /// Print the results as JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// List the tests that would run.
    #[arg(long)]
    pub(crate) list: bool,

    /// Show which tools, parameters, enum values and error paths the tests cover.
    #[arg(long)]
    pub(crate) coverage: bool,

    /// Fail if less than this share of tools, parameters and enum values is covered, in percent.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) fail_under: Option<f64>,

    /// Run the files of another tool.
    #[arg(long, value_name = "TOOL", requires = "paths")]
    pub(crate) from: Option<ImportArg>,

    /// The folder that `{{fixture}}` stands for in files of mcp-assert. Each test gets a copy.
    #[arg(long, value_name = "FOLDER", requires = "from")]
    pub(crate) fixture: Option<PathBuf>,

    /// Send the requests of a recording to a server, and compare its answers with the recorded ones.
    /// Needs --server, --url or a command after `--`.
    #[arg(long, value_name = "CASSETTE", conflicts_with_all = ["paths", "from"])]
    pub(crate) verify: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) generic: GenericArgs,

    #[command(flatten)]
    pub(crate) which: ServerSelectionArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EraArg {
    /// Protocol versions up to 2025-11-25.
    Legacy,
    /// Protocol version 2026-07-28 and later.
    Modern,
}

impl From<EraArg> for Era {
    fn from(era: EraArg) -> Self {
        match era {
            EraArg::Legacy => Self::Legacy,
            EraArg::Modern => Self::Modern,
        }
    }
}

/// The tools whose files can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportArg {
    /// YAML files of mcp-assert.
    McpAssert,
    /// Recordings of mcporter. Servers are those of the configuration with the same name.
    Mcporter,
}

/// A report to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportFile {
    pub(crate) format: ReportFormat,
    pub(crate) path: PathBuf,
}

impl FromStr for ReportFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, path) = text.split_once('=').ok_or("expected FORMAT=FILE, such as junit=junit.xml")?;
        if path.is_empty() {
            return Err("the file name is empty".to_owned());
        }
        Ok(Self { format: format.parse()?, path: path.into() })
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    percent
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| "expected a number from 0 to 100".to_owned())
}
