//! Runs test files: files in parallel, the tests of a file one after the other on one connection.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolyard_upstream::{Era, ServerSettings, UpstreamContext};

use crate::coverage::CoverageLog;
use crate::event::{EraDifference, EraLabel, SuiteEvent, TestLabel};
use crate::expect::diff::diff;
use crate::file::{TestCase, TestFile};
use crate::snapshot::{SnapshotFolder, SnapshotMode};

pub(crate) mod answers;
pub(crate) mod case;
pub(crate) mod discover;
mod file_run;
pub(crate) mod filter;
mod fixtures;
mod inbox;
pub(crate) mod server;
pub(crate) mod session;
mod shared;
pub(crate) mod step;

pub(crate) use file_run::FileRun;

use filter::{Shard, TestFilter, is_selected};

/// The time limit of a test.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How test files are run.
#[derive(Debug, Clone)]
pub struct SuiteOptions {
    /// How many files run at the same time.
    pub jobs: usize,
    pub filters: Vec<TestFilter>,
    pub shard: Option<Shard>,
    /// How often a failed test is repeated.
    pub retries: usize,
    /// Whether the first failure ends the run.
    pub fail_fast: bool,
    /// Replaces the eras of the files.
    pub eras: Option<Vec<Era>>,
    pub snapshots: SnapshotMode,
    /// Replaces the servers of the files.
    pub server: Option<ServerSettings>,
    /// The servers of the configuration, by name.
    pub configured: BTreeMap<String, ServerSettings>,
    pub environment: Arc<BTreeMap<String, String>>,
    /// Where fixtures are copied to.
    pub temporary: PathBuf,
}

/// The answers of the tests that ran in several eras, by file and test.
type AnswersByEra = BTreeMap<(usize, usize), Vec<(TestLabel, Vec<String>)>>;

/// What all files of a run share.
pub(crate) struct RunState<'a> {
    pub(crate) events: &'a mpsc::Sender<SuiteEvent>,
    pub(crate) stop: &'a CancellationToken,
    pub(crate) coverage: CoverageLog,
    pub(crate) answers: Mutex<AnswersByEra>,
    /// Whether a test failed, with `fail_fast`.
    pub(crate) has_failed: AtomicBool,
    pub(crate) epoch: Instant,
}

/// The tests of one file that are selected.
struct SelectedFile<'a> {
    index: usize,
    file: &'a TestFile,
    tests: Vec<(usize, &'a TestCase)>,
    is_complete: bool,
}

/// Returns the selected tests of each file, in order.
fn select<'a>(files: &'a [TestFile], options: &SuiteOptions) -> Vec<SelectedFile<'a>> {
    let mut number = 0;
    let mut selected = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let mut tests = Vec::new();
        for (position, test) in file.tests.iter().enumerate() {
            if !is_selected(&options.filters, file, test) {
                continue;
            }
            if options.shard.is_none_or(|shard| shard.contains(number)) {
                tests.push((position, test));
            }
            number += 1;
        }
        let is_complete = tests.len() == file.tests.len();
        if !tests.is_empty() {
            selected.push(SelectedFile { index, file, tests, is_complete });
        }
    }
    selected
}

/// Returns the eras in which a file runs. `None` is the newest that the server has.
fn eras_of(file: &TestFile, options: &SuiteOptions) -> Vec<Option<Era>> {
    match options.eras.as_ref().or(file.eras.as_ref()) {
        Some(eras) => eras.iter().copied().map(Some).collect(),
        None => vec![None],
    }
}

/// Returns the tests that would run, without running them.
pub fn list_tests(files: &[TestFile], options: &SuiteOptions) -> Vec<TestLabel> {
    let mut labels = Vec::new();
    for selected in select(files, options) {
        for era in eras_of(selected.file, options) {
            labels.extend(selected.tests.iter().map(|(_, test)| label(selected.file, test, era)));
        }
    }
    labels
}

