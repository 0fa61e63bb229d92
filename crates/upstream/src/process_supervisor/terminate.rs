//! Ending a tree of processes: politely, then not.

use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpgid, getpid, kill_process, kill_process_group, wait,
};

use super::watch::{ProcessWatcher, SupervisorEvent};
use crate::processes::descendants;

/// How long the tree has between being asked to end and being killed.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// How long killed processes may take to be gone. Only what hangs in the kernel takes any time at all.
pub(crate) const GONE: Duration = Duration::from_secs(3);
/// What is killed may just have started something: look again this soon.
const AGAIN: Duration = Duration::from_millis(20);

/// All that one program has started. Because this process adopts orphans, it has children as long as any is left.
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

    /// How the program itself ended, once it has.
    pub(super) fn status(&self) -> Option<WaitStatus> {
        self.status
    }

    /// Takes note of every child that has ended.
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

    /// Ends whatever is left.
    pub(super) fn terminate(&mut self, watch: &ProcessWatcher) {
        self.reap();
        if self.empty {
            return;
        }
        // What was told until now is what made us end.
        watch.discard_signals();
        self.signal(Signal::TERM);
        // A stopped process sees the signal only when it goes on.
        self.signal(Signal::CONT);
        self.wait_for_grace_period(watch);
        let limit = Instant::now() + GONE;
        while !self.empty && Instant::now() < limit {
            self.signal(Signal::KILL);
            self.wait(watch, AGAIN);
        }
    }

    /// Waits until nothing is left, for as long as the tree is given; less if told to end once more.
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

    /// Waits until nothing is left, at most this long.
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

    /// Signals every process once: to many programs a second signal means "at once".
    fn signal(&self, signal: Signal) {
        // The group first and as one, so that none of it sees another end and starts it anew. Its number cannot be
        // another group's, because its first process has not been reaped.
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
