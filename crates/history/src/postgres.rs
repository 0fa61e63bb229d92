//! The audit log and the history in PostgreSQL, which several replicas share. Each of the two has a
//! connection of its own.

mod audit;
mod history;
mod query;
mod retention;
mod row;

pub(crate) use self::audit::PostgresAudit;
pub use self::history::{PostgresHistory, PostgresHistorySettings};
