//! Every step and every assertion against the conformance fixture, in both eras.

use tokio::io::{AsyncBufReadExt, BufReader};
use toolyard_testkit::harness::{Process, within_timeout};

use super::{FIXTURE, SuiteRunner, assert_passed, outcomes, run};

const STEPS: &str = r#"
server: SERVER
eras: [legacy, modern]
log_level: debug
vars: {name: Ada}
setup:
  - {read: "test://static-text", capture: {static: "$.contents[0].text"}}
tests:
  - name: text and structure
    call: test_simple_text
    expect:
      text: This is a simple text response for testing.
      jsonpath:
        "$.content[0].type": text
        "$.content[*].type": [text]
        "$.content[1]": {exists: false}
      result: {type: object, schema: {required: [content]}}
      latency: 10s
      size: 10kB
  - {name: a tool that fails, call: test_error_handling, expect: {isError: true, text: {contains: intentionally}}}
  - {name: progress, call: test_tool_with_progress, expect: {progress: {count: 3, last: 100, messages: {in_order: [Started, Completed]}}}}
  - {name: log, call: test_tool_with_logging, expect: {log: [{level: info, data: {contains: processing}, count: 1}, {count: 3}]}}
  - {name: a resource, read: "test://static-text", expect: {text: "${static}"}}
  - {name: no such resource, read: "test://nothing", expect: {error: true}}
  - {name: an unknown tool, call: nope, expect: {error: {code: -32602, message: {matches: "nope"}}}}
  - name: a prompt
    prompt: test_prompt_with_arguments
    arguments: {arg1: "${name}", arg2: x}
    expect: {text: {contains: Ada}}
  - name: a completion
    complete: {prompt: test_prompt_with_arguments, argument: arg1, value: ""}
    expect: {names: {type: array}}
  - {name: lists, list: tools, expect: {names: {contains: [test_simple_text, test_sampling]}, jsonpath: {"$.tools[*].name": {length: {min: 10}}}}}
  - name: a captured value
    steps:
      - {call: json_schema_2020_12_tool, arguments: {name: Bob, contactMethod: email, email: "a@b.c"}, expect: {json: {jsonpath: {"$.name": Bob}}},
         capture: {whole: {matches: '"name":"(\w+)"'}, mail: {json: $.email}}}
      - {call: test_x_mcp_header, arguments: {region: "${whole} ${mail}"}, expect: {text: "Region: Bob a@b.c"}}
  - name: list changes
    steps:
      - {subscribe: true}
      - {call: test_trigger_tool_change}
      - {wait: {notification: notifications/tools/list_changed}, timeout: 10s}
      - {call: test_trigger_tool_change}
      - {wait: {notification: notifications/tools/list_changed}, timeout: 10s}
  - name: a subscription
    steps:
      - {subscribe: "test://watched-resource"}
      - {unsubscribe: "test://watched-resource"}
  - name: cancellation
    steps:
      - {cancel: {call: test_tool_with_progress, after: 20ms}}
      - {call: test_simple_text}
  - name: another connection
    steps:
      - {reconnect: true}
      - {call: test_simple_text}
  - {name: only legacy, only: {era: legacy}, call: test_simple_text}
"#;

#[tokio::test]
async fn every_step_works_in_both_eras() {
    let report = run(STEPS).await;
    assert_passed(&report, 31);
    assert_eq!(report.summary().skipped, 1, "{:?}", outcomes(&report));
    let coverage = &report.coverage.servers;
    assert_eq!(coverage.len(), 1);
    assert!(coverage.values().all(|tools| tools["test_error_handling"].had_error));
}

#[tokio::test]
async fn every_step_works_over_http() {
    let (mut process, _stdin, stdout) = Process::start(FIXTURE, &[]);
    let mut lines = BufReader::new(stdout).lines();
    let url = within_timeout("the address", lines.next_line()).await.unwrap().unwrap();
    let report = run(&STEPS.replace("SERVER", &format!("{{url: \"{url}\"}}"))).await;
    process.kill().await;
    assert_passed(&report, 31);
}

