//! A process under test: starts it, sends signals, measures it, and kills it at the end.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::within_timeout;

/// A running process. Dropping it kills it.
pub struct Process {
    child: Child,
    pid: u32,
    stderr: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Terminate,
    Interrupt,
    HangUp,
    Kill,
}

/// Retries while the program is busy. A program that was just written may still be open for writing
/// in a child that another test is starting. That child closes it when it executes its own program.
fn spawn(command: &mut Command) -> std::io::Result<Child> {
    loop {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::park_timeout(Duration::from_millis(10));
            }
            spawned => return spawned,
        }
    }
}

impl Process {
    /// Starts the program with pipes for its standard streams, and collects its standard error.
    pub fn start(program: &str, arguments: &[&str]) -> (Self, ChildStdin, ChildStdout) {
        let mut command = Command::new(program);
        command.args(arguments).env_remove("TOOLYARD_TOKEN").env_remove("TOOLYARD_LOG");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = spawn(&mut command).unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut pipe = child.stderr.take().unwrap();
        let stderr = Arc::new(Mutex::new(String::new()));
        let output = Arc::clone(&stderr);
        let reading = tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
                output.lock().push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
        });
        let pid = child.id().unwrap();
        (Self { child, pid, stderr, reading: Some(reading) }, stdin, stdout)
    }

    pub fn signal(&self, signal: Signal) {
        let name = match signal {
            Signal::Terminate => "TERM",
            Signal::Interrupt => "INT",
            Signal::HangUp => "HUP",
            Signal::Kill => "KILL",
        };
        let kill = format!("kill -{name} {}", self.pid);
        let sent = std::process::Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(sent.success(), "{kill} failed");
    }

    /// Waits until the process ends. Returns the exit code, or `None` if a signal ended it.
    pub async fn exit(&mut self) -> Option<i32> {
        let code = within_timeout("the process to end", self.child.wait()).await.unwrap().code();
        if let Some(reading) = self.reading.take() {
            within_timeout("the end of standard error", reading).await.unwrap();
        }
        code
    }

    /// Returns its standard error so far, or all of it after [`Process::exit`].
    pub fn stderr(&self) -> String {
        self.stderr.lock().clone()
    }

    /// Returns the resident memory in megabytes.
    pub fn megabytes(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// Returns the peak resident memory in megabytes.
    pub fn peak_megabytes(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1024
    }

    /// Returns the number of open descriptors.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid)).unwrap().count()
    }

    pub async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }
}
