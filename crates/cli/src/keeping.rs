//! The audit and the history of this process: opened before the first call, closed after the last.

use std::sync::Arc;

use toolyard_history::{Audit, Records, Store, StoreError};
use toolyard_hub::{History, Recorder, YardSettings};

use crate::config::Config;

/// What is kept of calls; perhaps nothing.
pub(crate) struct Keeping {
    records: Arc<Records>,
}

/// Whether past calls can be asked for here. Where nobody can ask, none are kept for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    Some,
    None,
}

impl Keeping {
    /// Opens what the configuration asks for. Who wants records does not want to go without them unawares.
    pub(crate) fn open(config: &Config, readers: Readers) -> anyhow::Result<Self> {
        let audit = config.audit.clone().map(Audit::open).transpose()?;
        let history = config.history.clone().filter(|_| readers == Readers::Some);
        let store = history.map(Store::open).transpose().map_err(with_suggestion)?.map(Arc::new);
        Ok(Self { records: Arc::new(Records { audit, store }) })
    }

    /// For who makes no calls.
    pub(crate) fn nothing() -> Self {
        Self { records: Arc::new(Records { audit: None, store: None }) }
    }

    /// The settings of a yard whose calls are recorded.
    pub(crate) fn of(&self, settings: YardSettings) -> YardSettings {
        let recorder = (!self.records.is_empty()).then(|| Arc::clone(&self.records) as Arc<dyn Recorder>);
        let history = self.records.store.clone().map(|store| store as Arc<dyn History>);
        YardSettings { recorder, history, ..settings }
    }

    /// Waits until everything is written.
    pub(crate) async fn close(&self) {
        self.records.close().await;
    }
}

/// The error, and below it what to do about it.
fn with_suggestion(error: StoreError) -> anyhow::Error {
    match error.suggestion() {
        Some(suggestion) => anyhow::anyhow!("{error}\n  {}", suggestion.replace('\n', "\n  ")),
        None => error.into(),
    }
}
