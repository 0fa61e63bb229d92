//! Tests that need no test file: rules that every server must follow, with arguments generated from
//! the input schemas of its tools. They send the events of any other run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolyard_definitions::lint::{LintSettings, LintSeverity};
use toolyard_hub::{ClientCapabilities, Secret};
use toolyard_upstream::{CredentialPolicy, Era, ServerSettings, TransportSettings, UpstreamContext};

use crate::event::SuiteEvent;
use crate::run::RunState;
use crate::run::filter::TestFilter;
use crate::run::server::ServerUnderTest;
use crate::run::session::SessionOpener;

mod canary;
mod cases;
mod compact;
mod concurrent_calls;
mod input_schema;
mod judge;
mod list_tests;
mod progress;
mod random;
mod reproduction;
mod request_tests;
mod result_shape;
mod rules;
mod shrink;
mod target;
mod tool_tests;
mod unknown_names;
mod values;

pub(crate) use canary::CanaryWatch;
pub use compact::parse_compact_arguments;
pub use reproduction::ReproductionCommand;
pub use rules::{GENERIC_RULES, GenericRule, RuleSeverity};

use progress::GenericProgress;
use target::GenericTarget;

/// The time limits of single requests. Calls have a limit of their own.
const UNLIMITED: Duration = Duration::from_secs(24 * 3600);

/// Which tools are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GenericScope {
    /// Those that declare that they are read-only.
    ReadOnly,
    All,
}

/// What a generic run does.
#[derive(Debug, Clone)]
pub struct GenericOptions {
    pub server: ServerSettings,
    /// Empty for the newest that the server has.
    pub eras: Vec<Era>,
    pub seed: u64,
    /// How many valid arguments each tool is called with, and how many invalid ones at most.
    pub cases: usize,
    pub scope: GenericScope,
    /// Only these tools. Empty for all.
    pub tools: Vec<String>,
    /// Only these arguments, for all of these tools.
    pub arguments: Option<Value>,
    pub call_timeout: Duration,
    /// The time for the cases of one test.
    pub test_time: Duration,
    /// The time for all cases.
    pub max_time: Duration,
    /// A server that takes longer to start violates a rule.
    pub max_start: Duration,
    pub filters: Vec<TestFilter>,
    pub fail_fast: bool,
    pub lint: LintSettings,
    /// Findings of at least this severity fail.
    pub lint_level: LintSeverity,
    /// A value that must not be guessable. It is put into the environment of a server that the run
    /// starts.
    pub canary: Option<String>,
    /// The command that repeats a part of the run.
    pub reproduction: ReproductionCommand,
}

/// Runs the generic tests and sends events as they happen. When `stop` is canceled, the server is
/// stopped and the events of the end are still sent.
pub async fn run_generic(
    options: &GenericOptions,
    common: &UpstreamContext,
    events: &mpsc::Sender<SuiteEvent>,
    stop: &CancellationToken,
) {
    let state = RunState::new(events, stop);
    state.send(SuiteEvent::RunStarted { files: 1, tests: 0 }).await;
    let eras: Vec<Option<Era>> = match options.eras.is_empty() {
        true => vec![None],
        false => options.eras.iter().copied().map(Some).collect(),
    };
    for era in eras {
        let (settings, canary) = with_canary(options, era);
        let server = ServerUnderTest { settings, credentials: CredentialPolicy::Granted };
        let capabilities = ClientCapabilities::default();
        let opener = SessionOpener { server, common, capabilities, canary: canary.clone() };
        let mut target = GenericTarget::new(opener, &state.coverage);
        let mut progress = GenericProgress::new(options, &state, era, canary);
        tokio::select! {
            biased;
            () = Box::pin(list_tests::run(&mut progress, &mut target)) => {}
            () = stop.cancelled() => {}
        }
        target.close().await;
        if stop.is_cancelled() {
            progress.interrupt().await;
            break;
        }
    }
    state.send(SuiteEvent::Coverage(state.coverage.report())).await;
    let (duration, interrupted) = (state.epoch.elapsed(), stop.is_cancelled());
    state.send(SuiteEvent::RunFinished { duration, interrupted }).await;
}

/// Puts the canary into the environment, if the run starts the server.
fn with_canary(options: &GenericOptions, era: Option<Era>) -> (ServerSettings, Option<Arc<CanaryWatch>>) {
    let mut settings = ServerSettings { era, call_timeout: UNLIMITED, ..options.server.clone() };
    let canary = match (&mut settings.transport, &options.canary) {
        (TransportSettings::Command(command), Some(value)) => {
            command.env.insert(canary::VARIABLE.to_owned(), Secret::new(value.clone()));
            Some(Arc::new(CanaryWatch::new(value)))
        }
        _ => None,
    };
    (settings, canary)
}

/// Generic tests are in no file.
fn no_file() -> PathBuf {
    PathBuf::new()
}
