//! Test files for MCP servers: reads them, runs them against real servers, and reports the results.
//! This crate prints nothing and reads no environment variable: the caller passes both as values.

mod coverage;
mod event;
mod expect;
mod file;
mod generic;
pub mod import;
mod report;
mod run;
mod saved_test;
mod snapshot;
mod values;

pub use coverage::{CoverageCount, CoverageReport, ToolCoverage};
pub use event::{EraDifference, EraLabel, StepReport, SuiteEvent, TestCaseReport, TestLabel, TestOutcome};
pub use expect::{
    AssertionFailure, Condition, ConditionKind, CountBounds, Expectation, ExpectationCheck, FileCheck,
    JsonType, LogExpectation, Matcher, NotificationExpectation, ProgressExpectation, SortOrder, ValueTarget,
};
pub use file::{
    AnswerSequence, CaptureSource, CompletionStep, CompletionTargetSpec, FailureExpectation, FilePosition,
    RedactionTarget, Redactor, RunCondition, ScriptedAnswers, ServerSpec, StepAction, StepExpectations,
    TestCase, TestFile, TestFileProblem, TestStep, ValueCapture, ViolationPolicy, parse_test_file,
    test_file_reference, test_file_schema,
};
pub use generic::{
    GENERIC_RULES, GenericOptions, GenericRule, GenericScope, ReproductionCommand, RuleSeverity,
    parse_compact_arguments, run_generic,
};
pub use report::{
    Annotation, ReportFormat, SuiteReport, SuiteSummary, github_annotations, github_summary, render_failure,
    render_report,
};
pub use run::discover::{DiscoveryError, discover};
pub use run::filter::{InvalidShard, Shard, TestFilter};
pub use run::session::ServerIdentity;
pub use run::{SuiteOptions, list_tests, run_suite};
pub use saved_test::{
    SavedCall, SavedOutcome, SavedRequest, SavedServer, append_saved_test, render_saved_tests,
};
pub use snapshot::{SnapshotMode, SnapshotRequest};
pub use values::{VariableError, Variables};
