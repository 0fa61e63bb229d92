//! The events that the process supervisor waits for: the exit of its parent, a signal, and the exit
//! of a child.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// The interval for polling the parent where pidfds are not available.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SupervisorEvent {
    /// A child may have exited.
    ChildExit,
    /// A signal requests termination.
    TerminationSignal,
    /// The parent process has exited.
    ParentExit,
}

#[derive(Debug)]
pub(super) struct ProcessWatcher {
    parent: Option<Pid>,
    parent_exit: Option<OwnedFd>,
    children: UnixStream,
    signals: UnixStream,
}

impl ProcessWatcher {
    pub(super) fn new(parent: u32) -> io::Result<Self> {
        let (children, child_sender) = UnixStream::pair()?;
        pipe::register(SIGCHLD, child_sender)?;
        let (signals, signal_sender) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            pipe::register(signal, signal_sender.try_clone()?)?;
        }
        children.set_nonblocking(true)?;
        signals.set_nonblocking(true)?;
        let parent = i32::try_from(parent).ok().and_then(Pid::from_raw);
        // Old kernels and strict sandboxes do not provide pidfds; the parent is then polled.
        let parent_exit = parent.and_then(|parent| pidfd_open(parent, PidfdFlags::empty()).ok());
        Ok(Self { parent, parent_exit, children, signals })
    }

    /// Waits for the next event.
    pub(super) fn next(&self) -> io::Result<SupervisorEvent> {
        loop {
            // Checked before the first wait too: the parent may have exited, and its ID may have
            // been reused, before the pidfd was opened.
            if getppid() != self.parent {
                return Ok(SupervisorEvent::ParentExit);
            }
            let mut waited = vec![readable(&self.signals), readable(&self.children)];
            waited.extend(self.parent_exit.as_ref().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
            let limit = if self.parent_exit.is_some() { None } else { Some(timespec(LOOK)) };
            wait(&mut waited, limit.as_ref())?;
            if is_ready(&waited, 0) {
                return Ok(SupervisorEvent::TerminationSignal);
            }
            if is_ready(&waited, 2) {
                return Ok(SupervisorEvent::ParentExit);
            }
            if is_ready(&waited, 1) {
                self.drain();
                return Ok(SupervisorEvent::ChildExit);
            }
        }
    }

    /// Waits until a child exits, up to `limit`.
    pub(super) fn wait_for_child(&self, limit: Duration) -> io::Result<()> {
        wait(&mut [readable(&self.children)], Some(&timespec(limit)))?;
        self.drain();
        Ok(())
    }

    /// Waits until a child exits or another signal requests termination, up to `limit`.
    pub(super) fn wait_for_child_or_signal(&self, limit: Duration) -> io::Result<SupervisorEvent> {
        let mut waited = [readable(&self.signals), readable(&self.children)];
        wait(&mut waited, Some(&timespec(limit)))?;
        if is_ready(&waited, 0) {
            return Ok(SupervisorEvent::TerminationSignal);
        }
        self.drain();
        Ok(SupervisorEvent::ChildExit)
    }

    /// Discards the signals received so far.
    pub(super) fn discard_signals(&self) {
        let mut buffer = [0; 64];
        while let Ok(1..) = (&self.signals).read(&mut buffer) {}
    }

    fn drain(&self) {
        let mut buffer = [0; 64];
        while let Ok(1..) = (&self.children).read(&mut buffer) {}
    }
}

fn readable(stream: &UnixStream) -> PollFd<'_> {
    PollFd::new(stream, PollFlags::IN)
}

fn is_ready(waited: &[PollFd<'_>], at: usize) -> bool {
    waited.get(at).is_some_and(|one| !one.revents().is_empty())
}

fn wait(waited: &mut [PollFd<'_>], limit: Option<&Timespec>) -> io::Result<()> {
    match poll(waited, limit) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn timespec(limit: Duration) -> Timespec {
    Timespec::try_from(limit).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 })
}
