//! What became of every call: an audit as JSON lines, and a history in SQLite, both behind the hub's traits. What a front
//! makes of it, and who may see what, does not belong here.

mod audit;
mod audit_line;
mod recorder;
#[cfg(test)]
mod scratch;
mod store;

pub use audit::{AuditArguments, AuditError, AuditFailurePolicy, AuditFlush, AuditLog, AuditSettings};
pub use recorder::CallRecorder;
pub use store::{HistoryDamagePolicy, HistoryStore, HistoryStoreError, HistoryStoreSettings};
