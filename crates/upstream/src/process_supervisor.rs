//! The keeper: a small process between us and a server, that ends the server and everything the server started as
//! soon as we tell it to or are gone, killed or not. A death signal would miss what the server started, and an
//! inherited pipe would be in the hands of every server; so it is told our process id and watches that.
//!
//! It is a process of its own and must stay small: no runtime, no log, no threads.

mod terminate;
mod watch;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, WaitStatus, getpid, set_child_subreaper, setsid};

pub(crate) use terminate::{GONE, GRACE};
use watch::{ProcessWatcher, SupervisorEvent};

/// What the keeper is told on its command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisedCommand {
    /// The process to outlive by no more than it takes to clean up.
    pub parent_pid: u32,
    pub program: OsString,
    pub args: Vec<OsString>,
}

/// Why there is nothing to keep.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    #[error("{CANNOT_START}{}: {error}", .program.to_string_lossy())]
    Start { program: OsString, error: io::Error },
    #[error("cannot keep a process: {0}")]
    System(#[from] io::Error),
}

/// How a line begins that tells why the program was not started.
pub(crate) const CANNOT_START: &str = "cannot start ";

impl SupervisorError {
    /// The exit code that shells give for this.
    pub fn code(&self) -> u8 {
        match self {
            Self::Start { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            Self::Start { .. } | Self::System(_) => 126,
        }
    }
}

/// Runs a program, with the standard streams of this process, until it ends or must end; then ends all that is left
/// of it. Gives the exit code of the program, or 128 and the number of the signal that killed it.
///
/// This is the whole life of the process that calls it: it takes signals, children and standard streams for itself.
pub fn supervise_process(kept: &SupervisedCommand) -> Result<u8, SupervisorError> {
    // A session of its own: no terminal, so that Ctrl-C reaches us and not the servers, and a mark on all that is
    // below unless it hides. Whoever is first in its group already is left there.
    let _ = setsid();
    set_child_subreaper(Some(getpid())).map_err(io::Error::from)?;
    // From here on a signal is noticed and not obeyed, so that nothing can be started and then be left alone.
    let watch = ProcessWatcher::new(kept.parent_pid)?;
    let mut command = Command::new(&kept.program);
    command.args(&kept.args).process_group(0);
    let started = command.spawn();
    let child = started.map_err(|error| SupervisorError::Start { program: kept.program.clone(), error })?;
    let Some(program) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return Err(io::Error::other("a process without an id").into());
    };
    let mut tree = terminate::ProcessTree::new(program);
    // Whoever reads its output must see the end of it when the program closes it, and not when we do.
    let _ = redirect_stdio_to_null();
    // Told to end, or left alone, it does not wait for the program.
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
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}
