//! The audit and the history of this process: opened before the first call, closed after the last.

use std::sync::Arc;

use toolyard_config::Config;
use toolyard_history::{AuditLog, CallRecorder, HistoryStore, HistoryStoreError};
use toolyard_hub::{History, Recorder, Redaction, YardSettings};

/// What is kept of calls; perhaps nothing.
pub(crate) struct CallRecording {
    records: Arc<CallRecorder>,
    redaction: Redaction,
}

/// Which of the records that the configuration asks for are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallRecords {
    /// None: no calls are made.
    Off,
    /// The audit. Past calls cannot be asked for here, so no history is kept.
    Audit,
    AuditAndHistory,
}

impl CallRecording {
    /// Opens what the configuration asks for. Who wants records does not want to go without them unawares.
    pub(crate) fn open(config: &Config, records: CallRecords) -> anyhow::Result<Self> {
        let audit = config.audit.as_ref().filter(|_| records != CallRecords::Off);
        let audit = audit.map(AuditLog::open).transpose()?;
        let history = config.history.clone().filter(|_| records == CallRecords::AuditAndHistory);
        let store = history.map(HistoryStore::open).transpose().map_err(with_suggestion)?.map(Arc::new);
        let redaction = config.redaction.clone();
        // The words of the configuration hold for the log of this process too.
        crate::log::set_redaction(redaction.clone());
        Ok(Self { records: Arc::new(CallRecorder { audit, store }), redaction })
    }

    /// The settings of a yard whose calls are recorded.
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

/// The error, and below it what to do about it.
fn with_suggestion(error: HistoryStoreError) -> anyhow::Error {
    match error.suggestion() {
        Some(suggestion) => anyhow::anyhow!("{error}\n  {}", suggestion.replace('\n', "\n  ")),
        None => error.into(),
    }
}
