//! The process of a server that we start ourselves, and whatever that process starts. What is said over its streams
//! is the wire's business, and when to start it anew the supervisor's.

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
pub(crate) use tail::LineListener;
use tail::StderrTail;

/// How long what a process said last may take to be read once the process is gone.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long each step takes at most when a process is to end quickly: by itself, then asked.
const QUICK: Duration = Duration::from_millis(600);

/// How to start the process that keeps a server: this very program, with the arguments that make it a keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorCommand {
    /// Absolute, because a server may have a folder of its own.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// What servers may inherit of it; its `PATH` is where their programs are looked for.
    pub environment: ProcessEnvironment,
}

/// Why a process was not started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("program {program:?} was not found")]
    NotFound { program: String, suggestion: String },
    #[error("{} cannot be executed", .path.display())]
    NotExecutable { path: PathBuf },
    #[error("folder {} does not exist", .0.display())]
    MissingDirectory(PathBuf),
    #[error("cannot start the keeper {}: {error}", .program.display())]
    Supervisor { program: PathBuf, error: io::Error },
}

impl SpawnError {
    /// What to do about it.
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::NotFound { suggestion, .. } => Some(suggestion.clone()),
            Self::NotExecutable { path } => {
                Some(format!("chmod +x {}, or name its interpreter", path.display()))
            }
            Self::MissingDirectory(_) => Some("check `cwd`".to_owned()),
            Self::Supervisor { .. } => None,
        }
    }
}

/// A process that runs, or did. Dropping it ends it, and everything that it started.
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
    /// To end, and not to wait for what does not.
    TerminateNow,
    Kill,
}

impl Child {
    /// Starts a process. Must be called inside a runtime.
    pub fn spawn(settings: &CommandSettings, keeper: &SupervisorCommand) -> Result<Self, SpawnError> {
        check_command(settings, keeper.environment.path())?;
        let failed = |error| SpawnError::Supervisor { program: keeper.program.clone(), error };
        let mut command = Command::new(&keeper.program);
        command.args(&keeper.args).arg("--watch").arg(std::process::id().to_string());
        command.arg("--").arg(&settings.program).args(&settings.args);
        // The keeper has no use for any of it, but the server inherits what the keeper has.
        command.env_clear().envs(keeper.environment.for_server(settings));
        if let Some(cwd) = &settings.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process(command.spawn().map_err(failed)?);
        let pipes = (process.0.stdin.take(), process.0.stdout.take(), process.0.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr), Some(id)) = (pipes.0, pipes.1, pipes.2, process.0.id())
        else {
            return Err(failed(io::Error::other("its streams are missing")));
        };
        let stdin = ChildInput::new(stdin);
        let tail = Arc::new(StderrTail::default());
        let (order, orders) = watch::channel(ProcessCommand::Run);
        let (tell, fate) = watch::channel(None);
        tokio::spawn(supervise_child(process, stderr, Arc::clone(&tail), orders, tell));
        Ok(Self { id, stdin, stdout: Some(stdout), tail, command: order, exit: fate })
    }

    /// What it is spoken to over, once.
    pub fn take_streams(&mut self) -> Option<(ChildInput, ChildStdout)> {
        Some((self.stdin.clone(), self.stdout.take()?))
    }

    /// The process id of its keeper.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The last lines that it said on standard error, as they came.
    pub fn stderr_tail(&self) -> Vec<String> {
        self.tail.lines()
    }

    /// Tells every line of standard error from now on, and those that were said before.
    pub(crate) fn forward_stderr(&self, listener: LineListener) {
        self.tail.set_listener(listener);
    }

    /// Waits until it has ended, with everything that it started, and says what happened.
    pub async fn wait(&self) -> ProcessExit {
        let mut fate = self.exit.clone();
        match fate.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(fate)) => fate.clone(),
            // Only a runtime that shuts down stops looking before the end.
            Ok(None) | Err(_) => ProcessExit::unknown("was given up"),
        }
    }

    /// Ends it within two seconds, for a client that is gone: asks soon, and does not wait as long for an answer.
    pub(crate) async fn stop_quickly(&self) -> ProcessExit {
        self.stdin.close();
        for order in [ProcessCommand::Terminate, ProcessCommand::TerminateNow] {
            if let Ok(fate) = timeout(QUICK, self.wait()).await {
                return fate;
            }
            self.command.send_replace(order);
        }
        if let Ok(fate) = timeout(GONE + LAST_WORDS, self.wait()).await {
            return fate;
        }
        self.command.send_replace(ProcessCommand::Kill);
        self.wait().await
    }

    /// Ends it: closes its input, which is how a server is told that it is over, and gives it this long to go by
    /// itself; then asks, then kills everything that is left.
    pub async fn stop(&self, grace: Duration) -> ProcessExit {
        self.stdin.close();
        if let Ok(fate) = timeout(grace, self.wait()).await {
            return fate;
        }
        self.command.send_replace(ProcessCommand::Terminate);
        if let Ok(fate) = timeout(GRACE + GONE + LAST_WORDS, self.wait()).await {
            return fate;
        }
        self.command.send_replace(ProcessCommand::Kill);
        self.wait().await
    }
}

/// The keeper. However it is let go of, it is told first.
#[derive(Debug)]
struct Process(tokio::process::Child);

impl Process {
    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.0.id()?).ok()?)
    }

    fn signal(&self, signal: Signal) {
        // There is an id only until the end was noticed, so that this cannot hit another process.
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

/// Listens to a process and obeys orders about it until it is gone.
async fn supervise_child(
    mut process: Process,
    stderr: ChildStderr,
    tail: Arc<StderrTail>,
    mut orders: watch::Receiver<ProcessCommand>,
    tell: watch::Sender<Option<ProcessExit>>,
) {
    let session = process.pid();
    let listening = tail.fill(stderr);
    tokio::pin!(listening);
    let (mut heard, mut alone) = (false, false);
    let status = loop {
        tokio::select! {
            status = process.0.wait() => break status,
            () = &mut listening, if !heard => heard = true,
            changed = orders.changed(), if !alone => {
                let order = *orders.borrow_and_update();
                // Nobody is left who could say more.
                alone = changed.is_err();
                match order {
                    ProcessCommand::Kill => process.signal(Signal::KILL),
                    // Told a second time, a keeper does not wait any longer.
                    ProcessCommand::Terminate | ProcessCommand::TerminateNow => process.signal(Signal::TERM),
                    ProcessCommand::Run if alone => process.signal(Signal::TERM),
                    ProcessCommand::Run => {}
                }
            }
        }
    };
    let keeper_was_killed = !matches!(&status, Ok(status) if status.code().is_some());
    if keeper_was_killed && let Some(session) = session {
        // Then what it kept is still there, in the session that it made.
        let _ = tokio::task::spawn_blocking(move || kill_session(session)).await;
    }
    if !heard {
        let _ = timeout(LAST_WORDS, listening).await;
    }
    tell.send_replace(Some(describe_exit(status, tail.lines().last())));
}

fn kill_session(session: Pid) {
    for pid in session_members(session) {
        let _ = kill_process(pid, Signal::KILL);
    }
}
