//! Runs typical scripts of assistants and compares their output with that of plain Python.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::ready;
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolyard_program::{Engine, ExitReason, ProgramOutcome};

use super::fixture::{engine, program, python};
use super::shop::{DATA, answer, bindings};

#[tokio::test]
async fn every_script_prints_what_plain_python_prints() {
    let engine = engine();
    let version = engine.ready().await.unwrap().python_version;
    let mut scripts: Vec<_> = std::fs::read_dir(DATA).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|end| end == "py") && fits(path, &version));
    scripts.sort();
    assert!(scripts.len() >= 60, "{} scripts", scripts.len());
    let comparisons = scripts.iter().map(|script| compare(&engine, script));
    let failures: Vec<_> = stream::iter(comparisons).buffered(4).filter_map(ready).collect().await;
    engine.stop().await;
    assert!(failures.is_empty(), "{} of {} scripts:\n{}", failures.len(), scripts.len(), failures.join("\n"));
}

/// Returns the difference between the engine and plain Python, if there is one.
async fn compare(engine: &Engine, script: &Path) -> Option<String> {
    let code = std::fs::read_to_string(script).unwrap();
    let actual = run_in_engine(engine, &code).await;
    let expected = tokio::task::spawn_blocking(move || run_plain(&code)).await.unwrap();
    (actual != expected)
        .then(|| format!("== {}\n-- engine\n{actual}\n-- plain Python\n{expected}", script.display()))
}

/// Returns whether Python is new enough for a script.
fn fits(path: &Path, version: &str) -> bool {
    let code = std::fs::read_to_string(path).unwrap();
    let Some(needed) = code.strip_prefix("# needs 3.") else { return true };
    let number = |text: &str| text.split(['.', '\n']).next().unwrap().parse::<u32>().unwrap();
    number(version.strip_prefix("3.").unwrap()) >= number(needed)
}

/// Runs a script in the engine. Returns its output and how it ended as one text.
async fn run_in_engine(engine: &Engine, code: &str) -> String {
    let (sender, questions) = mpsc::channel(8);
    let mut program = program(code);
    program.bindings = bindings();
    let run = engine.run(program, sender, CancellationToken::new());
    let (ending, ()) = tokio::join!(run, answer(questions));
    let ProgramOutcome { printed, exit_reason, .. } = ending.unwrap();
    let (text, end) = (printed.text, if exit_reason == ExitReason::Finished { "fine" } else { "failed" });
    match exit_reason {
        ExitReason::Finished => format!("{text}[{end}]"),
        // Plain Python exits with that status and prints nothing.
        ExitReason::Raised { traceback } if traceback == "SystemExit: 1\n" => format!("{text}[{end}]"),
        ExitReason::Raised { traceback } => format!("{text}{traceback}[{end}]"),
        other => format!("{text}{other:?}"),
    }
}

/// Runs a script in plain Python. Removes lines of other files from tracebacks.
fn run_plain(code: &str) -> String {
    let folder = Folder::new();
    std::fs::write(folder.0.join("<program>"), code).unwrap();
    // Both streams append to one file, which keeps their order.
    let out = File::options().create(true).append(true).open(folder.0.join("out")).unwrap();
    let status = Command::new(python())
        .args(["-u", "-B", "-X", "utf8"])
        .arg(format!("{DATA}/plain/top_level.py"))
        .arg("<program>")
        .current_dir(&folder.0)
        .env_clear()
        .env("PYTHONPATH", format!("{DATA}/plain"))
        .stdin(Stdio::null())
        .stderr(out.try_clone().unwrap())
        .stdout(out)
        .status()
        .unwrap();
    let output = std::fs::read_to_string(folder.0.join("out")).unwrap();
    let output = output.replace(&format!("{}/<program>", folder.0.display()), "<program>");
    format!("{}[{}]", script_lines(&output), if status.success() { "fine" } else { "failed" })
}

/// Removes the entries of tracebacks that are not lines of the script.
fn script_lines(output: &str) -> String {
    let mut lines = String::new();
    let mut skipped = None;
    for line in output.split_inclusive('\n') {
        let column = line
            .find("File \"")
            .filter(|&column| line[..column].chars().all(|character| " |+-".contains(character)));
        match (column, skipped) {
            (Some(column), _) => {
                skipped = (!line[column..].starts_with("File \"<program>\"")).then_some(column);
            }
            (None, Some(column)) if line.get(column..).is_some_and(|rest| rest.starts_with("  ")) => {}
            (None, _) => skipped = None,
        }
        if skipped.is_none() {
            lines.push_str(line);
        }
    }
    lines
}

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("toolyard-plain-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}
