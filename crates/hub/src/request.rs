//! One call as every front hands it in.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::deadline::Deadline;
use crate::json::Raw;
use crate::name::SourceName;
use crate::principal::Principal;

/// One call: what, for whom, until when, and the way back. Dropping the future that carries it out cancels it.
#[derive(Debug)]
pub struct Request {
    pub what: What,
    pub principal: Principal,
    pub deadline: Deadline,
    pub cancel: CancellationToken,
    pub priority: Priority,
    pub context: CallContext,
    /// Free-form metadata that travels with the call (`_meta` of the protocol, trace context among it).
    pub meta: Option<Raw>,
    pub client: Client,
}

/// What is asked for, in the names that the caller used.
#[derive(Debug, Clone)]
pub enum What {
    Tool { name: String, arguments: Option<Raw> },
    Resource { uri: String },
    Prompt { name: String, arguments: Option<Raw> },
    Completion { reference: Reference, argument: String, value: String, context: Option<Raw> },
}

impl What {
    /// The name or address of the thing, for messages and events.
    pub fn subject(&self) -> &str {
        match self {
            Self::Tool { name, .. } | Self::Prompt { name, .. } => name,
            Self::Resource { uri } => uri,
            Self::Completion { reference: Reference::Prompt(name) | Reference::Template(name), .. } => name,
        }
    }
}

/// What an argument completion is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    Prompt(String),
    /// A template, or a resource, by its URI.
    Template(String),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

/// What the caller said about the occasion; recorded and handed to hooks.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    pub session_id: Option<Arc<str>>,
    pub user_id: Option<Arc<str>>,
    /// Headers of the caller's request that the configuration lets through to sources, by lower-case name.
    pub headers: Vec<(String, String)>,
    /// Set where a front serves one source alone: names are then that source's raw names.
    pub only_source: Option<SourceName>,
}
