//! The yard: all sources in one catalog, and the path that every call takes.
//!
//! This crate is independent of protocols, sockets and user interfaces. Fronts submit a
//! [`CallRequest`]; sources implement [`Source`]; payloads pass through as the JSON text in which
//! they arrived.

pub mod address;
mod call;
mod call_details;
mod call_permits;
mod call_status;
mod caller_channel;
mod catalog;
mod concurrency;
mod credentials;
mod deadline;
mod definition_budget;
mod error;
mod events;
mod execution;
#[cfg(test)]
mod fake;
#[doc(hidden)]
pub mod fuzzing;
mod glob;
mod history;
mod hooks;
pub mod json;
mod limits;
mod manage;
pub mod meta;
mod metrics;
mod name;
mod nearest;
mod outcome;
pub mod parameters;
pub mod permission;
mod principal;
pub mod printable;
mod published_source;
mod quota;
mod rate_limit;
mod record;
mod redact;
mod replicas;
mod request;
mod result_check;
mod schema;
mod scope;
mod secret;
mod shared_keys;
mod shared_limits;
mod shared_permits;
mod source;
mod status;
mod subscriptions;
mod timestamp;
mod uri_template;
mod version;
mod view;
mod visibility;
mod yard;

pub use call_details::CallDetails;
pub use call_status::CallStatus;
pub use caller_channel::{
    CallerChannel, CallerUpdate, ClientCapabilities, LogLevel, LogLine, Progress, Question, QuestionBatch,
    QuestionKind, RawAnswers, StreamPause,
};
pub use catalog::{Catalog, Lookup, NamedEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};
pub use credentials::{CredentialKey, CredentialLock, CredentialStorage, CredentialStorageError};
pub use deadline::Deadline;
pub use definition_budget::{
    DefinitionBudget, DefinitionBudgetError, DefinitionLimits, DefinitionReservation, LargeListPermit,
    LargeListSemaphore,
};
pub use error::{ErrorKind, HubError, SourceError};
pub use events::{CallEndReason, CatalogChange, EventBus, StderrLine, YardEvent};
pub use execution::{ExecutionId, InvalidExecutionId};
pub use glob::Glob;
pub use history::{History, HistoryCursor, HistoryError, HistoryQuery, InvalidHistoryCursor, PastCall};
pub use hooks::{HookCall, HookDecision, Hooks};
pub use json::Raw;
pub use limits::{RateLimit, ScopedLimits, YardLimits};
pub use manage::{LoginError, ManageError, SourceCommand, TranscriptDirection, TranscriptEntry};
pub use metrics::{CallMetrics, Histogram, SourceMetrics};
pub use name::{FullName, Prefix, SourceName};
pub use nearest::nearest;
pub use outcome::Outcome;
pub use parameters::{ToolParameter, parameters};
pub use permission::{MANAGE, OBSERVE};
pub use principal::{AllowList, Permissions, Principal};
pub use published_source::PublishedSource;
pub use quota::{Quota, QuotaCharge, QuotaLimits, QuotaOverrides, QuotaReport, Quotas};
pub use rate_limit::RateState;
pub use record::{CallRecord, FinishedCall, Recorder};
pub use redact::{REDACTED, Redaction};
pub use replicas::{
    HomeLookup, PreviousHolder, Replica, ReplicaId, ReplicaState, Replicas, ServerClaim, ServerHolder,
    SessionHome, StoreUnavailable, StreamEntry,
};
pub use request::{
    CallContext, CallOrigin, CallRequest, CallTarget, ClientEra, ClientSession, CompletionReference,
    EntryKind, FrontName, Priority,
};
pub use result_check::{ResultCheck, ResultChecks};
pub use schema::{Schema, SchemaCheck, SchemaViolation};
pub use scope::YardScope;
pub use secret::Secret;
pub use shared_keys::{ClaimedKey, KeyRequest, SharedKeyState, SharedKeys};
pub use shared_limits::{
    SharedAdmission, SharedCount, SharedDemand, SharedKey, SharedLimit, SharedLimits, SharedPermit,
    SharedRate, SharedTake,
};
pub use source::{
    PromptOffer, ResourceOffer, Source, SourceCall, SourceNotifier, SourceOffer, SourceTarget, TemplateOffer,
    ToolListing, ToolOffer,
};
pub use status::{AuthStatus, SourceState, SourceStatus};
pub use subscriptions::ResourceSubscription;
pub use timestamp::{InvalidTimestamp, Timestamp};
pub use uri_template::UriTemplate;
pub use view::CatalogView;
pub use visibility::{CatalogEntry, RecordedCall, Visibility};
pub use yard::{Yard, YardSettings};

/// A boxed future that owns its data, for object-safe traits.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
