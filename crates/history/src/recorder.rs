//! The recorder of a yard, which combines the audit log and the history. Both are optional.

use std::sync::Arc;

use toolyard_hub::{BoxFuture, FinishedCall, HubError, Recorder};

use crate::audit::AuditLog;
use crate::call_history::CallHistory;

/// Records every call in the audit log and the history, if they are configured.
#[derive(Debug, Default)]
pub struct CallRecorder {
    pub audit: Option<AuditLog>,
    /// Shared with readers.
    pub store: Option<Arc<CallHistory>>,
}

impl CallRecorder {
    /// Returns whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.audit.is_none() && self.store.is_none()
    }

    /// Waits until all records are written. Later records are lost.
    pub async fn close(&self) {
        if let Some(audit) = &self.audit {
            audit.close().await;
        }
        if let Some(store) = &self.store {
            store.close().await;
        }
    }
}

impl Recorder for CallRecorder {
    fn wants_arguments(&self) -> bool {
        self.audit.as_ref().is_some_and(AuditLog::wants_arguments)
    }

    fn admit(&self) -> Result<(), HubError> {
        self.audit.as_ref().map_or(Ok(()), AuditLog::admit)
    }

    fn record(&self, finished: FinishedCall<'_>) -> BoxFuture<'static, Result<(), HubError>> {
        if let Some(store) = &self.store {
            store.record(&finished);
        }
        match &self.audit {
            Some(audit) => Box::pin(audit.record(&finished)),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }

    fn lost_records(&self) -> u64 {
        self.audit.as_ref().map_or(0, AuditLog::lost_records)
            + self.store.as_ref().map_or(0, |store| store.lost_records())
    }
}
