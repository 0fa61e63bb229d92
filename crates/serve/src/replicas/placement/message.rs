//! What replicas say to each other about a server that one of them runs, as JSON. Everything that
//! a source and its callers exchange is passed on unchanged.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolyard_hub::{
    AuthStatus, CallerUpdate, ClientCapabilities, ErrorKind, HubError, LogLevel, LogLine, Outcome, Progress,
    PromptOffer, Question, QuestionKind, Raw, ResourceOffer, SourceCommand, SourceError, SourceOffer,
    SourceState, SourceStatus, SourceTarget, TemplateOffer, ToolListing, ToolOffer,
};
use toolyard_wire::{Era, Version};

/// A call, as the replica that received it from its client sends it to the one that runs the server.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CallMessage {
    pub(super) id: String,
    pub(super) target: TargetMessage,
    pub(super) principal: String,
    pub(super) session: Option<SessionMessage>,
    pub(super) is_legacy: bool,
    pub(super) version: Option<String>,
    pub(super) version_asked: bool,
    pub(super) headers: Vec<(String, String)>,
    pub(super) meta: Option<Raw>,
    pub(super) capabilities: CapabilitiesMessage,
}

/// The session of a client with the replica that received the call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SessionMessage {
    pub(super) id: String,
    pub(super) capabilities: CapabilitiesMessage,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CapabilitiesMessage {
    elicit_form: bool,
    elicit_url: bool,
    sample: bool,
    roots: bool,
    log_level: Option<LogLevel>,
}

impl From<&ClientCapabilities> for CapabilitiesMessage {
    fn from(capabilities: &ClientCapabilities) -> Self {
        let ClientCapabilities { elicit_form, elicit_url, sample, roots, log_level } = *capabilities;
        Self { elicit_form, elicit_url, sample, roots, log_level }
    }
}

