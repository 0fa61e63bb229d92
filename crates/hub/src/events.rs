//! What happens in the yard, in order, for whoever watches. Watchers that fall behind lose the oldest events
//! and are told so; the yard never waits for them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::broadcast;

use crate::caller_channel::Progress;
use crate::error::ErrorKind;
use crate::name::SourceName;
use crate::record::CallRecord;

const KEPT: usize = 1024;
/// Lines of standard error have a stream of their own: a server that babbles must not push anything else out.
const LINES_KEPT: usize = 256;

#[derive(Debug, Clone)]
pub enum YardEvent {
    /// A call was accepted. It may be refused right after that.
    CallStarted(Arc<CallRecord>),
    CallProgress {
        call: Arc<CallRecord>,
        progress: Progress,
    },
    CallEnded {
        call: Arc<CallRecord>,
        ended: CallEndReason,
        /// The message of the error, if it ended with one.
        error: Option<String>,
        duration: Duration,
    },
    /// The result of a tool violates the tool's output schema.
    ResultViolatesSchema {
        call: Arc<CallRecord>,
        violations: Vec<String>,
    },
    /// What the yard offers is not what it was, because of these sources.
    CatalogChanged(CatalogChange, Arc<[SourceName]>),
    ResourceUpdated {
        source: SourceName,
        uri: String,
    },
    /// How a source is doing is not what it was; also one that was taken in, or that is gone.
    StatusChanged {
        source: SourceName,
    },
}

/// How a call ended, in more detail than the [`CallStatus`](crate::CallStatus) that is shown for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEndReason {
    Succeeded,
    /// The tool itself reported failure; there is an outcome.
    Failed,
    /// There is no outcome.
    Error(ErrorKind),
    /// The caller hung up or cancelled the request before there was an answer, so nobody is told.
    Abandoned,
}

/// Which lists of the catalog changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CatalogChange {
    pub tools: bool,
    /// Resources and templates.
    pub resources: bool,
    pub prompts: bool,
}

impl CatalogChange {
    pub fn has_changes(self) -> bool {
        self.tools || self.resources || self.prompts
    }

    /// What changed in either.
    pub(crate) fn merge(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            resources: self.resources || other.resources,
            prompts: self.prompts || other.prompts,
        }
    }
}

/// A line that the process of a source wrote to standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StderrLine {
    pub source: SourceName,
    pub at: SystemTime,
    pub line: String,
}

/// The stream that watchers read.
#[derive(Debug)]
pub struct EventBus {
    all: broadcast::Sender<Arc<YardEvent>>,
    /// Everything but calls: whoever only wants to know what changed is not woken by each of them.
    changes: broadcast::Sender<Arc<YardEvent>>,
    stderr: broadcast::Sender<Arc<StderrLine>>,
}

impl Default for EventBus {
    fn default() -> Self {
        Self {
            all: broadcast::channel(KEPT).0,
            changes: broadcast::channel(KEPT).0,
            stderr: broadcast::channel(LINES_KEPT).0,
        }
    }
}

impl EventBus {
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<YardEvent>> {
        self.all.subscribe()
    }

    /// What changes, without the calls.
    pub fn subscribe_changes(&self) -> broadcast::Receiver<Arc<YardEvent>> {
        self.changes.subscribe()
    }

    /// What the processes of sources write to standard error.
    pub fn subscribe_stderr(&self) -> broadcast::Receiver<Arc<StderrLine>> {
        self.stderr.subscribe()
    }

    pub(crate) fn publish_stderr(&self, line: impl FnOnce() -> StderrLine) {
        if self.stderr.receiver_count() > 0 {
            let _ = self.stderr.send(Arc::new(line()));
        }
    }

    /// Tells of a call. Builds the event only if somebody watches.
    pub(crate) fn publish_call(&self, event: impl FnOnce() -> YardEvent) {
        if self.all.receiver_count() > 0 {
            let _ = self.all.send(Arc::new(event()));
        }
    }

    /// Tells of a change.
    pub(crate) fn publish(&self, event: YardEvent) {
        let event = Arc::new(event);
        // Nobody may be watching.
        let _ = self.changes.send(Arc::clone(&event));
        let _ = self.all.send(event);
    }
}
