//! What anything that offers tools, resources or prompts must be able to do.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::caller_channel::CallerChannel;
use crate::deadline::Deadline;
use crate::definition_budget::DefinitionReservation;
use crate::error::HubError;
use crate::events::{StderrLine, YardEvent};
use crate::execution::ExecutionId;
use crate::hooks::Hooks;
use crate::json::Raw;
use crate::manage::{LoginError, ManageError, SourceCommand, TranscriptEntry};
use crate::name::{Prefix, SourceName};
use crate::outcome::Outcome;
use crate::principal::Principal;
use crate::record::CallRecord;
use crate::request::{ClientEra, EntryKind};
use crate::status::SourceStatus;
use crate::yard::Yard;

/// Anything that offers tools, resources or prompts.
pub trait Source: Send + Sync {
    fn name(&self) -> &SourceName;

    /// How the yard names what this source offers. Native tools keep their plain name.
    fn prefix(&self) -> Prefix {
        Prefix::Source
    }

    /// What is offered just now. As long as that is the same, hand out the same `Arc`: the yard then has nothing
    /// to read. It asks while it holds its list of sources, so do not tell the [`SourceNotifier`] anything from in here.
    fn offer(&self) -> Arc<SourceOffer>;

    /// What is offered to clients of the legacy era, where that is something else, and is known.
    fn legacy_offer(&self) -> Option<Arc<SourceOffer>> {
        None
    }

    /// Finds out what clients of this era are offered, where that is still to be found out. Costs nothing otherwise.
    fn discover_era(&self, _era: ClientEra) -> Option<BoxFuture<'_, ()>> {
        None
    }

    /// How it is doing.
    fn status(&self) -> SourceStatus {
        SourceStatus::ready()
    }

    /// Since when it has been starting for the first time; nothing once that is over. Every list asks this, so it
    /// must cost nothing.
    fn starting_since(&self) -> Option<Instant> {
        None
    }

    /// Called once, when the yard takes the source in.
    fn attach(&self, _feed: SourceNotifier) {}

    /// Permissions that everything it will ever offer needs, known before it has said what that is. A source that
    /// offers nothing is shown only to those who hold them.
    fn permissions(&self) -> &[String] {
        &[]
    }

    /// The first subscriber to this resource is there. The source tells its [`SourceNotifier`] of updates from then on. Called
    /// under a lock of the yard, as is `unwatch`: neither may wait, nor use the [`SourceNotifier`].
    fn watch(&self, _uri: &str) {}

    /// The last subscriber to this resource is gone.
    fn unwatch(&self, _uri: &str) {}

    /// Does something about its connection, in the background. A source without one has nothing to do.
    fn manage(&self, _order: SourceCommand) -> Result<(), ManageError> {
        Err(ManageError::Unmanaged)
    }

    /// What was said with it after the message of this number, oldest first, as far as it is kept.
    fn transcript(&self, _after: Option<u64>) -> Vec<TranscriptEntry> {
        Vec::new()
    }

    /// Begins to log in to it, in the background, and gives back the address that a person has to open. Its status says
    /// how that goes.
    fn log_in(&self) -> BoxFuture<'_, Result<String, LoginError>> {
        Box::pin(async { Err(LoginError::NothingToDo("it is no server that one logs in to".to_owned())) })
    }

    /// Whether [`Source::render_error`] has anything to say.
    fn renders_errors(&self) -> bool {
        false
    }

    /// The yard has refused, stopped or lost a call of this tool. A source whose users expect every answer in a form
    /// of its own gives that answer here; everybody else leaves it to the fronts.
    fn render_error(&self, _tool: &str, _error: &HubError, _call: &CallRecord) -> Option<Outcome> {
        None
    }

    /// Carries the call out. Dropping the future cancels it.
    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>>;
}

/// A call on its way to the source, in the source's own names.
#[derive(Debug)]
pub struct SourceCall {
    pub record: Arc<CallRecord>,
    pub target: SourceTarget,
    pub deadline: Deadline,
    /// Cancelled when the caller cancels or goes away, and when the time is up.
    pub cancel: CancellationToken,
    /// Headers of the caller's request that the configuration lets through, by lower-case name.
    pub headers: Vec<(String, String)>,
    pub meta: Option<Raw>,
    pub client: CallerChannel,
}

impl SourceCall {
    /// A call that did not come through a yard, with all the time there is, whose caller wants nothing but the outcome.
    pub fn new(id: ExecutionId, target: SourceTarget, principal: Principal) -> Self {
        Self {
            record: Arc::new(CallRecord::new(id, target.kind(), target.subject(), principal)),
            target,
            deadline: Deadline::after(Duration::MAX),
            cancel: CancellationToken::new(),
            headers: Vec::new(),
            meta: None,
            client: CallerChannel::silent(),
        }
    }
}