pub(crate) fn label(file: &TestFile, test: &TestCase, era: Option<Era>) -> TestLabel {
    let suite = file.name.clone().unwrap_or_else(|| file.path.to_string_lossy().into_owned());
    TestLabel {
        file: file.path.clone(),
        suite,
        name: test.name.clone(),
        at: test.at,
        era: era.map(EraLabel::from),
    }
}

/// Runs the selected tests and sends events as they happen. When `stop` is canceled, tests in
/// progress end, their servers are stopped, and the events of the end are still sent.
pub async fn run_suite(
    files: &[TestFile],
    options: &SuiteOptions,
    common: &UpstreamContext,
    events: &mpsc::Sender<SuiteEvent>,
    stop: &CancellationToken,
) {
    let selected = select(files, options);
    let state = RunState::new(events, stop);
    let snapshots: Vec<SnapshotFolder> =
        selected.iter().map(|one| SnapshotFolder::new(&one.file.path, options.snapshots)).collect();
    let all_passed: Vec<AtomicBool> = selected.iter().map(|_| AtomicBool::new(true)).collect();
    let mut runs = Vec::new();
    for ((one, snapshots), all_passed) in selected.iter().zip(&snapshots).zip(&all_passed) {
        for era in eras_of(one.file, options) {
            let (tests, index) = (one.tests.clone(), one.index);
            runs.push(FileRun::new(
                one.file, index, tests, era, options, common, &state, snapshots, all_passed,
            ));
        }
    }
    let tests = runs.iter().map(FileRun::test_count).sum();
    state.send(SuiteEvent::RunStarted { files: selected.len(), tests }).await;
    stream::iter(&runs).for_each_concurrent(options.jobs.max(1), FileRun::run).await;

    compare_eras(&state).await;
    let written = snapshots.iter().map(SnapshotFolder::written_count).sum();
    if written > 0 {
        state.send(SuiteEvent::SnapshotsWritten(written)).await;
    }
    for ((one, snapshots), all_passed) in selected.iter().zip(&snapshots).zip(&all_passed) {
        // A test that did not pass may not have reached its snapshots.
        if one.is_complete && all_passed.load(Ordering::Relaxed) && !stop.is_cancelled() {
            let paths = snapshots.obsolete();
            if !paths.is_empty() {
                let removed = options.snapshots == SnapshotMode::Update;
                state.send(SuiteEvent::ObsoleteSnapshots { paths, removed }).await;
            }
        }
    }
    state.send(SuiteEvent::Coverage(state.coverage.report())).await;
    let (duration, interrupted) = (state.epoch.elapsed(), stop.is_cancelled());
    state.send(SuiteEvent::RunFinished { duration, interrupted }).await;
}

impl<'a> RunState<'a> {
    /// Starts a run. Its times count from now.
    pub(crate) fn new(events: &'a mpsc::Sender<SuiteEvent>, stop: &'a CancellationToken) -> Self {
        Self {
            events,
            stop,
            coverage: CoverageLog::default(),
            answers: Mutex::default(),
            has_failed: AtomicBool::new(false),
            epoch: Instant::now(),
        }
    }

    pub(crate) async fn send(&self, event: SuiteEvent) {
        // Without a reader, there is nothing to report to.
        let _ = self.events.send(event).await;
    }
}

/// Reports where the answers of a test differ between the eras.
async fn compare_eras(state: &RunState<'_>) {
    let all = std::mem::take(&mut *state.answers.lock());
    for mut by_era in all.into_values() {
        by_era.sort_by_key(|(label, _)| label.era);
        let [(_, legacy), (label, modern)] = by_era.as_slice() else { continue };
        for (index, (legacy, modern)) in
            legacy.iter().zip(modern).enumerate().filter(|(_, (old, new))| old != new)
        {
            let label = TestLabel { era: None, ..label.clone() };
            let shown = diff(legacy, modern).unwrap_or_else(|| format!("- {legacy}\n+ {modern}"));
            let difference = EraDifference { label, step: index + 1, diff: shown };
            state.send(SuiteEvent::ErasDiffer(Box::new(difference))).await;
        }
    }
}
