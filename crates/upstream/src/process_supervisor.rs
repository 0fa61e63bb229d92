//! The process supervisor: a small process between the yard and a server. It ends the server and
//! everything the server started as soon as the yard sends a signal or exits, even if killed. A
//! parent-death signal would miss the descendants of the server, and every server would hold an
//! inherited pipe, so the supervisor is passed the process ID of the yard and watches it.
//!
//! It must stay small: no runtime, no log, no threads.

mod terminate;
mod watch;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, WaitStatus, getpid, set_child_subreaper, setsid};

pub(crate) use terminate::{GONE, GRACE};
use watch::{ProcessWatcher, SupervisorEvent};

/// The command line of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisedCommand {
    /// The process whose exit ends the supervised program.
    pub parent_pid: u32,
    pub program: OsString,
    pub args: Vec<OsString>,
}

/// Why a program cannot be supervised.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    #[error("{CANNOT_START}{}: {error}", .program.to_string_lossy())]
    Start { program: OsString, error: io::Error },
    #[error("cannot supervise a process: {0}")]
    System(#[from] io::Error),
}

/// The prefix of the message that explains why the program was not started.
pub(crate) const CANNOT_START: &str = "cannot start ";

impl SupervisorError {
    /// Returns the exit code that shells use for this error.
    pub fn code(&self) -> u8 {
        match self {
            Self::Start { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            Self::Start { .. } | Self::System(_) => 126,
        }
    }
}

/// Runs a program with the standard streams of this process until it exits or must be ended, then
/// ends all its descendants. Returns the exit code of the program, or 128 plus the number of the
/// signal that killed it.
///
/// The calling process must do nothing else: this function takes over its signals, children and
/// standard streams.
pub fn supervise_process(supervised: &SupervisedCommand) -> Result<u8, SupervisorError> {
    // A separate session has no terminal, so Ctrl-C reaches the yard but not the servers. It also
    // marks all descendants that do not create their own. Fails for a process group leader, which
    // stays in its session.
    let _ = setsid();
    set_child_subreaper(Some(getpid())).map_err(io::Error::from)?;
    // From here on, signals are only recorded, so a started program is never left behind.
    let watch = ProcessWatcher::new(supervised.parent_pid)?;
    let mut command = Command::new(&supervised.program);
    command.args(&supervised.args).process_group(0);
    let failed = |error| SupervisorError::Start { program: supervised.program.clone(), error };
    let child = command.spawn().map_err(failed)?;
    let Some(program) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return Err(io::Error::other("the process has no ID").into());
    };
    let mut tree = terminate::ProcessTree::new(program);
    // The reader of the output must see its end when the program closes it, not when the supervisor
    // exits.
    let _ = redirect_stdio_to_null();
    // A signal or the exit of the parent ends the loop without waiting for the program.
    while tree.status().is_none() && watch.next()? == SupervisorEvent::ChildExit {
        tree.reap();
    }
    tree.terminate(&watch);
    Ok(tree.status().map_or(128 + 9, code))
}

fn code(status: WaitStatus) -> u8 {
    let code = status.exit_status().or(status.terminating_signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

fn redirect_stdio_to_null() -> io::Result<()> {
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}
