//! One call as every front hands it in.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::call_details::CallDetails;
use crate::caller_channel::{CallerChannel, ClientCapabilities};
use crate::catalog::ToolEntry;
use crate::deadline::Deadline;
use crate::execution::ExecutionId;
use crate::json::{self, Raw};
use crate::principal::Principal;
use crate::scope::YardScope;

/// One call: what, for whom, until when, and the way back. Dropping the future that carries it out cancels it.
#[derive(Debug)]
pub struct CallRequest {
    pub target: CallTarget,
    /// The tool that `what` names, if the front has looked it up already: it is not looked up again.
    pub tool: Option<Arc<ToolEntry>>,
    pub principal: Principal,
    pub deadline: Deadline,
    pub cancel: CancellationToken,
    pub priority: Priority,
    pub context: CallContext,
    /// Headers of the caller's request that the configuration lets through to sources, by lower-case name.
    pub headers: Vec<(String, String)>,
    /// Free-form metadata that travels with the call (`_meta` of the protocol, trace context among it).
    pub meta: Option<Raw>,
    pub client: CallerChannel,
    /// The name of the call, where the front gives it one beforehand.
    pub id: Option<ExecutionId>,
    /// Where the front reads what it is told beside the outcome, if it wants to know.
    pub details: Option<Arc<CallDetails>>,
}

impl CallRequest {
    /// A call with all the time that the yard allows, whose caller wants nothing but the outcome.
    pub fn new(target: CallTarget, principal: Principal) -> Self {
        Self {
            target,
            tool: None,
            principal,
            deadline: Deadline::after(Duration::MAX),
            cancel: CancellationToken::new(),
            priority: Priority::Normal,
            context: CallContext::default(),
            headers: Vec::new(),
            meta: None,
            client: CallerChannel::silent(),
            id: None,
            details: None,
        }
    }
}

/// What is asked for, in the names that the caller used.
#[derive(Debug, Clone)]
pub enum CallTarget {
    Tool { name: String, arguments: Option<Raw> },
    Resource { uri: String },
    Prompt { name: String, arguments: Option<Raw> },
    Completion { reference: CompletionReference, argument: String, value: String, context: Option<Raw> },
}

impl CallTarget {
    pub fn kind(&self) -> EntryKind {
        match self {
            Self::Tool { .. } => EntryKind::Tool,
            Self::Resource { .. } => EntryKind::Resource,
            Self::Prompt { .. } => EntryKind::Prompt,
            Self::Completion { .. } => EntryKind::Completion,
        }
    }

    pub(crate) fn arguments(&self) -> Option<&RawValue> {
        match self {
            Self::Tool { arguments, .. } | Self::Prompt { arguments, .. } => arguments.as_deref(),
            Self::Resource { .. } | Self::Completion { .. } => None,
        }
    }

    /// The beginning of the subject, for the record of a call that leads nowhere.
    pub(crate) fn short_subject(&self) -> Arc<str> {
        json::truncate_for_message(self.subject()).into()
    }

    /// The name or address of the thing, for messages and events.
    pub fn subject(&self) -> &str {
        match self {
            Self::Tool { name, .. } | Self::Prompt { name, .. } => name,
            Self::Resource { uri } => uri,
            Self::Completion {
                reference: CompletionReference::Prompt(name) | CompletionReference::Template(name),
                ..
            } => name,
        }
    }
}

/// What kind of thing is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    Tool,
    Resource,
    Prompt,
    Completion,
}

impl EntryKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
            Self::Completion => "completion",
        }
    }

    /// The thing of this word, where records are read back.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Tool, Self::Resource, Self::Prompt, Self::Completion]
            .into_iter()
            .find(|thing| thing.as_str() == word)
    }
}

/// What an argument completion is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionReference {
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

impl Priority {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

/// What the caller said about the occasion; recorded and handed to hooks.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// A label of the caller's choice where the front lets it choose one. It identifies nobody.
    pub session_id: Option<Arc<str>>,
    pub user_id: Option<Arc<str>>,
    /// The session that the caller has with the front, where it has one.
    pub client_session: Option<ClientSession>,
    /// Which clients' offers and conversations the call belongs to.
    pub era: ClientEra,
    /// What of the yard the front shows: names lead nowhere else.
    pub scope: YardScope,
    pub origin: CallOrigin,
    /// By which front it came in.
    pub front: Option<FrontName>,
    /// The version of the tool that is asked for; the newest where this is not said. Sources read here which it is.
    pub version: Option<String>,
    /// Whether the caller asked for that version, and did not just get the newest.
    pub version_asked: bool,
}

/// A client's session with a front: an MCP session, a control socket (such as a tab's), a terminal UI. The front makes it,
/// so unlike `session_id` it says which client a call is of.
#[derive(Debug, Clone)]
pub struct ClientSession {
    // Shared, because every call carries one.
    inner: Arc<SessionParts>,
}

#[derive(Debug)]
struct SessionParts {
    id: Arc<str>,
    capabilities: ClientCapabilities,
    ended: CancellationToken,
}

impl ClientSession {
    /// `id` is unique among the sessions of all fronts. `abilities` has everything that the client can be asked in any
    /// of its calls. `ended` is cancelled when the session is over: what was set up for it can go.
    pub fn new(id: impl Into<Arc<str>>, abilities: ClientCapabilities, ended: CancellationToken) -> Self {
        Self { inner: Arc::new(SessionParts { id: id.into(), capabilities: abilities, ended }) }
    }

    pub fn id(&self) -> &Arc<str> {
        &self.inner.id
    }

    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.inner.capabilities
    }

    pub fn ended(&self) -> &CancellationToken {
        &self.inner.ended
    }
}

/// What a client speaks, as far as sources speak differently to clients of different eras. Fronts that are not of the
/// protocol leave it to the source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ClientEra {
    /// The newest that the source knows.
    #[default]
    Newest,
    Legacy,
}

/// The fronts that say which they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrontName {
    Mcp,
    Rest,
    Control,
    /// The terminal UI.
    Ui,
    /// A verb of the command line.
    Cli,
}

impl FrontName {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Rest => "rest",
            Self::Control => "control",
            Self::Ui => "ui",
            Self::Cli => "cli",
        }
    }
}

/// Who makes a call, of those who act for the principal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CallOrigin {
    #[default]
    Caller,
    /// A program that the caller runs. It waits for its calls, so they must not wait for the caller's own places.
    Program,
}

impl CallOrigin {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Program => "program",
        }
    }
}
