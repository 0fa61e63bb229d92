//! `toolyard test` as a process: exit codes, output, reports, and how it ends. The server under test
//! is the demo yard.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use toolyard_testkit::harness::{PATIENCE, Scratch};

use super::{TOOLYARD, processes};

/// The result of a command.
#[derive(Debug)]
struct TestRun {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// A folder with test files. `SERVER` in a file stands for the demo yard.
struct TestFolder(Scratch);

impl TestFolder {
    fn new(text: &str) -> Self {
        let folder = Self(Scratch::new());
        folder.write("tests/a.mcp.yaml", text);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.replace("SERVER", &format!("{{command: {TOOLYARD}, args: [stdio]}}"))).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(TOOLYARD);
        command.arg("test").args(arguments).current_dir(self.path(""));
        for name in ["CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"] {
            command.env_remove(name);
        }
        let home = self.path("");
        command
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", &home)
            .env("XDG_DATA_HOME", &home)
            .env("TMPDIR", &home);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str]) -> TestRun {
        finish(self.command(arguments)).await
    }
}

async fn finish(mut command: Command) -> TestRun {
    let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("the run ends").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    TestRun { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

const GOOD: &str = "server: SERVER\neras: [legacy, modern]\ntests:\n\
                    \x20 - {name: adds, call: add, arguments: {a: 2, b: 3}, expect: {structured: {equals: {sum: 5}}}}\n\
                    \x20 - {name: lists, list: tools, expect: {names: {contains: add}}}\n";
const BAD: &str = "server: SERVER\ntests:\n\
                   \x20 - {name: adds, call: add, arguments: {a: 2, b: 3}}\n\
                   \x20 - name: adds wrongly\n    call: add\n    arguments: {a: 2, b: 3}\n    expect:\n      structured: {equals: {sum: 6}}\n";

#[tokio::test]
async fn a_run_that_passes_is_quiet() {
    let run = TestFolder::new(GOOD).run(&[]).await;
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stdout.starts_with("4 passed, 0 failed in "), "{run:?}");
    assert_eq!(run.stdout.lines().count(), 1);
}

#[tokio::test]
async fn a_failure_says_where_and_exits_with_8() {
    let run = TestFolder::new(BAD).run(&["tests/a.mcp.yaml"]).await;
    assert_eq!(run.code, Some(8), "{run:?}");
    for part in
        ["FAIL ", "tests/a.mcp.yaml:8:20: structured is not equal", "-   \"sum\": 6", "+   \"sum\": 5"]
    {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert!(run.stdout.contains("1 passed, 1 failed in "), "{run:?}");
}

#[tokio::test]
async fn all_mistakes_in_a_file_are_reported() {
    let folder = TestFolder::new(
        "server: SERVER\ntimeout: 5\ntests:\n  - name: a\n    cal: add\n  - name: a\n    call: add\n    expect:\n      jsonpath: {\"$[\": 1}\n",
    );
    folder.write("tests/b.mcp.yaml", "tests: [\n");
    let run = folder.run(&[]).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    for part in [
        "error: tests/a.mcp.yaml:2:10: expected a duration with its unit",
        "tests/a.mcp.yaml:5:5: unknown key `cal`",
        "5 |     cal: add\n",
        "hint: did you mean `call`?",
        "tests/a.mcp.yaml:9:18: invalid JSONPath",
        "tests/b.mcp.yaml:",
        "mistakes in the test files; no test was run",
    ] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
}

#[tokio::test]
async fn nothing_to_run_is_a_failure() {
    let folder = TestFolder::new(GOOD);
    let run = folder.run(&["--filter", "nothing"]).await;
    assert_eq!(run.code, Some(8));
    assert!(run.stderr.contains("no test ran") && run.stderr.contains("--list"), "{run:?}");
    let run = folder.run(&["no/such/folder"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    fs::create_dir(folder.path("empty")).unwrap();
    let run = folder.run(&["empty"]).await;
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("there are no test files (*.mcp.yaml) in empty"), "{run:?}");
}

#[tokio::test]
async fn every_report_is_written() {
    let folder = TestFolder::new(BAD);
    let formats = ["json", "junit", "tap", "github", "html"];
    let options: Vec<String> =
        formats.iter().map(|format| format!("--report={format}=report.{format}")).collect();
    let run = folder.run(&options.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(run.code, Some(8), "{run:?}");
    for (format, part) in
        formats.iter().zip(["\"failed\": 1", "failures=\"1\"", "not ok 2", "<details>", "<svg"])
    {
        let text = fs::read_to_string(folder.path(&format!("report.{format}"))).unwrap();
        assert!(text.contains(part) && text.contains("adds wrongly"), "{format}: {text}");
    }
    let run = folder.run(&["--report", "junit=no/such/folder/x.xml"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    let run = folder.run(&["--report", "xml=x.xml"]).await;
    assert!(run.code == Some(2) && run.stderr.contains("`xml` is not one of json, junit"), "{run:?}");
}

#[tokio::test]
async fn github_gets_annotations_and_a_summary() {
    let folder = TestFolder::new(BAD);
    fs::write(folder.path("summary.md"), "before\n").unwrap();
    let mut command = folder.command(&[]);
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", folder.path("summary.md"));
    let run = finish(command).await;
    let annotation =
        "\n::error file=tests/a.mcp.yaml,line=8,col=20,title=adds wrongly (failed)::tests/a.mcp.yaml:8:20: ";
    assert!(run.stdout.contains(annotation), "{}", run.stdout);
    let summary = fs::read_to_string(folder.path("summary.md")).unwrap();
    assert!(summary.starts_with("before\n## ❌ MCP tests: 1 passed, 1 failed"), "{summary}");
}

#[tokio::test]
async fn ci_writes_no_snapshots() {
    let text = "server: SERVER\ntests: [{name: stored, call: add, arguments: {a: 1, b: 1}, expect: {snapshot: true}}]";
    let folder = TestFolder::new(text);
    let mut command = folder.command(&[]);
    command.env("CI", "true");
    let run = finish(command).await;
    assert!(run.code == Some(8) && run.stdout.contains("there is no snapshot"), "{run:?}");
    let run = folder.run(&[]).await;
    assert!(run.code == Some(0) && run.stdout.contains("wrote 1 snapshot"), "{run:?}");
    let run = folder.run(&["--ci"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    folder.write("tests/a.mcp.yaml", &text.replace("b: 1", "b: 2"));
    let run = folder.run(&[]).await;
    assert!(run.code == Some(8) && run.stdout.contains("differs from the snapshot"), "{run:?}");
    let run = folder.run(&["--update"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    folder.write("tests/a.mcp.yaml", &text.replace("name: stored", "name: renamed"));
    let run = folder.run(&[]).await;
    assert!(
        run.stdout.contains("no test uses the snapshot") && run.stdout.contains("stored.snap.yaml"),
        "{run:?}"
    );
}

#[tokio::test]
async fn servers_come_from_the_configuration_or_the_command_line() {
    let folder = TestFolder::new("server: math\ntests: [{name: adds, call: add, arguments: {a: 1, b: 1}}]");
    folder.write(
        "toolyard.toml",
        &format!("[servers.math]\ncommand = {TOOLYARD:?}\nargs = [\"stdio\"]\ncwd = \"tests\"\n"),
    );
    let run = folder.run(&[]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = folder.run(&["--server", "maths"]).await;
    assert!(run.code == Some(2) && run.stderr.contains("did you mean `math`?"), "{run:?}");
    folder.write("tests/a.mcp.yaml", "tests: [{name: adds, call: add, arguments: {a: 1, b: 1}}]");
    let run = folder.run(&[]).await;
    assert!(run.code == Some(8) && run.stdout.contains("the file names no server"), "{run:?}");
    let run = folder.run(&["--server", "math"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    // In the folder of the configuration, the server would use it too.
    let command = format!("cd tests && exec {TOOLYARD} stdio");
    let run = folder.run(&["tests", "--", "sh", "-c", &command]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[tokio::test]
async fn tests_are_listed_and_sharded() {
    let folder = TestFolder::new(GOOD);
    let run = folder.run(&["--list"]).await;
    assert_eq!(
        run.stdout,
        "tests/a.mcp.yaml:4\tadds [legacy]\ntests/a.mcp.yaml:5\tlists [legacy]\ntests/a.mcp.yaml:4\tadds [modern]\ntests/a.mcp.yaml:5\tlists [modern]\n"
    );
    let run = folder.run(&["--list", "--json", "--shard", "2/2", "--era", "modern"]).await;
    let listed: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(listed[0]["name"], "lists");
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let run = folder.run(&["--shard", "3/2"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
}

#[tokio::test]
async fn coverage_is_shown_and_required() {
    let folder = TestFolder::new(GOOD);
    let run = folder.run(&["--coverage", "--fail-under", "1"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("coverage: ") && run.stdout.contains("not called"), "{run:?}");
    let run = folder.run(&["--fail-under", "99"]).await;
    assert!(run.code == Some(8) && run.stderr.contains("which is less than 99 %"), "{run:?}");
    let run = folder.run(&["--json"]).await;
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["summary"]["passed"], 4);
    assert_eq!(report["coverage"]["tools"]["covered"], 1);
}

/// A file whose only test waits for a minute, and a name that its server process carries.
fn endless(marker: &str) -> String {
    format!(
        "server: {{command: sh, args: [-c, \"exec {TOOLYARD} stdio\", {marker}]}}\ntests:\n\
         \x20 - {{name: waits, wait: {{notification: notifications/never}}, timeout: 60s}}\n\
         \x20 - {{name: later, call: add}}\n"
    )
}

async fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn ctrl_c_ends_the_servers_and_writes_the_reports() {
    let folder = TestFolder::new("");
    let marker = folder.path("interrupted").to_string_lossy().into_owned();
    // The shell keeps its arguments as long as it does not replace itself.
    folder.write("tests/a.mcp.yaml", &endless(&marker).replace("exec ", ""));
    let mut command = folder.command(&["--report", "json=r.json", "--report", "junit=r.xml"]);
    let running = command.spawn().unwrap();
    wait_until("the server starts", || processes(&marker) > 0).await;
    let pid = rustix_pid(&running);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = tokio::time::timeout(PATIENCE, running.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let report = read_json(&folder.path("r.json"));
    assert_eq!(report["interrupted"], true);
    assert_eq!(report["summary"]["not_run"], 2);
    assert!(fs::read_to_string(folder.path("r.xml")).unwrap().contains("the run was interrupted"));
    wait_until("the server ends", || processes(&marker) == 0).await;
}

fn rustix_pid(child: &tokio::process::Child) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap()
}

#[tokio::test]
async fn a_killed_run_leaves_no_process() {
    let folder = TestFolder::new("");
    let marker = folder.path("killed").to_string_lossy().into_owned();
    folder.write("tests/a.mcp.yaml", &endless(&marker).replace("exec ", ""));
    let mut running = folder.command(&[]).spawn().unwrap();
    wait_until("the server starts", || processes(&marker) > 0).await;
    running.start_kill().unwrap();
    running.wait().await.unwrap();
    wait_until("the server ends", || processes(&marker) == 0).await;
}

#[tokio::test]
async fn two_runs_at_once_do_not_disturb_each_other() {
    let text = "server: {command: sh, args: [-c, \"test ! -e ${FIXTURES}/mine && touch ${FIXTURES}/mine && exec TOOL stdio\"]}\n\
                fixtures: data\ntests: [{name: adds, call: add, arguments: {a: 1, b: 1}, expect: {files: {mine: {}, f.txt: {}}}}]";
    let folder = TestFolder::new(&text.replace("TOOL", TOOLYARD));
    folder.write("tests/data/f.txt", "");
    let (left, right) = tokio::join!(folder.run(&[]), folder.run(&[]));
    assert_eq!((left.code, right.code), (Some(0), Some(0)), "{left:?} {right:?}");
    let left_behind: Vec<_> =
        fs::read_dir(folder.path("")).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(
        left_behind.iter().all(|name| !name.to_string_lossy().starts_with("toolyard-test-")),
        "{left_behind:?}"
    );
}

#[tokio::test]
async fn watch_runs_again_after_a_change() {
    let folder = TestFolder::new(GOOD);
    let mut command = folder.command(&["--watch"]);
    let mut running = command.spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let mut notes = BufReader::new(running.stderr.take().unwrap()).lines();
    let next = tokio::time::timeout(PATIENCE, lines.next_line());
    assert!(next.await.unwrap().unwrap().unwrap().starts_with("4 passed, 0 failed"));
    let note = tokio::time::timeout(PATIENCE, notes.next_line()).await.unwrap().unwrap().unwrap();
    assert!(note.contains("waiting for changes"), "{note}");
    folder.write("tests/a.mcp.yaml", BAD);
    loop {
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        if line.starts_with("1 passed, 1 failed") {
            break;
        }
    }
    rustix::process::kill_process(rustix_pid(&running), rustix::process::Signal::INT).unwrap();
    let status = tokio::time::timeout(PATIENCE, running.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(130));
}
