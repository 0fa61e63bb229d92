//! Several replicas as one yard. This crate implements the shared parts of the hub in Redis: which
//! replicas are alive, limits that apply to all of them, and leases. Requests between replicas
//! belong to `serve`; records in PostgreSQL belong to `history`.

mod idempotency;
mod limits;
mod settings;
mod store;

pub use idempotency::{KeyTask, RedisKeys};
pub use limits::{LimitTask, RedisLimits};
pub use settings::{ClusterSettings, StoreLossPolicy};
pub use store::{InvalidStoreUrl, KEY_PREFIX, RedisStore};
