//! The published state of a source that connects or loads in the background: its offer, its status,
//! and the yard to notify of changes.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::source::{SourceNotifier, SourceOffer};
use crate::status::SourceStatus;

/// The offer and the status of one source.
#[derive(Debug)]
pub struct PublishedSource {
    offer: ArcSwap<SourceOffer>,
    status: RwLock<SourceStatus>,
    changed: Notify,
    notifier: OnceLock<SourceNotifier>,
}

impl PublishedSource {
    /// Creates a source that offers nothing yet.
    pub fn new(status: SourceStatus) -> Self {
        Self {
            offer: ArcSwap::default(),
            status: RwLock::new(status),
            changed: Notify::new(),
            notifier: OnceLock::new(),
        }
    }

    /// Sets the yard to notify. A source belongs to one yard for its lifetime; further calls have
    /// no effect.
    pub fn attach(&self, notifier: SourceNotifier) {
        let _ = self.notifier.set(notifier);
    }

    pub fn notifier(&self) -> Option<&SourceNotifier> {
        self.notifier.get()
    }

    pub fn offer(&self) -> Arc<SourceOffer> {
        self.offer.load_full()
    }

    pub fn set_offer(&self, offer: SourceOffer) {
        self.offer.store(Arc::new(offer));
        if let Some(notifier) = self.notifier() {
            notifier.offer_changed();
        }
    }

    pub fn status(&self) -> SourceStatus {
        self.status.read().clone()
    }

    /// Changes the status and wakes waiting tasks. A source that has settled stays settled.
    pub fn set_status(&self, status: SourceStatus) {
        {
            let mut now = self.status.write();
            let settled = now.startup_complete || status.startup_complete;
            *now = SourceStatus { startup_complete: settled, ..status };
        }
        self.changed.notify_waiters();
        if let Some(notifier) = self.notifier() {
            notifier.status_changed();
        }
    }

    /// Returns when the source started, until it has settled.
    pub fn starting_since(&self) -> Option<Instant> {
        let status = self.status.read();
        (!status.startup_complete).then_some(status.since)
    }

    /// Waits until `read` returns a value. `read` is called again after every change of the status.
    pub async fn wait_for<T>(&self, mut read: impl FnMut(&SourceStatus) -> Option<T>) -> T {
        loop {
            // Register for notifications before reading, so that no change is missed.
            let changed = self.changed.notified();
            let found = read(&self.status.read());
            match found {
                Some(found) => return found,
                None => changed.await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::PublishedSource;
    use crate::status::{SourceState, SourceStatus};

    #[tokio::test]
    async fn a_waiting_task_sees_every_change_and_settled_stays_settled() {
        let source = Arc::new(PublishedSource::new(SourceStatus::new(SourceState::Starting, false)));
        assert!(source.starting_since().is_some());
        let waiting = Arc::clone(&source);
        let ready = tokio::spawn(async move {
            waiting
                .wait_for(|status| (status.state == SourceState::Ready).then_some(status.startup_complete))
                .await
        });
        tokio::task::yield_now().await;
        source.set_status(SourceStatus::new(SourceState::Retrying, true));
        tokio::task::yield_now().await;
        source.set_status(SourceStatus::new(SourceState::Ready, false));
        assert!(ready.await.unwrap());
        assert_eq!(source.starting_since(), None);
    }
}
