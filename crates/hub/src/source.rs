//! The interface of everything that offers tools, resources or prompts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::broadcast;
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

/// A provider of tools, resources or prompts.
pub trait Source: Send + Sync {
    fn name(&self) -> &SourceName;

    /// How the yard names the entries of this source. Native tools keep their plain name.
    fn prefix(&self) -> Prefix {
        Prefix::Source
    }

    /// Returns the current offer. Return the same `Arc` while the offer is unchanged, so that the
    /// yard has nothing to read. The yard calls this while it holds its list of sources, so do not
    /// use the [`SourceNotifier`] in here.
    fn offer(&self) -> Arc<SourceOffer>;

    /// Returns the offer to clients of the legacy era, if it differs and is known.
    fn legacy_offer(&self) -> Option<Arc<SourceOffer>> {
        None
    }

    /// Determines the offer to clients of this era, if it is not known yet. Free otherwise.
    fn discover_era(&self, _era: ClientEra) -> Option<BoxFuture<'_, ()>> {
        None
    }

    /// Returns the current status.
    fn status(&self) -> SourceStatus {
        SourceStatus::ready()
    }

    /// Returns when the source first started, until it has settled. Must be cheap, because every
    /// list calls it.
    fn starting_since(&self) -> Option<Instant> {
        None
    }

    /// Called once, when the source is added to the yard.
    fn attach(&self, _feed: SourceNotifier) {}

    /// Returns permissions that every entry will require, known before the source has listed any. A
    /// source without entries is shown only to principals that have them.
    fn permissions(&self) -> &[String] {
        &[]
    }

    /// Called for the first subscriber to a resource. From then on the source reports updates to
    /// its [`SourceNotifier`]. The yard calls this and `unwatch` under a lock: neither may block or
    /// use the [`SourceNotifier`].
    fn watch(&self, _uri: &str) {}

    /// Called when the last subscriber to a resource is gone.
    fn unwatch(&self, _uri: &str) {}

    /// Executes a command on the connection in the background. Sources without a connection do not
    /// support this.
    fn manage(&self, _order: SourceCommand) -> Result<(), ManageError> {
        Err(ManageError::Unmanaged)
    }

    /// Returns the messages exchanged after the message with this number, oldest first, as far as
    /// they are stored.
    fn transcript(&self, _after: Option<u64>) -> Vec<TranscriptEntry> {
        Vec::new()
    }

    /// Starts a login in the background and returns the URL that the user has to open. The status
    /// reports the progress.
    fn log_in(&self) -> BoxFuture<'_, Result<String, LoginError>> {
        Box::pin(async { Err(LoginError::NothingToDo("this source does not support login".to_owned())) })
    }

    /// Returns whether [`Source::render_error`] is implemented.
    fn renders_errors(&self) -> bool {
        false
    }

    /// Renders an error of the yard for a call of this tool, for sources whose users expect every
    /// answer in a specific format. Other sources leave this to the fronts.
    fn render_error(&self, _tool: &str, _error: &HubError, _call: &CallRecord) -> Option<Outcome> {
        None
    }

    /// Executes the call. Dropping the future cancels it.
    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>>;
}

/// A call to a source, in the source's own names.
#[derive(Debug)]
pub struct SourceCall {
    pub record: Arc<CallRecord>,
    pub target: SourceTarget,
    pub deadline: Deadline,
    /// Canceled when the caller cancels or disconnects, and when the deadline has passed.
    pub cancel: CancellationToken,
    /// Headers of the caller's request that the configuration forwards, by lowercase name.
    pub headers: Vec<(String, String)>,
    pub meta: Option<Raw>,
    pub client: CallerChannel,
}

impl SourceCall {
    /// A call made without a yard, with no time limit and a caller that only reads the outcome.
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

/// The target of a call, in the source's own names.
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

    /// The source's own name of the target, or its URI.
    pub fn subject(&self) -> &str {
        match self {
            Self::Tool { name, .. } | Self::Prompt { name, .. } | Self::PromptCompletion { name, .. } => name,
            Self::Resource { uri } | Self::TemplateCompletion { uri, .. } => uri,
        }
    }
}

/// Everything that a source offers at one point in time.
#[derive(Default)]
pub struct SourceOffer {
    pub tools: Vec<ToolOffer>,
    pub resources: Vec<ResourceOffer>,
    pub templates: Vec<TemplateOffer>,
    pub prompts: Vec<PromptOffer>,
    /// Whether the source supports argument completion.
    pub supports_completion: bool,
    /// The bytes reserved for these definitions, for as long as they are stored.
    pub reserved: Option<DefinitionReservation>,
}

/// A tool as advertised by the source, and the properties added by the yard.
#[derive(Clone)]
pub struct ToolOffer {
    pub definition: Raw,
    /// All of these are required to see and to call the tool.
    pub permissions: Vec<String>,
    /// Version, author, category, tags and other metadata from the author.
    pub metadata: Map<String, Value>,
    pub hooks: Vec<Arc<dyn Hooks>>,
    pub listing: ToolListing,
}

/// Whether a tool is part of the list that clients read as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolListing {
    #[default]
    Listed,
    /// Not listed, to keep the list short. The tool can be found by searching and called by name.
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

/// Notifies the yard of changes in a source.
#[derive(Debug, Clone)]
pub struct SourceNotifier {
    pub(crate) yard: std::sync::Weak<Yard>,
    pub(crate) source: SourceName,
}

impl SourceNotifier {
    /// The offer changed: the yard reads it again.
    pub fn offer_changed(&self) {
        if let Some(yard) = self.yard.upgrade() {
            yard.refresh();
        }
    }

    /// The status changed.
    pub fn status_changed(&self) {
        if let Some(yard) = self.yard.upgrade() {
            yard.status_changed(&self.source);
        }
    }

    /// Subscribes to the changes of the yard, or returns `None` if the yard is gone.
    pub fn subscribe_changes(&self) -> Option<broadcast::Receiver<Arc<YardEvent>>> {
        self.yard.upgrade().map(|yard| yard.events().subscribe_changes())
    }

    /// The process of the source wrote a line to standard error.
    pub fn stderr(&self, line: &str) {
        if let Some(yard) = self.yard.upgrade() {
            let (source, at) = (self.source.clone(), std::time::SystemTime::now());
            let hidden = || yard.redaction().redact_text(line).into_owned();
            yard.events().publish_stderr(|| StderrLine { source, at, line: hidden() });
        }
    }

    /// The contents of a resource changed.
    pub fn resource_updated(&self, uri: &str) {
        if let Some(yard) = self.yard.upgrade() {
            let (source, uri) = (self.source.clone(), uri.to_owned());
            yard.events().publish(YardEvent::ResourceUpdated { source, uri });
        }
    }
}
