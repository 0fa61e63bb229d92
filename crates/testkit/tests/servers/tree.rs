//! Processes marked by a unique word in their arguments, so that a test can see whether any is
//! left.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use toolyard_testkit::harness::within_timeout;
use toolyard_upstream::{
    Child, CommandSettings, EnvInheritance, ProcessEnvironment, SpawnError, SupervisorCommand,
};

use super::KEPT;

/// Returns a word that no other process has in its arguments.
pub(super) fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("mark-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the ids of the processes that carry a mark.
pub(super) fn marked(mark: &str) -> Vec<u32> {
    let numbers =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let carries = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
    };
    numbers.filter(carries).collect()
}

#[track_caller]
pub(super) fn nothing_left(mark: &str) {
    assert_eq!(marked(mark), Vec::<u32>::new());
}

pub(super) async fn until_gone(mark: &str) {
    let gone = async {
        while !marked(mark).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within_timeout("the processes to be gone", gone).await;
}

pub(super) fn keeper() -> SupervisorCommand {
    SupervisorCommand {
        program: KEPT.into(),
        args: vec!["keeper".into()],
        environment: ProcessEnvironment::new(std::env::vars_os()),
    }
}

pub(super) fn command(program: &str, args: &[&str]) -> CommandSettings {
    let args = args.iter().map(|&word| word.to_owned()).collect();
    CommandSettings {
        program: program.to_owned(),
        args,
        env: BTreeMap::new(),
        cwd: None,
        inherit: EnvInheritance::AllowList,
    }
}

pub(super) fn start(program: &str, args: &[&str]) -> Result<Child, SpawnError> {
    Child::spawn(&command(program, args), &keeper())
}

/// Starts a shell with a script that sees the mark as `$1`.
pub(super) fn shell(script: &str, mark: &str) -> Child {
    start("sh", &["-c", script, "sh", mark]).unwrap()
}

/// Returns the first line.
pub(super) async fn line(from: impl AsyncRead + Unpin) -> String {
    let mut lines = BufReader::new(from).lines();
    within_timeout("a line", lines.next_line()).await.unwrap().unwrap()
}

/// A program that starts the most stubborn children: one in a session of its own, one that ignores
/// every polite signal, and an orphan that does both. It ignores such signals itself. It prints a
/// line when all are running.
pub(super) const STUBBORN: &str = r#"
import os, signal, sys, time
def wait():
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    os.write(ready, b'x')
    while True:
        time.sleep(1)
here, ready = os.pipe()
if os.fork() == 0:
    os.setsid()
    wait()
if os.fork() == 0:
    wait()
middle = os.fork()
if middle == 0:
    os.setsid()
    if os.fork() == 0:
        wait()
    os._exit(0)
os.waitpid(middle, 0)
for _ in range(3):
    os.read(here, 1)
print('ready', flush=True)
wait()
"#;

/// Starts the stubborn tree and waits until all of it runs: four processes and the keeper.
pub(super) async fn stubborn(mark: &str) -> Child {
    let mut child = start("python3", &["-c", STUBBORN, mark]).unwrap();
    let (_stdin, stdout) = child.take_streams().unwrap();
    assert_eq!(line(stdout).await, "ready");
    assert_eq!(marked(mark).len(), 5);
    child
}
