//! The history of a yard, in a file or in PostgreSQL.

use toolyard_hub::{BoxFuture, ExecutionId, FinishedCall, History, HistoryError, HistoryQuery, PastCall};

use crate::postgres::{PostgresHistory, PostgresHistorySettings};
use crate::store::{HistoryStore, HistoryStoreSettings};

/// Where the history is.
#[derive(Debug, Clone)]
pub enum HistoryDestination {
    File(HistoryStoreSettings),
    Postgres(PostgresHistorySettings),
}

/// An open history.
#[derive(Debug)]
pub enum CallHistory {
    File(HistoryStore),
    Postgres(PostgresHistory),
}

impl CallHistory {
    /// Queues a record. It is lost if the queue is full.
    pub fn record(&self, finished: &FinishedCall<'_>) {
        match self {
            Self::File(store) => store.record(finished),
            Self::Postgres(store) => store.record(finished),
        }
    }

    /// Returns the number of lost records.
    pub fn lost_records(&self) -> u64 {
        match self {
            Self::File(store) => store.lost_records(),
            Self::Postgres(store) => store.lost_records(),
        }
    }

    /// Waits until all queued records are written. Later records are lost.
    pub async fn close(&self) {
        match self {
            Self::File(store) => store.close().await,
            Self::Postgres(store) => store.close().await,
        }
    }
}

impl History for CallHistory {
    fn recent(&self, query: HistoryQuery) -> BoxFuture<'static, Result<Vec<PastCall>, HistoryError>> {
        match self {
            Self::File(store) => store.recent(query),
            Self::Postgres(store) => store.recent(query),
        }
    }

    fn find(&self, id: ExecutionId) -> BoxFuture<'static, Result<Option<PastCall>, HistoryError>> {
        match self {
            Self::File(store) => store.find(id),
            Self::Postgres(store) => store.find(id),
        }
    }
}
