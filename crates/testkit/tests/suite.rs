//! Test files against real servers: the conformance fixture in both eras, and servers that
//! misbehave.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]
#![allow(clippy::disallowed_methods, reason = "the tests start programs from their own build folder")]

mod suite {
    mod answers;
    mod assertions;
    mod broken;
    mod imports;
    mod running;

    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;
    use toolyard_hub::json::to_raw;
    use toolyard_suite::{
        SnapshotMode, SuiteOptions, SuiteReport, TestFile, TestOutcome, parse_test_file, render_failure,
        run_suite,
    };
    use toolyard_testkit::harness::Scratch;
    use toolyard_upstream::{ProcessEnvironment, SupervisorCommand, UpstreamContext};

    const KEPT: &str = env!("CARGO_BIN_EXE_toolyard-kept");
    const ODD: &str = env!("CARGO_BIN_EXE_toolyard-odd");
    const FIXTURE: &str = env!("CARGO_BIN_EXE_toolyard-fixture");

    /// Runs test files of one folder.
    struct SuiteRunner {
        scratch: Scratch,
        options: SuiteOptions,
        stop: CancellationToken,
    }

    impl SuiteRunner {
        fn new() -> Self {
            let scratch = Scratch::new();
            let temporary = scratch.path("temporary");
            let options = SuiteOptions {
                jobs: 4,
                filters: Vec::new(),
                shard: None,
                retries: 0,
                fail_fast: false,
                eras: None,
                snapshots: SnapshotMode::WriteMissing,
                server: None,
                configured: BTreeMap::new(),
                environment: Arc::default(),
                temporary,
            };
            Self { scratch, options, stop: CancellationToken::new() }
        }

        fn folder(&self) -> PathBuf {
            self.scratch.path("")
        }

        /// Reads a file. `SERVER` in it stands for the conformance fixture over stdio.
        fn file(&self, name: &str, text: &str) -> TestFile {
            let text = text.replace("SERVER", &format!("{{command: {FIXTURE}, args: [stdio]}}"));
            let path = self.folder().join(name);
            parse_test_file(&path, &text).unwrap_or_else(|problems| panic!("{}", problems[0]))
        }

        async fn run(&self, files: &[TestFile]) -> SuiteReport {
            let environment = ProcessEnvironment::new(std::env::vars_os());
            let supervisor =
                SupervisorCommand { program: KEPT.into(), args: vec!["keeper".into()], environment };
            let me = to_raw(&serde_json::json!({"name": "suite-test", "version": "1"}));
            let common = UpstreamContext::new(supervisor, me).unwrap();
            let (events, mut received) = mpsc::channel(16);
            let running = async {
                run_suite(files, &self.options, &common, &events, &self.stop).await;
                drop(events);
            };
            let collecting = async {
                let mut report = SuiteReport::default();
                while let Some(event) = received.recv().await {
                    report.apply(&event);
                }
                report
            };
            tokio::join!(running, collecting).1
        }

        async fn run_text(&self, text: &str) -> SuiteReport {
            self.run(&[self.file("a.mcp.yaml", text)]).await
        }
    }

    /// Runs one file with default options.
    async fn run(text: &str) -> SuiteReport {
        SuiteRunner::new().run_text(text).await
    }

    /// The name and outcome of every test, with its failures.
    fn outcomes(report: &SuiteReport) -> Vec<String> {
        let line = |test: &toolyard_suite::TestCaseReport| {
            let failures: Vec<&str> =
                test.outcome.failures().iter().map(|failure| failure.message.as_str()).collect();
            match &test.outcome {
                TestOutcome::Skipped(reason) | TestOutcome::NotRun(reason) => {
                    format!("{}: {}: {reason}", test.label.title(), test.outcome.as_str())
                }
                _ if failures.is_empty() => format!("{}: {}", test.label.title(), test.outcome.as_str()),
                _ => format!("{}: {}: {}", test.label.title(), test.outcome.as_str(), failures.join(" | ")),
            }
        };
        report.tests.iter().map(line).collect()
    }

    /// Panics with the failures of the report, if there are any.
    fn assert_passed(report: &SuiteReport, count: usize) {
        for test in &report.tests {
            let failures: Vec<String> =
                test.outcome.failures().iter().map(|failure| render_failure(test, failure)).collect();
            assert!(
                failures.is_empty(),
                "{}: {}\n{:?}",
                test.label.title(),
                failures.join("\n"),
                test.stderr
            );
        }
        assert_eq!(report.summary().passed, count, "{:?}", outcomes(report));
    }

    /// Whether a process uses this path as an argument.
    fn is_running(path: &Path) -> bool {
        let text = path.to_string_lossy().into_owned();
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let mut lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.any(|line| String::from_utf8_lossy(&line).contains(&text))
    }
}
