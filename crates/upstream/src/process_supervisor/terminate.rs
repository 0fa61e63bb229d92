//! Terminating a process tree: first with SIGTERM, then with SIGKILL.

use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpgid, getpid, kill_process, kill_process_group, wait,
};

use super::watch::{ProcessWatcher, SupervisorEvent};
use crate::processes::descendants;

/// The grace period between SIGTERM and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// How long to wait for killed processes. Only processes that hang in the kernel take long.
pub(crate) const GONE: Duration = Duration::from_secs(3);
/// Delay before the next SIGKILL, for processes that the killed ones started at the last moment.
const AGAIN: Duration = Duration::from_millis(20);

/// A program and all its descendants. This process is their subreaper, so it has children as long
/// as any of them is left.
#[derive(Debug)]
pub(super) struct ProcessTree {
    program: Pid,
    status: Option<WaitStatus>,
    empty: bool,
}

impl ProcessTree {
    pub(super) fn new(program: Pid) -> Self {
        Self { program, status: None, empty: false }
    }

    /// Returns the wait status of the program itself, once it has ended.
    pub(super) fn status(&self) -> Option<WaitStatus> {
        self.status
    }

    /// Reaps every child that has ended.
    pub(super) fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.program => self.status = Some(status),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return,
                Err(_) => {
                    self.empty = true;
                    return;
                }
            }
        }
    }

    /// Terminates all processes that are left.
    pub(super) fn terminate(&mut self, watch: &ProcessWatcher) {
        self.reap();
        if self.empty {
            return;
        }
        // The signals so far are the reason for this call.
        watch.discard_signals();
        self.signal(Signal::TERM);
        // A stopped process handles the signal only after it continues.
        self.signal(Signal::CONT);
        self.wait_for_grace_period(watch);
        let limit = Instant::now() + GONE;
        while !self.empty && Instant::now() < limit {
            self.signal(Signal::KILL);
            self.wait(watch, AGAIN);
        }
    }

    /// Waits until no process is left, up to the grace period. Another signal ends the wait early.
    fn wait_for_grace_period(&mut self, watch: &ProcessWatcher) {
        let limit = Instant::now() + GRACE;
        loop {
            self.reap();
            let left = limit.saturating_duration_since(Instant::now());
            if self.empty
                || left.is_zero()
                || !matches!(watch.wait_for_child_or_signal(left), Ok(SupervisorEvent::ChildExit))
            {
                return;
            }
        }
    }

    /// Waits until no process is left, up to `limit`.
    fn wait(&mut self, watch: &ProcessWatcher, limit: Duration) {
        let limit = Instant::now() + limit;
        loop {
            self.reap();
            let left = limit.saturating_duration_since(Instant::now());
            if self.empty || left.is_zero() || watch.wait_for_child(left).is_err() {
                return;
            }
        }
    }

    /// Signals every process once. Many programs treat a second signal as a request to exit
    /// immediately.
    fn signal(&self, signal: Signal) {
        // The group is signaled first and as a whole, so that no member sees another one end and
        // restarts it. Its ID cannot be reused, because its leader has not been reaped.
        let group = self.status.is_none().then_some(self.program);
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
        for pid in descendants(getpid()) {
            if group.is_none() || getpgid(Some(pid)).ok() != group {
                let _ = kill_process(pid, signal);
            }
        }
    }
}