impl From<CapabilitiesMessage> for ClientCapabilities {
    fn from(message: CapabilitiesMessage) -> Self {
        let CapabilitiesMessage { elicit_form, elicit_url, sample, roots, log_level } = message;
        Self { elicit_form, elicit_url, sample, roots, log_level }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum TargetMessage {
    Tool { name: String, arguments: Raw },
    Resource { uri: String },
    Prompt { name: String, arguments: Raw },
    PromptCompletion { name: String, argument: String, value: String, context: Option<Raw> },
    TemplateCompletion { uri: String, argument: String, value: String, context: Option<Raw> },
}

impl From<&SourceTarget> for TargetMessage {
    fn from(target: &SourceTarget) -> Self {
        match target {
            SourceTarget::Tool { name, arguments } => {
                Self::Tool { name: name.clone(), arguments: arguments.clone() }
            }
            SourceTarget::Resource { uri } => Self::Resource { uri: uri.clone() },
            SourceTarget::Prompt { name, arguments } => {
                Self::Prompt { name: name.clone(), arguments: arguments.clone() }
            }
            SourceTarget::PromptCompletion { name, argument, value, context } => Self::PromptCompletion {
                name: name.clone(),
                argument: argument.clone(),
                value: value.clone(),
                context: context.clone(),
            },
            SourceTarget::TemplateCompletion { uri, argument, value, context } => Self::TemplateCompletion {
                uri: uri.clone(),
                argument: argument.clone(),
                value: value.clone(),
                context: context.clone(),
            },
        }
    }
}

impl From<TargetMessage> for SourceTarget {
    fn from(message: TargetMessage) -> Self {
        match message {
            TargetMessage::Tool { name, arguments } => Self::Tool { name, arguments },
            TargetMessage::Resource { uri } => Self::Resource { uri },
            TargetMessage::Prompt { name, arguments } => Self::Prompt { name, arguments },
            TargetMessage::PromptCompletion { name, argument, value, context } => {
                Self::PromptCompletion { name, argument, value, context }
            }
            TargetMessage::TemplateCompletion { uri, argument, value, context } => {
                Self::TemplateCompletion { uri, argument, value, context }
            }
        }
    }
}

/// One message of the response to a call. The last one is `Outcome` or `Error`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum CallFrame {
    /// Says nothing, so that a proxy between the replicas does not close a quiet connection.
    Alive,
    Progress {
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    Chunk(Value),
    Log {
        level: LogLevel,
        logger: Option<String>,
        data: Value,
    },
    /// The number identifies the batch in the answer.
    Ask {
        batch: u64,
        questions: Vec<QuestionMessage>,
    },
    Pause {
        retry_ms: u64,
    },
    Outcome {
        failed: bool,
        modern: bool,
        body: Raw,
    },
    Error(ErrorMessage),
}

impl CallFrame {
    /// Converts an update other than questions, which need a number.
    pub(super) fn from_update(update: CallerUpdate) -> Option<Self> {
        Some(match update {
            CallerUpdate::Progress(Progress { progress, total, message }) => {
                Self::Progress { progress, total, message }
            }
            CallerUpdate::Chunk(chunk) => Self::Chunk(chunk),
            CallerUpdate::Log(LogLine { level, logger, data }) => Self::Log { level, logger, data },
            CallerUpdate::Pause(pause) => Self::Pause { retry_ms: millis(pause.retry) },
            CallerUpdate::Ask(_) => return None,
        })
    }

    pub(super) fn from_result(result: Result<Outcome, HubError>) -> Self {
        match result {
            Ok(Outcome { body, failed, modern }) => Self::Outcome { failed, modern, body },
            Err(error) => Self::Error(ErrorMessage::from(&error)),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct QuestionMessage {
    key: String,
    kind: QuestionKindMessage,
    params: Raw,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum QuestionKindMessage {
    ElicitForm,
    ElicitUrl,
    Sample,
    Roots,
}

impl From<Question> for QuestionMessage {
    fn from(question: Question) -> Self {
        let kind = match question.kind {
            QuestionKind::ElicitForm => QuestionKindMessage::ElicitForm,
            QuestionKind::ElicitUrl => QuestionKindMessage::ElicitUrl,
            QuestionKind::Sample => QuestionKindMessage::Sample,
            QuestionKind::Roots => QuestionKindMessage::Roots,
        };
        Self { key: question.key, kind, params: question.params }
    }
}

impl From<QuestionMessage> for Question {
    fn from(message: QuestionMessage) -> Self {
        let kind = match message.kind {
            QuestionKindMessage::ElicitForm => QuestionKind::ElicitForm,
            QuestionKindMessage::ElicitUrl => QuestionKind::ElicitUrl,
            QuestionKindMessage::Sample => QuestionKind::Sample,
            QuestionKindMessage::Roots => QuestionKind::Roots,
        };
        Self { key: message.key, kind, params: message.params }
    }
}

/// The answers to one batch of questions.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AnswerMessage {
    pub(super) batch: u64,
    pub(super) answers: Result<Vec<(String, Raw)>, ErrorMessage>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ErrorMessage {
    kind: String,
    message: String,
    suggestion: Option<String>,
    details: Option<Value>,
    retry_after_ms: Option<u64>,
    origin: Option<OriginMessage>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OriginMessage {
    code: i64,
    message: String,
    data: Option<Value>,
}

impl From<&HubError> for ErrorMessage {
    fn from(error: &HubError) -> Self {
        let origin = error.source_error().cloned();
        Self {
            kind: error.kind().as_str().to_owned(),
            message: error.message().to_owned(),
            suggestion: error.suggestion().map(ToOwned::to_owned),
            details: error.details().cloned(),
            retry_after_ms: error.retry_after().map(millis),
            origin: origin.map(|SourceError { code, message, data }| OriginMessage { code, message, data }),
        }
    }
}

impl From<ErrorMessage> for HubError {
    fn from(error: ErrorMessage) -> Self {
        let kind = ErrorKind::from_words(&error.kind).unwrap_or(ErrorKind::ToolFailed);
        let mut hub_error = Self::new(kind, error.message);
        if let Some(suggestion) = error.suggestion {
            hub_error = hub_error.with_suggestion(suggestion);
        }
        if let Some(details) = error.details {
            hub_error = hub_error.with_details(details);
        }
        if let Some(wait) = error.retry_after_ms {
            hub_error = hub_error.with_retry_after(Duration::from_millis(wait));
        }
        if let Some(OriginMessage { code, message, data }) = error.origin {
            hub_error = hub_error.with_source_error(SourceError { code, message, data });
        }
        hub_error
    }
}

/// A change of the server. The first message contains both offers, if they are known.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum StateFrame {
    /// Like [`CallFrame::Alive`].
    Alive,
    State(Box<StateMessage>),
    ResourceUpdated {
        uri: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StateMessage {
    pub(super) status: StatusMessage,
    /// `None` if it has not changed or is not known yet.
    pub(super) offer: Option<OfferMessage>,
    pub(super) legacy_offer: LegacyOfferMessage,
    /// Whether the offer for legacy clients is still to be determined.
    pub(super) is_legacy_unknown: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum LegacyOfferMessage {
    Unchanged,
    /// Legacy clients get the same offer as others, as far as is known.
    Same,
    Own(OfferMessage),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StatusMessage {
    state: String,
    reason: Option<String>,
    suggestion: Option<String>,
    stderr: Vec<String>,
    warnings: Vec<String>,
    transport: Option<String>,
    version: Option<String>,
    authorization: String,
    server_info: Option<Raw>,
    age_ms: u64,
    retry_in_ms: Option<u64>,
    startup_complete: bool,
}

impl From<SourceStatus> for StatusMessage {
    fn from(status: SourceStatus) -> Self {
        Self {
            state: status.state.as_str().to_owned(),
            reason: status.reason,
            suggestion: status.suggestion,
            stderr: status.stderr,
            warnings: status.warnings,
            transport: status.transport.map(ToOwned::to_owned),
            version: status.version.map(ToOwned::to_owned),
            authorization: status.authorization.as_str().to_owned(),
            server_info: status.server_info,
            age_ms: millis(status.since.elapsed()),
            retry_in_ms: status.retry_at.map(|at| millis(at.saturating_duration_since(Instant::now()))),
            startup_complete: status.startup_complete,
        }
    }
}

impl From<StatusMessage> for SourceStatus {
    fn from(message: StatusMessage) -> Self {
        const TRANSPORTS: [&str; 3] = ["stdio", "streamable-http", "sse"];
        let now = Instant::now();
        let state = SourceState::from_word(&message.state).unwrap_or(SourceState::Failed);
        let version = message.version.as_deref().and_then(Version::parse);
        Self {
            reason: message.reason,
            suggestion: message.suggestion,
            stderr: message.stderr,
            warnings: message.warnings,
            transport: TRANSPORTS.into_iter().find(|known| Some(*known) == message.transport.as_deref()),
            version: version.map(Version::as_str),
            era: version.map(|version| match version.era() {
                Era::Legacy => "legacy",
                Era::Modern => "modern",
            }),
            authorization: AuthStatus::from_word(&message.authorization).unwrap_or(AuthStatus::Unsupported),
            server_info: message.server_info,
            since: now.checked_sub(Duration::from_millis(message.age_ms)).unwrap_or(now),
            retry_at: message.retry_in_ms.and_then(|wait| now.checked_add(Duration::from_millis(wait))),
            ..Self::new(state, message.startup_complete)
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct OfferMessage {
    tools: Vec<ToolMessage>,
    resources: Vec<EntryMessage>,
    templates: Vec<EntryMessage>,
    prompts: Vec<EntryMessage>,
    supports_completion: bool,
}

/// A tool of a server. Hooks do not apply to servers.
#[derive(Debug, Serialize, Deserialize)]
struct ToolMessage {
    definition: Raw,
    permissions: Vec<String>,
    metadata: Map<String, Value>,
    is_listed: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct EntryMessage {
    definition: Raw,
    permissions: Vec<String>,
}

impl From<&SourceOffer> for OfferMessage {
    fn from(offer: &SourceOffer) -> Self {
        let entry = |definition: &Raw, permissions: &[String]| EntryMessage {
            definition: definition.clone(),
            permissions: permissions.to_vec(),
        };
        let tool = |tool: &ToolOffer| ToolMessage {
            definition: tool.definition.clone(),
            permissions: tool.permissions.clone(),
            metadata: tool.metadata.clone(),
            is_listed: tool.listing == ToolListing::Listed,
        };
        Self {
            tools: offer.tools.iter().map(tool).collect(),
            resources: offer.resources.iter().map(|one| entry(&one.definition, &one.permissions)).collect(),
            templates: offer.templates.iter().map(|one| entry(&one.definition, &one.permissions)).collect(),
            prompts: offer.prompts.iter().map(|one| entry(&one.definition, &one.permissions)).collect(),
            supports_completion: offer.supports_completion,
        }
    }
}

impl OfferMessage {
    /// Returns the number of bytes of all definitions.
    pub(super) fn bytes(&self) -> usize {
        let entries = self.resources.iter().chain(&self.templates).chain(&self.prompts);
        let entries = entries.map(|entry| &entry.definition);
        self.tools.iter().map(|tool| &tool.definition).chain(entries).map(|raw| raw.get().len()).sum()
    }
}

impl From<OfferMessage> for SourceOffer {
    fn from(message: OfferMessage) -> Self {
        let tool = |tool: ToolMessage| ToolOffer {
            definition: tool.definition,
            permissions: tool.permissions,
            metadata: tool.metadata,
            hooks: Vec::new(),
            listing: if tool.is_listed { ToolListing::Listed } else { ToolListing::Unlisted },
        };
        let resource = |EntryMessage { definition, permissions }| ResourceOffer { definition, permissions };
        let template = |EntryMessage { definition, permissions }| TemplateOffer { definition, permissions };
        let prompt = |EntryMessage { definition, permissions }| PromptOffer { definition, permissions };
        Self {
            tools: message.tools.into_iter().map(tool).collect(),
            resources: message.resources.into_iter().map(resource).collect(),
            templates: message.templates.into_iter().map(template).collect(),
            prompts: message.prompts.into_iter().map(prompt).collect(),
            supports_completion: message.supports_completion,
            reserved: None,
        }
    }
}

/// The resources to which a replica has subscriptions.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WatchMessage {
    pub(super) uris: BTreeSet<String>,
}

/// The session of a client has ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SessionEndMessage {
    pub(super) principal: String,
    pub(super) session: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum CommandMessage {
    Reconnect,
    Enable,
    Disable,
}

impl From<SourceCommand> for CommandMessage {
    fn from(command: SourceCommand) -> Self {
        match command {
            SourceCommand::Reconnect => Self::Reconnect,
            SourceCommand::Enable => Self::Enable,
            SourceCommand::Disable => Self::Disable,
        }
    }
}

impl From<CommandMessage> for SourceCommand {
    fn from(message: CommandMessage) -> Self {
        match message {
            CommandMessage::Reconnect => Self::Reconnect,
            CommandMessage::Enable => Self::Enable,
            CommandMessage::Disable => Self::Disable,
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
