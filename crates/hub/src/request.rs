//! A call as submitted by a front.

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

/// One call: the target, the principal, the deadline, and the channel back to the caller. Dropping
/// the future of the call cancels it.
#[derive(Debug)]
pub struct CallRequest {
    pub target: CallTarget,
    /// The tool that `target` names, if the front has already resolved it. It is not resolved
    /// again.
    pub tool: Option<Arc<ToolEntry>>,
    pub principal: Principal,
    pub deadline: Deadline,
    pub cancel: CancellationToken,
    pub priority: Priority,
    pub context: CallContext,
    /// Headers of the caller's request that the configuration forwards to sources, by lowercase
    /// name.
    pub headers: Vec<(String, String)>,
    /// Free-form metadata of the call (`_meta` of the protocol, including trace context).
    pub meta: Option<Raw>,
    pub client: CallerChannel,
    /// The ID of the call, if the front assigns it in advance.
    pub id: Option<ExecutionId>,
    /// Where the front reads details of the call in addition to the outcome, if it needs them.
    pub details: Option<Arc<CallDetails>>,
}

impl CallRequest {
    /// A call with the maximum time that the yard allows and a caller that only reads the outcome.
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

/// The target of a call, in the names that the caller used.
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

    /// The beginning of the subject, for the record of a call with an unknown name.
    pub(crate) fn short_subject(&self) -> Arc<str> {
        json::truncate_for_message(self.subject()).into()
    }

    /// The name or URI of the target, for messages and events.
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

/// The kind of the target.
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

    /// Parses the text returned by `as_str`, for stored records.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Tool, Self::Resource, Self::Prompt, Self::Completion]
            .into_iter()
            .find(|thing| thing.as_str() == word)
    }
}

/// The target of an argument completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionReference {
    Prompt(String),
    /// A template or a resource, by its URI.
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

/// The context of a call, as stated by the caller. It is recorded and passed to hooks.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// A label chosen by the caller, if the front supports it. It does not identify a client.
    pub session_id: Option<Arc<str>>,
    pub user_id: Option<Arc<str>>,
    /// The session of the caller with the front, if there is one.
    pub client_session: Option<ClientSession>,
    /// The era of the client, which selects the catalog and the upstream sessions of the call.
    pub era: ClientEra,
    /// The part of the yard that the front shows. Names are resolved only within it.
    pub scope: YardScope,
    pub origin: CallOrigin,
    /// The front that received the call.
    pub front: Option<FrontName>,
    /// The requested version of the tool, or `None` for the newest. Sources see the resolved
    /// version.
    pub version: Option<String>,
    /// Whether the caller requested that version explicitly.
    pub version_asked: bool,
}

/// A session of a client with a front: an MCP session, a control socket (such as a browser tab), or
/// a terminal UI. It is created by the front, so unlike `session_id` it identifies the client of a
/// call.
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
    /// Creates a session. `id` is unique among the sessions of all fronts. `abilities` contains
    /// everything that the client supports in any of its calls. `ended` is canceled when the
    /// session ends, so that resources created for it can be released.
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

/// The protocol era of a client, for sources that treat clients of different eras differently.
/// Fronts of other protocols leave it to the source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ClientEra {
    /// The newest era that the source supports.
    #[default]
    Newest,
    Legacy,
}

/// The fronts that identify themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrontName {
    Mcp,
    Rest,
    Control,
    /// The terminal UI.
    Ui,
    /// A command of the command line.
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

/// Who makes a call on behalf of the principal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CallOrigin {
    #[default]
    Caller,
    /// A program that the caller runs. The program waits for its calls, so they must not wait for
    /// the concurrency permits of the caller.
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
