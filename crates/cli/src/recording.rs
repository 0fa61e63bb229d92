//! The audit log and the history of this process: opened before the first call, closed after the
//! last.

use std::sync::Arc;

use toolyard_config::Config;
use toolyard_history::{
    AuditDestination, AuditLog, CallHistory, CallRecorder, HistoryDestination, HistoryStore, PostgresHistory,
};
use toolyard_hub::{History, Recorder, Redaction, YardSettings};
use toolyard_upstream::UpstreamContext;

/// The configured recording of calls, which may be empty.
pub(crate) struct CallRecording {
    records: Arc<CallRecorder>,
    redaction: Redaction,
}

/// Which of the configured records a command writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallRecords {
    /// None, because the command makes no calls.
    Off,
    /// Only the audit log. The command cannot query past calls, so it writes no history.
    Audit,
    AuditAndHistory,
}

impl CallRecording {
    /// Opens the configured records. Fails if one cannot be opened, so that calls never go
    /// unrecorded by accident. `context` has the TLS configuration for a
    /// database.
    pub(crate) async fn open(
        config: &Config,
        records: CallRecords,
        context: &UpstreamContext,
    ) -> anyhow::Result<Self> {
        let audit = match config.audit.as_ref().filter(|_| records != CallRecords::Off) {
            None => None,
            Some(AuditDestination::File(settings)) => Some(AuditLog::open(settings)?),
            Some(AuditDestination::Postgres(settings)) => {
                Some(Box::pin(AuditLog::open_postgres(settings, &context.tls)).await?)
            }
        };
        let store = match config.history.clone().filter(|_| records == CallRecords::AuditAndHistory) {
            None => None,
            Some(HistoryDestination::File(settings)) => {
                Some(CallHistory::File(HistoryStore::open(settings)?))
            }
            Some(HistoryDestination::Postgres(settings)) => {
                Some(CallHistory::Postgres(Box::pin(PostgresHistory::open(&settings, &context.tls)).await?))
            }
        };
        let store = store.map(Arc::new);
        let redaction = config.redaction.clone();
        // The configured redaction rules also apply to the log of this process.
        crate::log::set_redaction(redaction.clone());
        Ok(Self { records: Arc::new(CallRecorder { audit, store }), redaction })
    }

    /// Adds the recording to the settings of a yard.
    pub(crate) fn apply_to(&self, settings: YardSettings) -> YardSettings {
        let recorder = (!self.records.is_empty()).then(|| Arc::clone(&self.records) as Arc<dyn Recorder>);
        let history = self.records.store.clone().map(|store| store as Arc<dyn History>);
        YardSettings { recorder, history, redaction: self.redaction.clone(), ..settings }
    }

    /// Waits until everything is written.
    pub(crate) async fn close(&self) {
        self.records.close().await;
    }
}
