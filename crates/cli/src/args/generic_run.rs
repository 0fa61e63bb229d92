//! The arguments of `toolyard test --generic`.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::definitions::SeverityArg;

#[derive(Debug, Clone, Args)]
pub(crate) struct GenericArgs {
    /// Test a server without a test file: call its tools with generated arguments, and check rules
    /// that every server must follow. PATH is then a server of the configuration or a URL, or the
    /// command is after `--`.
    #[arg(
        long,
        help_heading = "Generic tests",
        conflicts_with_all = ["shard", "retry", "watch", "list", "update", "from", "verify", "fixture", "jobs"],
    )]
    pub(crate) generic: bool,

    /// Number from which the random arguments follow. The same seed gives the same arguments.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "generic", help_heading = "Generic tests")]
    pub(crate) seed: u64,

    /// How many valid and how many invalid arguments each tool is called with at most.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        requires = "generic",
        help_heading = "Generic tests",
        value_parser = clap::value_parser!(u16).range(1..=10_000),
    )]
    pub(crate) cases: u16,

    /// Call only this tool. Can be repeated.
    #[arg(
        long,
        value_name = "NAME",
        requires = "generic",
        help_heading = "Generic tests",
        allow_hyphen_values = true
    )]
    pub(crate) tool: Vec<String>,

    /// Call only with these arguments, as a failure prints them.
    #[arg(
        long,
        value_name = "JSON",
        requires = "tool",
        help_heading = "Generic tests",
        value_parser = toolyard_suite::parse_compact_arguments,
    )]
    pub(crate) arguments: Option<Value>,

    /// Call all tools, not only those that declare `readOnlyHint: true`. Pass it only for a server
    /// whose data may be lost.
    #[arg(long, requires = "generic", help_heading = "Generic tests")]
    pub(crate) destructive: bool,

    /// How long a call may take without an answer or progress.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5s",
        requires = "generic",
        help_heading = "Generic tests",
        value_parser = super::parse_time,
    )]
    pub(crate) call_timeout: Duration,

    /// How long the calls of one test may take. Further cases are not run.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "20s",
        requires = "generic",
        help_heading = "Generic tests",
        value_parser = super::parse_time,
    )]
    pub(crate) test_time: Duration,

    /// How long the run may take. Tests that have not started then fail.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10m",
        requires = "generic",
        help_heading = "Generic tests",
        value_parser = super::parse_time,
    )]
    pub(crate) max_time: Duration,

    /// How long the server may take to start without failing a test.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        requires = "generic",
        help_heading = "Generic tests",
        value_parser = super::parse_time,
    )]
    pub(crate) max_start: Duration,

    /// Fail if lint finds something of this severity or a higher one.
    #[arg(
        long,
        value_name = "SEVERITY",
        default_value = "error",
        requires = "generic",
        help_heading = "Generic tests"
    )]
    pub(crate) lint_level: SeverityArg,
}
