//! Records of all calls: an audit log (JSON Lines) and a history (SQLite), both also in PostgreSQL,
//! behind the traits of the hub. Presentation and access control do not belong here.

mod audit;
mod audit_line;
mod call_history;
mod past_call;
mod postgres;
mod recorder;
#[cfg(test)]
mod scratch;
mod store;

pub use audit::{
    AuditArguments, AuditDestination, AuditError, AuditFailurePolicy, AuditFlush, AuditLog, AuditSettings,
    PostgresAuditSettings,
};
pub use call_history::{CallHistory, HistoryDestination};
pub use postgres::{PostgresHistory, PostgresHistorySettings};
pub use recorder::CallRecorder;
pub use store::{HistoryDamagePolicy, HistoryStore, HistoryStoreError, HistoryStoreSettings};
