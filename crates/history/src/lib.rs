//! What became of every call: an audit as JSON lines, and a history in SQLite, both behind the hub's traits. What a front
//! makes of it, and who may see what, does not belong here.

mod audit;
mod line;
mod records;
mod redact;
#[cfg(test)]
mod scratch;
mod store;

pub use audit::{Arguments, Audit, AuditError, AuditSettings, Flush, OnFailure};
pub use records::Records;
pub use redact::Redaction;
pub use store::{OnDamage, Store, StoreError, StoreSettings};
