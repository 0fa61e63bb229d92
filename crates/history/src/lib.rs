//! Records of all calls: an audit log (JSON Lines) and a history (SQLite), behind the traits of the
//! hub. Presentation and access control do not belong here.

mod audit;
mod audit_line;
mod recorder;
#[cfg(test)]
mod scratch;
mod store;

pub use audit::{AuditArguments, AuditError, AuditFailurePolicy, AuditFlush, AuditLog, AuditSettings};
pub use recorder::CallRecorder;
pub use store::{HistoryDamagePolicy, HistoryStore, HistoryStoreError, HistoryStoreSettings};
