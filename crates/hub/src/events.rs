//! The event stream of the yard. Watchers that fall behind lose the oldest events and are notified
//! of the loss; the yard never waits for them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::broadcast;

use crate::caller_channel::Progress;
use crate::error::ErrorKind;
use crate::name::SourceName;
use crate::record::CallRecord;

const KEPT: usize = 1024;
/// Standard error has a separate stream, so that a verbose server cannot displace other events.
const LINES_KEPT: usize = 256;

#[derive(Debug, Clone)]
pub enum YardEvent {
    /// A call was accepted. It may be rejected immediately afterwards.
    CallStarted(Arc<CallRecord>),
    CallProgress {
        call: Arc<CallRecord>,
        progress: Progress,
    },
    CallEnded {
        call: Arc<CallRecord>,
        ended: CallEndReason,
        /// The error message, if the call ended with an error.
        error: Option<String>,
        duration: Duration,
    },
    /// The result of a tool violates the tool's output schema.
    ResultViolatesSchema {
        call: Arc<CallRecord>,
        violations: Vec<String>,
    },
    /// The catalog changed because of these sources.
    CatalogChanged(CatalogChange, Arc<[SourceName]>),
    ResourceUpdated {
        source: SourceName,
        uri: String,
    },
    /// The status of a source changed, or a source was added or removed.
    StatusChanged {
        source: SourceName,
    },
}

/// How a call ended, in more detail than the [`CallStatus`](crate::CallStatus) shown to users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEndReason {
    Succeeded,
    /// The tool itself reported a failure. The call has an outcome.
    Failed,
    /// The call has no outcome.
    Error(ErrorKind),
    /// The caller disconnected or canceled the request before the call ended, so no result is
    /// returned.
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

    /// The union of both changes.
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

/// The event streams of a yard.
#[derive(Debug)]
pub struct EventBus {
    all: broadcast::Sender<Arc<YardEvent>>,
    /// Everything except calls, so that subscribers that only need changes are not woken for each
    /// call.
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

    /// Subscribes to changes, without calls.
    pub fn subscribe_changes(&self) -> broadcast::Receiver<Arc<YardEvent>> {
        self.changes.subscribe()
    }

    /// Subscribes to the standard error output of sources.
    pub fn subscribe_stderr(&self) -> broadcast::Receiver<Arc<StderrLine>> {
        self.stderr.subscribe()
    }

    pub(crate) fn publish_stderr(&self, line: impl FnOnce() -> StderrLine) {
        if self.stderr.receiver_count() > 0 {
            let _ = self.stderr.send(Arc::new(line()));
        }
    }

    /// Publishes an event of a call. The event is built only if there is a subscriber.
    pub(crate) fn publish_call(&self, event: impl FnOnce() -> YardEvent) {
        if self.all.receiver_count() > 0 {
            let _ = self.all.send(Arc::new(event()));
        }
    }

    /// Publishes a change.
    pub(crate) fn publish(&self, event: YardEvent) {
        let event = Arc::new(event);
        // Sending fails if there is no subscriber.
        let _ = self.changes.send(Arc::clone(&event));
        let _ = self.all.send(event);
    }
}