#[tokio::test]
async fn failures_say_what_was_expected_and_where() {
    let text = "server: SERVER\ntests:\n  - name: wrong\n    call: test_simple_text\n    expect:\n      text: something else\n\
                \x20     jsonpath:\n        $.content: {length: 2}\n      structured: {exists: true}\n";
    let report = run(text).await;
    let failures = report.tests[0].outcome.failures();
    let places: Vec<(usize, &str)> =
        failures.iter().map(|failure| (failure.at.line, failure.message.as_str())).collect();
    assert_eq!(
        places,
        [(6, "text is not equal"), (8, "$.content has the length 1"), (9, "structured is missing")]
    );
    assert_eq!(failures[0].expected.as_deref(), Some("\"something else\""));
    assert_eq!(failures[0].actual.as_deref(), Some("\"This is a simple text response for testing.\""));
}

#[tokio::test]
async fn snapshots_are_written_compared_and_shared_by_the_eras() {
    let text = "server: SERVER\neras: [legacy, modern]\ntests:\n  - {name: stored, call: test_multiple_content_types, \
                expect: {snapshot: true}}\n";
    let mut runner = SuiteRunner::new();
    runner.options.snapshots = toolyard_suite::SnapshotMode::ReadOnly;
    let report = runner.run_text(text).await;
    assert_eq!(report.summary().failed, 2, "{:?}", outcomes(&report));
    runner.options.snapshots = toolyard_suite::SnapshotMode::WriteMissing;
    let report = runner.run_text(text).await;
    assert_passed(&report, 2);
    assert_eq!(report.written_snapshots, 1);
    let stored = std::fs::read_to_string(runner.folder().join("__snapshots__/a/stored.snap.yaml")).unwrap();
    assert!(stored.starts_with("# Snapshot of: stored\ncontent:\n"), "{stored}");

    runner.options.snapshots = toolyard_suite::SnapshotMode::ReadOnly;
    let other = text.replace("test_multiple_content_types", "test_simple_text");
    let report = runner.run_text(&other).await;
    assert_eq!(report.summary().failed, 2);
    assert!(report.tests[0].outcome.failures()[0].diff.as_deref().unwrap().contains("- "));
    runner.options.snapshots = toolyard_suite::SnapshotMode::Update;
    let report = runner.run_text(&other.replace("name: stored", "name: renamed")).await;
    assert_passed(&report, 2);
    assert_eq!(report.removed_snapshots.len(), 1);
}

#[tokio::test]
async fn files_are_copied_fresh_and_checked() {
    let runner = SuiteRunner::new();
    std::fs::create_dir(runner.folder().join("data")).unwrap();
    std::fs::write(runner.folder().join("data/a.json"), "{\"n\": [1, 2]}").unwrap();
    let text = r#"
server: {command: sh, args: [-c, "cd ${FIXTURES} && echo changed > b.txt && exec ${env:FIXTURE} stdio"]}
fixtures: data
tests:
  - name: files
    isolate: true
    call: test_simple_text
    expect:
      files:
        a.json: {json: {jsonpath: {"$.n": {order: ascending, length: 2}}}}
        b.txt: {content: "changed\n"}
        c.txt: {exists: false}
  - name: wrong
    call: test_simple_text
    expect: {files: {a.json: {exists: false}, c.txt: {content: {contains: x}}}}
"#;
    let mut runner = runner;
    let environment = [("FIXTURE".to_owned(), FIXTURE.to_owned())];
    runner.options.environment = std::sync::Arc::new(environment.into());
    let report = runner.run_text(text).await;
    assert_eq!(
        outcomes(&report),
        ["files: passed", "wrong: failed: the file a.json must not exist | the file c.txt does not exist"]
    );
    assert!(!runner.folder().join("data/b.txt").exists());
    assert_eq!(std::fs::read_dir(&runner.options.temporary).unwrap().count(), 0);
}

#[tokio::test]
async fn differences_between_the_eras_are_reported() {
    let text = "server: SERVER\neras: [legacy, modern]\ntests:\n  - {name: same, call: test_simple_text}\n  - {name: differs, \
                call: test_x_mcp_header, arguments: {region: \"${era}\"}}\n";
    let report = run(text).await;
    assert_passed(&report, 4);
    let names: Vec<&str> =
        report.differences.iter().map(|difference| difference.label.name.as_str()).collect();
    assert_eq!(names, ["differs"]);
    assert!(report.differences[0].diff.contains("Region: legacy"), "{}", report.differences[0].diff);
}
