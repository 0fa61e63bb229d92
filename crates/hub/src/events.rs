//! What happens in the yard, in order, for whoever watches. Watchers that fall behind lose the oldest events
//! and are told so; the yard never waits for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::broadcast;

use crate::error::Kind;
use crate::name::SourceName;

const KEPT: usize = 1024;

/// One call, told apart from every other in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallId(pub u64);

#[derive(Debug, Clone)]
pub enum Event {
    CallStarted {
        id: CallId,
        subject: String,
        source: SourceName,
        principal: String,
    },
    CallEnded {
        id: CallId,
        ended: Ended,
        duration: Duration,
    },
    /// What the yard offers is not what it was.
    Changed(Change),
    ResourceUpdated {
        source: SourceName,
        uri: String,
    },
    /// How a source is doing is not what it was.
    StatusChanged {
        source: SourceName,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Answered,
    /// The tool answered that it failed.
    Failed,
    Error(Kind),
    /// Whoever called went away before there was an answer.
    Dropped,
}

/// Which lists of the catalog changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    pub tools: bool,
    /// Resources and templates.
    pub resources: bool,
    pub prompts: bool,
}

impl Change {
    pub fn any(self) -> bool {
        self.tools || self.resources || self.prompts
    }
}

/// The stream that watchers read.
#[derive(Debug)]
pub struct Events {
    all: broadcast::Sender<Arc<Event>>,
    /// Everything but calls: whoever only wants to know what changed is not woken by each of them.
    changes: broadcast::Sender<Arc<Event>>,
    next_call: AtomicU64,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            all: broadcast::channel(KEPT).0,
            changes: broadcast::channel(KEPT).0,
            next_call: AtomicU64::new(1),
        }
    }
}

impl Events {
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.all.subscribe()
    }

    /// What changes, without the calls.
    pub fn changes(&self) -> broadcast::Receiver<Arc<Event>> {
        self.changes.subscribe()
    }

    pub(crate) fn next_call(&self) -> CallId {
        CallId(self.next_call.fetch_add(1, Ordering::Relaxed))
    }

    /// Tells of a call. Builds the event only if somebody watches.
    pub(crate) fn tell_call(&self, event: impl FnOnce() -> Event) {
        if self.all.receiver_count() > 0 {
            let _ = self.all.send(Arc::new(event()));
        }
    }

    /// Tells of a change.
    pub(crate) fn tell(&self, event: Event) {
        let event = Arc::new(event);
        // Nobody may be watching.
        let _ = self.changes.send(Arc::clone(&event));
        let _ = self.all.send(event);
    }
}
