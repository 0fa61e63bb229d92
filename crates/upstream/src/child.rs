//! The process of a server that the yard starts, with everything that process starts. The protocol
//! on its streams belongs to the wire crate, and restarts belong to `supervise`.

mod exit;
mod find;
mod input;
mod tail;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{ChildStderr, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::environment::ProcessEnvironment;
use crate::process_supervisor::{GONE, GRACE};
use crate::processes::session_members;
use crate::settings::CommandSettings;
pub use exit::ProcessExit;
use exit::describe_exit;
pub use find::check_command;
pub use input::ChildInput;
pub use tail::LineListener;
use tail::StderrTail;

/// How long to read the remaining output of a process that has exited.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Time limit of each step of a quick stop: exiting on its own, then after a signal.
const QUICK: Duration = Duration::from_millis(600);

/// How to start the process supervisor of a server: this executable with the arguments that select
/// that role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorCommand {
    /// An absolute path, because a server may have its own working directory.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The environment that servers inherit from. Programs are looked up in its `PATH`.
    pub environment: ProcessEnvironment,
}

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("program {program:?} was not found")]
    NotFound { program: String, suggestion: String },
    #[error("{} is not executable", .path.display())]
    NotExecutable { path: PathBuf },
    #[error("directory {} does not exist", .0.display())]
    MissingDirectory(PathBuf),
    #[error("cannot start the process supervisor {}: {error}", .program.display())]
    Supervisor { program: PathBuf, error: io::Error },
}

impl SpawnError {
    /// Returns what the user can do about it, if anything.
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::NotFound { suggestion, .. } => Some(suggestion.clone()),
            Self::NotExecutable { path } => {
                Some(format!("run `chmod +x {}`, or start it with its interpreter", path.display()))
            }
            Self::MissingDirectory(_) => Some("check `cwd`".to_owned()),
            Self::Supervisor { .. } => None,
        }
    }
}

/// A server process, running or ended. Dropping it ends the process and everything it started.
#[derive(Debug)]
pub struct Child {
    id: u32,
    stdin: ChildInput,
    stdout: Option<ChildStdout>,
    tail: Arc<StderrTail>,
    command: watch::Sender<ProcessCommand>,
    exit: watch::Receiver<Option<ProcessExit>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessCommand {
    Run,
    Terminate,
    /// Terminate without the grace period.
    TerminateNow,
    Kill,
}

impl Child {
    /// Starts a process. Must be called inside a runtime.
    pub fn spawn(settings: &CommandSettings, supervisor: &SupervisorCommand) -> Result<Self, SpawnError> {
        check_command(settings, supervisor.environment.path())?;
        let failed = |error| SpawnError::Supervisor { program: supervisor.program.clone(), error };
        let mut command = Command::new(&supervisor.program);
        command.args(&supervisor.args).arg("--watch").arg(std::process::id().to_string());
        command.arg("--").arg(&settings.program).args(&settings.args);
        // The server inherits the environment of the supervisor, which needs none of it.
        command.env_clear().envs(supervisor.environment.for_server(settings));
        if let Some(cwd) = &settings.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process(command.spawn().map_err(failed)?);
        let pipes = (process.0.stdin.take(), process.0.stdout.take(), process.0.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr), Some(id)) = (pipes.0, pipes.1, pipes.2, process.0.id())
        else {
            return Err(failed(io::Error::other("the process has no standard streams")));
        };
        let stdin = ChildInput::new(stdin);
        let tail = Arc::new(StderrTail::default());
        let (command, commands) = watch::channel(ProcessCommand::Run);
        let (exit_sender, exit) = watch::channel(None);
        tokio::spawn(supervise_child(process, stderr, Arc::clone(&tail), commands, exit_sender));
        Ok(Self { id, stdin, stdout: Some(stdout), tail, command, exit })
    }

    /// Returns standard input and output. Can be called once.
    pub fn take_streams(&mut self) -> Option<(ChildInput, ChildStdout)> {
        Some((self.stdin.clone(), self.stdout.take()?))
    }

