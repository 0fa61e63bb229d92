//! Selection, repetition, and ends of a run.

use std::time::{Duration, Instant};

use toolyard_suite::{TestFilter, TestOutcome};

use super::{KEPT, ODD, SuiteRunner, assert_passed, is_running, outcomes, run};

const TWO: &str = "server: SERVER\ntests:\n  - {name: one, call: test_simple_text}\n  - {name: two, call: test_simple_text}\n";

#[tokio::test]
async fn tests_are_selected_by_filter_and_shard() {
    let mut runner = SuiteRunner::new();
    runner.options.filters = vec![TestFilter::parse("two")];
    assert_eq!(outcomes(&runner.run_text(TWO).await), ["two: passed"]);
    runner.options.filters.clear();
    runner.options.shard = Some("1/2".parse().unwrap());
    assert_eq!(outcomes(&runner.run_text(TWO).await), ["one: passed"]);
    runner.options.shard = Some("2/2".parse().unwrap());
    assert_eq!(outcomes(&runner.run_text(TWO).await), ["two: passed"]);
}

#[tokio::test]
async fn a_test_that_passes_when_repeated_is_flaky() {
    let mut runner = SuiteRunner::new();
    runner.options.retries = 2;
    let marker = runner.folder().join("marker");
    let text = format!(
        "server: {{command: sh, args: [-c, \"test -e {0} || {{ touch {0}; exit 3; }}; exec {1} stdio\"]}}\n\
         tests: [{{name: one, call: test_simple_text}}]",
        marker.display(),
        super::FIXTURE,
    );
    let report = runner.run_text(&text).await;
    assert!(matches!(report.tests[0].outcome, TestOutcome::Flaky(_)), "{:?}", outcomes(&report));
    assert_eq!(report.tests[0].attempts, 2);
    assert_eq!((report.summary().passed, report.summary().flaky), (1, 1));
}

#[tokio::test]
async fn the_first_failure_can_end_the_run() {
    let mut runner = SuiteRunner::new();
    runner.options.fail_fast = true;
    let text = TWO.replace("{name: one, call: test_simple_text}", "{name: one, call: nope}");
    let report = runner.run_text(&text).await;
    assert!(matches!(report.tests[1].outcome, TestOutcome::NotRun(_)), "{:?}", outcomes(&report));
}

#[tokio::test]
async fn tests_share_a_connection_unless_isolated() {
    let text = format!(
        "server: {{command: {ODD}, args: [counts-sessions, stdio]}}\ntests:\n\
         \x20 - {{name: first, call: requests, capture: {{n: $.structuredContent.total}}}}\n\
         \x20 - {{name: second, call: requests, expect: {{jsonpath: {{$.structuredContent.total: {{min: 4}}}}}}}}\n\
         \x20 - {{name: isolated, isolate: true, call: requests, expect: {{jsonpath: {{$.structuredContent.total: {{max: 5}}}}}}}}\n\
         \x20 - {{name: captures are private, call: \"${{n}}\"}}\n"
    );
    let report = run(&text).await;
    let found = outcomes(&report);
    assert_eq!(found[..3], ["first: passed", "second: passed", "isolated: passed"], "{found:?}");
    assert_eq!(found[3], "captures are private: failed: unknown variable `n`");
}

#[tokio::test]
async fn setup_and_teardown_run_once_and_their_failures_are_reported() {
    let good = TWO
        .replace("tests:", "setup: [{call: test_simple_text}]\nteardown: [{call: test_simple_text}]\ntests:");
    assert_passed(&run(&good).await, 2);
    let bad_setup = TWO.replace("tests:", "setup: [{call: nope}]\ntests:");
    let report = run(&bad_setup).await;
    assert!(
        outcomes(&report)
            .iter()
            .all(|line| line.contains("failed: setup: the server answered with the error"))
    );
    let bad_teardown = TWO.replace("tests:", "teardown: [{call: nope}]\ntests:");
    let report = run(&bad_teardown).await;
    let found = outcomes(&report);
    assert!(found.iter().any(|line| line.starts_with("(teardown): failed: ")), "{found:?}");
    assert_eq!(report.summary().passed, 2);
}

#[tokio::test]
async fn an_interrupted_run_ends_its_servers_and_reports() {
    let runner = SuiteRunner::new();
    let marker = runner.folder().join("unique-marker");
    let text = format!(
        "server: {{command: {ODD}, args: [never-answers, stdio], env: {{X: y}}}}\ntests:\n\
         \x20 - {{name: hangs, call: never, timeout: 60s}}\n  - {{name: later, call: echo}}\n\
         \x20 - {{name: isolated, isolate: true, call: never}}\n"
    );
    // The marker makes the processes of this run recognizable.
    let text = text.replace(ODD, "sh").replace(
        "[never-answers, stdio]",
        &format!("[-c, \"exec {ODD} never-answers stdio\", {}]", marker.display()),
    );
    let stop = runner.stop.clone();
    let file = runner.file("a.mcp.yaml", &text);
    let started = Instant::now();
    let stopping = async {
        while !is_running(&marker) && started.elapsed() < Duration::from_secs(20) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(is_running(&marker));
        stop.cancel();
    };
    let files = [file];
    let (report, ()) = tokio::join!(runner.run(&files), stopping);
    assert!(report.interrupted);
    assert_eq!(report.tests.len(), 3);
    assert!(
        report.tests.iter().all(|test| matches!(test.outcome, TestOutcome::NotRun(_))),
        "{:?}",
        outcomes(&report)
    );
    let gone = Instant::now();
    while is_running(&marker) {
        assert!(gone.elapsed() < Duration::from_secs(10), "a server survived");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(started.elapsed() < Duration::from_secs(30), "{KEPT}");
}

#[tokio::test]
async fn skipped_tests_say_why() {
    let text = "server: SERVER\ntests:\n  - {name: a, skip: not yet, call: x}\n  - {name: b, only: {os: plan9}, call: x}\n  \
                - {name: c, only: {env: NOT_SET}, call: x}\n";
    assert_eq!(
        outcomes(&run(text).await),
        [
            "a: skipped: not yet",
            "b: skipped: only on plan9",
            "c: skipped: the environment variable NOT_SET is not set"
        ]
    );
}
