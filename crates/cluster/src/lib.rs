//! Several replicas as one yard. This crate implements the shared parts of the hub in Redis: which
//! replicas are alive, limits that apply to all of them, and leases. In PostgreSQL, it keeps logins
//! and tokens. Requests between replicas belong to `serve`; records of calls belong to `history`.

mod database;
mod idempotency;
mod limits;
mod logins;
mod membership;
mod settings;
mod store;
mod stream_log;
mod tokens;

pub use database::ClusterDatabase;

pub use idempotency::{KeyTask, RedisKeys};
pub use limits::{LimitTask, RedisLimits};
pub use membership::{Membership, ReplicaRecord, SESSION_LIFETIME};
pub use settings::{ClusterSettings, StoreLossPolicy};
pub use store::{InvalidStoreUrl, KEY_PREFIX, RedisStore};
pub use tokens::{
    IssuedTokens, KEEP_DAYS, MOST_TOKENS, RevokedToken, SaveOutcome, SavedToken, TokenDigest, TokenOrigin,
    TokenTable, TokenWatch,
};
