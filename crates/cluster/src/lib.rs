//! Several replicas as one yard. This crate implements the shared parts of the hub in Redis: which
//! replicas are alive, limits that apply to all of them, and leases. Requests between replicas
//! belong to `serve`; records in PostgreSQL belong to `history`.

mod idempotency;
mod limits;
mod membership;
mod settings;
mod store;
mod stream_log;

pub use idempotency::{KeyTask, RedisKeys};
pub use limits::{LimitTask, RedisLimits};
pub use membership::{Membership, ReplicaRecord, SESSION_LIFETIME};
pub use settings::{ClusterSettings, StoreLossPolicy};
pub use store::{InvalidStoreUrl, KEY_PREFIX, RedisStore};
