//! The yard: every source in one catalog, and the one path that every call takes.
//!
//! This crate knows no protocol, no socket and no screen. Fronts hand it a [`Request`]; sources implement
//! [`Source`]; payloads travel through it as the JSON text they arrived as.

pub mod address;
mod call;
mod catalog;
mod client;
mod deadline;
mod definition_budget;
mod error;
mod events;
mod execution;
#[cfg(test)]
mod fake;
#[doc(hidden)]
pub mod fuzzing;
pub mod glob;
mod history;
mod hooks;
pub mod json;
mod limits;
mod manage;
pub mod meta;
mod name;
mod nearest;
mod notes;
mod outcome;
pub mod parameters;
pub mod permission;
mod places;
mod principal;
pub mod printable;
mod quota;
mod rate;
mod reach;
mod record;
mod redact;
mod request;
mod results;
mod schema;
mod secret;
mod slot;
mod source;
mod status;
mod subscriptions;
mod tally;
mod timestamp;
mod uri_template;
mod version;
mod view;
mod visibility;
mod yard;

pub use catalog::{Bare, Catalog, Lookup, Prompt, Resource, Template, Tool};
pub use client::{
    Abilities, Answers, Ask, Client, Level, LogLine, Pause, Progress, Question, QuestionKind, Update,
};
pub use deadline::Deadline;
pub use definition_budget::{
    DefinitionBudget, DefinitionLimits, DefinitionReservation, LargeListTurn, LargeListTurns, OverBudget,
};
pub use error::{Error, Kind, Origin};
pub use events::{Change, Ended, Event, Events, StderrLine};
pub use execution::{ExecutionId, NoExecutionId};
pub use history::{History, HistoryError, HistoryQuery, Mark, NoMark, PastCall, Standing};
pub use hooks::{Before, HookCall, Hooks};
pub use json::Raw;
pub use limits::{Bounds, Limits, Rate};
pub use manage::{Direction, LoginError, ManageError, Order, Said};
pub use name::{FullName, Prefix, SourceName};
pub use nearest::nearest;
pub use notes::Notes;
pub use outcome::Outcome;
pub use parameters::{Parameter, parameters};
pub use permission::{MANAGE, OBSERVE};
pub use principal::{AllowList, Permissions, Principal};
pub use quota::{OwnQuotas, Quota, QuotaCharge, QuotaLimits, QuotaReport, Quotas};
pub use rate::RateState;
pub use reach::Reach;
pub use record::{CallRecord, Recorder};
pub use redact::Redaction;
pub use request::{
    CallContext, ClientEra, ClientSession, FrontName, MadeBy, Priority, Reference, Request, Thing, What,
};
pub use results::{ResultCheck, ResultChecks};
pub use schema::{Schema, SchemaCheck, Violation};
pub use secret::Secret;
pub use source::{
    Call, Feed, Listing, Offer, PromptOffer, RefusedCaller, ResourceOffer, Source, Target, TemplateOffer,
    ToolOffer,
};
pub use status::{AuthStatus, State, Status};
pub use subscriptions::ResourceSubscription;
pub use tally::{Counted, Histogram, Tally};
pub use timestamp::{NoTimestamp, Timestamp};
pub use uri_template::UriTemplate;
pub use view::View;
pub use visibility::{Offered, RecordedCall, Visibility};
pub use yard::{Yard, YardSettings};

/// A future that owns what it needs, for the object-safe seams of this house.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