    /// Returns the process ID of the process supervisor.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the last lines that the process wrote to standard error, unchanged.
    pub fn stderr_tail(&self) -> Vec<String> {
        self.tail.lines()
    }

    /// Passes every line of standard error to the listener, starting with those already buffered.
    pub fn forward_stderr(&self, listener: LineListener) {
        self.tail.set_listener(listener);
    }

    /// Waits until the process and everything it started have ended.
    pub async fn wait(&self) -> ProcessExit {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(exit)) => exit.clone(),
            // The watching task ends early only when the runtime shuts down.
            Ok(None) | Err(_) => ProcessExit::unknown("was abandoned"),
        }
    }

    /// Ends the process within about two seconds, for a client that is gone: signals early and
    /// shortens the grace period.
    pub(crate) async fn stop_quickly(&self) -> ProcessExit {
        self.stdin.close();
        for command in [ProcessCommand::Terminate, ProcessCommand::TerminateNow] {
            if let Ok(exit) = timeout(QUICK, self.wait()).await {
                return exit;
            }
            self.command.send_replace(command);
        }
        if let Ok(exit) = timeout(GONE + LAST_WORDS, self.wait()).await {
            return exit;
        }
        self.command.send_replace(ProcessCommand::Kill);
        self.wait().await
    }

    /// Ends the process: closes its standard input, waits up to `grace` for it to exit, then sends
    /// a signal, then kills everything that is left.
    pub async fn stop(&self, grace: Duration) -> ProcessExit {
        self.stdin.close();
        if let Ok(exit) = timeout(grace, self.wait()).await {
            return exit;
        }
        self.command.send_replace(ProcessCommand::Terminate);
        if let Ok(exit) = timeout(GRACE + GONE + LAST_WORDS, self.wait()).await {
            return exit;
        }
        self.command.send_replace(ProcessCommand::Kill);
        self.wait().await
    }
}

/// The process supervisor. It is sent a signal when this is dropped.
#[derive(Debug)]
struct Process(tokio::process::Child);

impl Process {
    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.0.id()?).ok()?)
    }

    fn signal(&self, signal: Signal) {
        // The ID exists only until the exit is noticed, so this cannot hit another process.
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
    }
}

/// Reads the standard error of a process and carries out commands until it has ended.
async fn supervise_child(
    mut process: Process,
    stderr: ChildStderr,
    tail: Arc<StderrTail>,
    mut commands: watch::Receiver<ProcessCommand>,
    exit: watch::Sender<Option<ProcessExit>>,
) {
    let session = process.pid();
    let reading = tail.fill(stderr);
    tokio::pin!(reading);
    let (mut stderr_closed, mut orphaned) = (false, false);
    let status = loop {
        tokio::select! {
            status = process.0.wait() => break status,
            () = &mut reading, if !stderr_closed => stderr_closed = true,
            changed = commands.changed(), if !orphaned => {
                let command = *commands.borrow_and_update();
                orphaned = changed.is_err();
                match command {
                    ProcessCommand::Kill => process.signal(Signal::KILL),
                    // The second signal ends the grace period of the supervisor.
                    ProcessCommand::Terminate | ProcessCommand::TerminateNow => process.signal(Signal::TERM),
                    ProcessCommand::Run if orphaned => process.signal(Signal::TERM),
                    ProcessCommand::Run => {}
                }
            }
        }
    };
    let supervisor_was_killed = !matches!(&status, Ok(status) if status.code().is_some());
    if supervisor_was_killed && let Some(session) = session {
        // Its processes are still running, in the session that it created.
        let _ = tokio::task::spawn_blocking(move || kill_session(session)).await;
    }
    if !stderr_closed {
        let _ = timeout(LAST_WORDS, reading).await;
    }
    exit.send_replace(Some(describe_exit(status, tail.lines().last())));
}

fn kill_session(session: Pid) {
    for pid in session_members(session) {
        let _ = kill_process(pid, Signal::KILL);
    }
}
