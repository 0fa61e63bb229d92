//! The recorder of a yard: the audit and the history, each if it is wanted.

use std::sync::Arc;

use toolyard_hub::{BoxFuture, CallRecord, Error, Recorder};

use crate::audit::Audit;
use crate::store::Store;

/// Keeps every call in what there is of the two.
#[derive(Debug, Default)]
pub struct Records {
    pub audit: Option<Audit>,
    /// Shared with those who read it.
    pub store: Option<Arc<Store>>,
}

impl Records {
    /// Whether nothing is kept at all.
    pub fn is_empty(&self) -> bool {
        self.audit.is_none() && self.store.is_none()
    }

    /// Waits until everything that was recorded is written. What is recorded later is lost.
    pub async fn close(&self) {
        if let Some(audit) = &self.audit {
            audit.close().await;
        }
        if let Some(store) = &self.store {
            store.close().await;
        }
    }
}

impl Recorder for Records {
    fn wants_arguments(&self) -> bool {
        self.audit.as_ref().is_some_and(Audit::wants_arguments)
    }

    fn admit(&self) -> Result<(), Error> {
        self.audit.as_ref().map_or(Ok(()), Audit::admit)
    }

    fn record(&self, record: CallRecord<'_>) -> BoxFuture<'static, Result<(), Error>> {
        if let Some(store) = &self.store {
            store.keep(&record);
        }
        match &self.audit {
            Some(audit) => Box::pin(audit.keep(&record)),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }

    fn lost(&self) -> u64 {
        self.audit.as_ref().map_or(0, Audit::lost) + self.store.as_ref().map_or(0, |store| store.lost())
    }
}