/// What is asked of the source.
#[derive(Debug)]
pub enum SourceTarget {
    Tool { name: String, arguments: Raw },
    Resource { uri: String },
    Prompt { name: String, arguments: Raw },
    PromptCompletion { name: String, argument: String, value: String, context: Option<Raw> },
    TemplateCompletion { uri: String, argument: String, value: String, context: Option<Raw> },
}

impl SourceTarget {
    pub fn kind(&self) -> EntryKind {
        match self {
            Self::Tool { .. } => EntryKind::Tool,
            Self::Resource { .. } => EntryKind::Resource,
            Self::Prompt { .. } => EntryKind::Prompt,
            Self::PromptCompletion { .. } | Self::TemplateCompletion { .. } => EntryKind::Completion,
        }
    }

    /// The source's own name of it, or its URI.
    pub fn subject(&self) -> &str {
        match self {
            Self::Tool { name, .. } | Self::Prompt { name, .. } | Self::PromptCompletion { name, .. } => name,
            Self::Resource { uri } | Self::TemplateCompletion { uri, .. } => uri,
        }
    }
}

/// Everything that a source offers at one moment.
#[derive(Default)]
pub struct SourceOffer {
    pub tools: Vec<ToolOffer>,
    pub resources: Vec<ResourceOffer>,
    pub templates: Vec<TemplateOffer>,
    pub prompts: Vec<PromptOffer>,
    /// Whether the source completes arguments.
    pub supports_completion: bool,
    /// The bytes that all this takes up, for as long as it is kept.
    pub reserved: Option<DefinitionReservation>,
}

/// A tool as the source advertised it, and what the yard adds.
#[derive(Clone)]
pub struct ToolOffer {
    pub definition: Raw,
    /// All of these are needed to see and to call it.
    pub permissions: Vec<String>,
    /// Version, author, category, tags and whatever else the author wrote down.
    pub metadata: Map<String, Value>,
    pub hooks: Vec<Arc<dyn Hooks>>,
    pub listing: ToolListing,
}

/// Whether a tool is on the list that every client reads whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolListing {
    #[default]
    Listed,
    /// It takes up no room there; whoever searches finds it, and whoever knows its name calls it.
    Unlisted,
}

#[derive(Debug, Clone)]
pub struct ResourceOffer {
    pub definition: Raw,
    pub permissions: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct TemplateOffer {
    pub definition: Raw,
    pub permissions: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct PromptOffer {
    pub definition: Raw,
    pub permissions: Vec<String>,
}

impl std::fmt::Debug for SourceOffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceOffer")
            .field("tools", &self.tools.len())
            .field("resources", &self.resources.len())
            .field("templates", &self.templates.len())
            .field("prompts", &self.prompts.len())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ToolOffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolOffer")
            .field("definition", &self.definition.get())
            .field("permissions", &self.permissions)
            .field("metadata", &self.metadata)
            .field("hooks", &self.hooks.len())
            .field("listing", &self.listing)
            .finish()
    }
}

/// A source's way to tell the yard that something changed.
#[derive(Debug, Clone)]
pub struct SourceNotifier {
    pub(crate) yard: std::sync::Weak<Yard>,
    pub(crate) source: SourceName,
}

impl SourceNotifier {
    /// The offer is not what it was: the yard reads it again.
    pub fn offer_changed(&self) {
        if let Some(yard) = self.yard.upgrade() {
            yard.refresh();
        }
    }

    /// How the source is doing is not what it was.
    pub fn status_changed(&self) {
        if let Some(yard) = self.yard.upgrade() {
            yard.status_changed(&self.source);
        }
    }

    /// Its process wrote a line to standard error.
    pub fn stderr(&self, line: &str) {
        if let Some(yard) = self.yard.upgrade() {
            let (source, at) = (self.source.clone(), std::time::SystemTime::now());
            let hidden = || yard.redaction().redact_text(line).into_owned();
            yard.events().publish_stderr(|| StderrLine { source, at, line: hidden() });
        }
    }

    /// The contents of a resource are not what they were.
    pub fn resource_updated(&self, uri: &str) {
        if let Some(yard) = self.yard.upgrade() {
            let (source, uri) = (self.source.clone(), uri.to_owned());
            yard.events().publish(YardEvent::ResourceUpdated { source, uri });
        }
    }
}
