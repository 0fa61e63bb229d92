//! Scripts as assistants write them, beside what a plain Python prints for them.

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
use super::shop::{DATA, answer, faces};

#[tokio::test]
async fn every_script_prints_what_plain_python_prints() {
    let engine = engine();
    let version = engine.ready().await.unwrap().python_version;
    let mut scripts: Vec<_> = std::fs::read_dir(DATA).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|end| end == "py") && fits(path, &version));
    scripts.sort();
    assert!(scripts.len() >= 60, "{} scripts", scripts.len());
    let compared = scripts.iter().map(|script| compared(&engine, script));
    let wrong: Vec<_> = stream::iter(compared).buffered(4).filter_map(ready).collect().await;
    engine.stop().await;
    assert!(wrong.is_empty(), "{} of {} scripts:\n{}", wrong.len(), scripts.len(), wrong.join("\n"));
}

/// What is different, if anything is.
async fn compared(engine: &Engine, script: &Path) -> Option<String> {
    let code = std::fs::read_to_string(script).unwrap();
    let ours = ours(engine, &code).await;
    let plain = tokio::task::spawn_blocking(move || plain(&code)).await.unwrap();
    (ours != plain).then(|| format!("== {}\n-- here\n{ours}\n-- plain Python\n{plain}", script.display()))
}

/// Some scripts say that they need a newer Python.
fn fits(path: &Path, version: &str) -> bool {
    let code = std::fs::read_to_string(path).unwrap();
    let Some(needed) = code.strip_prefix("# needs 3.") else { return true };
    let number = |text: &str| text.split(['.', '\n']).next().unwrap().parse::<u32>().unwrap();
    number(version.strip_prefix("3.").unwrap()) >= number(needed)
}

/// What was printed and how it ended, as one text.
async fn ours(engine: &Engine, code: &str) -> String {
    let (asked, questions) = mpsc::channel(8);
    let mut program = program(code);
    program.bindings = faces();
    let run = engine.run(program, asked, CancellationToken::new());
    let (ending, ()) = tokio::join!(run, answer(questions));
    let ProgramOutcome { printed, exit_reason: how, .. } = ending.unwrap();
    let (text, end) = (printed.text, if how == ExitReason::Finished { "fine" } else { "failed" });
    match how {
        ExitReason::Finished => format!("{text}[{end}]"),
        // Plain Python ends with that number and says nothing.
        ExitReason::Raised { traceback } if traceback == "SystemExit: 1\n" => format!("{text}[{end}]"),
        ExitReason::Raised { traceback } => format!("{text}{traceback}[{end}]"),
        other => format!("{text}{other:?}"),
    }
}

/// The same from a plain Python, with the lines of the script only.
fn plain(code: &str) -> String {
    let folder = Folder::new();
    std::fs::write(folder.0.join("<program>"), code).unwrap();
    // Both streams in one file, each at its end, so that the order is kept.
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
    let said = std::fs::read_to_string(folder.0.join("out")).unwrap();
    let said = said.replace(&format!("{}/<program>", folder.0.display()), "<program>");
    format!("{}[{}]", own_lines(&said), if status.success() { "fine" } else { "failed" })
}

/// Leaves out what a traceback says of lines that are not the script's.
fn own_lines(said: &str) -> String {
    let mut own = String::new();
    let mut skipped = None;
    for line in said.split_inclusive('\n') {
        let column =
            line.find("File \"").filter(|&at| line[..at].chars().all(|letter| " |+-".contains(letter)));
        match (column, skipped) {
            (Some(at), _) => skipped = (!line[at..].starts_with("File \"<program>\"")).then_some(at),
            (None, Some(at)) if line.get(at..).is_some_and(|rest| rest.starts_with("  ")) => {}
            (None, _) => skipped = None,
        }
        if skipped.is_none() {
            own.push_str(line);
        }
    }
    own
}

/// A folder of its own, for as long as it is needed.
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
