//! Servers that crash, hang, flood or lie fail their own tests and no others.

use std::time::Instant;

use super::{ODD, SuiteRunner, outcomes};

/// A file for a misbehaving server over stdio.
fn odd(kind: &str, tests: &str) -> String {
    format!("server: {{command: {ODD}, args: [{kind}, stdio]}}\nstart_timeout: 5s\ntests:\n{tests}")
}

async fn outcomes_of(kind: &str, tests: &str) -> Vec<String> {
    outcomes(&SuiteRunner::new().run_text(&odd(kind, tests)).await)
}

#[tokio::test]
async fn a_crash_fails_one_test_and_shows_the_exit() {
    let found = outcomes_of(
        "exits-mid-call",
        "  - {name: before, call: echo}\n  - {name: crash, call: exit}\n  - {name: after, call: echo}\n",
    )
    .await;
    assert_eq!(found[0], "before: passed");
    assert_eq!(found[1], "crash: failed: the server exited with code 4");
    assert_eq!(found[2], "after: passed");
}

#[tokio::test]
async fn a_hang_ends_at_the_time_limit() {
    let started = Instant::now();
    let found = outcomes_of(
        "never-answers",
        "  - {name: hangs, call: never, timeout: 300ms}\n  - {name: hangs too, steps: [{call: never, timeout: 200ms}]}\n  \
         - {name: lists, list: tools}\n",
    )
    .await;
    assert_eq!(
        found,
        [
            "hangs: failed: no answer within 300 ms",
            "hangs too: failed: no answer within 200 ms",
            "lists: passed"
        ]
    );
    assert!(started.elapsed().as_secs() < 20);
}

#[tokio::test]
async fn a_server_that_cannot_start_fails_all_of_its_tests() {
    let found =
        outcomes_of("dies-at-start", "  - {name: one, call: echo}\n  - {name: two, call: echo}\n").await;
    assert_eq!(found.len(), 2);
    for outcome in found {
        assert!(outcome.contains("failed: cannot connect to the server: "), "{outcome}");
    }
    let report = SuiteRunner::new()
        .run_text("server: {command: /no/such/program}\ntests: [{name: one, call: x}]")
        .await;
    assert!(outcomes(&report)[0].contains("cannot connect to the server"), "{:?}", outcomes(&report));
}

#[tokio::test]
async fn a_lie_about_the_output_schema_is_found() {
    let found = outcomes_of(
        "wrong-output",
        "  - {name: wrong, call: wrong}\n  - {name: missing, call: missing}\n  \
         - {name: unchecked, call: wrong, expect: {output_schema: false}}\n",
    )
    .await;
    assert!(
        found[0].starts_with("wrong: failed: the result violates the output schema of `wrong`: `n`: "),
        "{found:?}"
    );
    assert_eq!(
        found[1],
        "missing: failed: `missing` has an output schema, but its result has no `structuredContent`"
    );
    assert_eq!(found[2], "unchecked: passed");
}

#[tokio::test]
async fn a_flood_is_bounded() {
    let tests = "  - {name: one, call: echo, timeout: 10s}\n  - {name: two, call: echo, timeout: 10s}\n";
    let found = outcomes_of("floods", tests).await;
    assert!(found.iter().all(|line| line.contains("failed: protocol violation, ")), "{found:?}");
    let ignoring = format!("violations: ignore\n{}", odd("floods", tests));
    assert_eq!(outcomes(&SuiteRunner::new().run_text(&ignoring).await), ["one: passed", "two: passed"]);
}

#[tokio::test]
async fn lines_that_are_no_messages_are_violations() {
    let tests = "  - {name: one, call: echo}\n";
    let found = outcomes_of("noisy", tests).await;
    assert!(found[0].contains("failed: protocol violation: "), "{found:?}");
    let ignoring = format!("violations: ignore\n{}", odd("noisy", tests));
    assert_eq!(outcomes(&SuiteRunner::new().run_text(&ignoring).await), ["one: passed"]);
}

#[tokio::test]
async fn other_files_are_not_affected() {
    let runner = SuiteRunner::new();
    let files = [
        runner.file("a.mcp.yaml", &odd("never-answers", "  - {name: hangs, call: never, timeout: 1s}\n")),
        runner.file("b.mcp.yaml", &odd("exits-mid-call", "  - {name: crash, call: exit}\n")),
        runner.file("c.mcp.yaml", "server: SERVER\ntests: [{name: fine, call: test_simple_text}]"),
    ];
    let report = runner.run(&files).await;
    let passed: Vec<bool> = report.tests.iter().map(|test| test.outcome.failures().is_empty()).collect();
    assert_eq!(passed, [false, false, true], "{:?}", outcomes(&report));
}

#[tokio::test]
async fn an_era_that_the_server_lacks_is_skipped() {
    for (kind, missing) in [("legacy-only", "modern"), ("modern-only", "legacy")] {
        let text = format!("eras: [legacy, modern]\n{}", odd(kind, "  - {name: one, call: echo}\n"));
        let report = SuiteRunner::new().run_text(&text).await;
        let skipped = format!("one [{missing}]: skipped: the server does not have the {missing} era");
        assert!(outcomes(&report).contains(&skipped), "{:?}", outcomes(&report));
        assert_eq!(report.summary().passed, 1);
    }
}
