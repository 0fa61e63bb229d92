//! Connecting to a server: turns settings into a live connection, or into an error with the reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use rustls::ClientConfig;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use toolyard_hub::{ClientCapabilities, DefinitionBudget, Raw};
use toolyard_wire::{
    AddressFilter, Era, HandshakeSettings, HttpClientSettings, McpClient, MessageLog, SameOriginHttp,
    ServerProfile, WireError, handshake_http, handshake_stdio, open_stdio,
};

use crate::auth::{AuthContext, AuthError, Authorizer, Challenge};
use crate::child::{Child, ProcessExit, SpawnError, SupervisorCommand};
use crate::connection::LiveConnection;
use crate::in_flight::InFlightCalls;
use crate::notifications::{ServerNotifications, build_listener};
use crate::question::{QuestionRouting, answer_questions, to_capabilities};
use crate::settings::{
    CommandSettings, ServerAuthSettings, ServerSettings, TransportSettings, UrlKind, UrlSettings,
};
use crate::tls;

mod suggestion;

/// How many challenges of one server are answered before the attempt fails.
const MOST_TRIES: usize = 3;

/// How long to wait for the standing stream of a server before continuing without it.
const STREAM: Duration = Duration::from_secs(1);

/// Default size limit of a message from a server, in bytes.
pub const MESSAGE_BYTES: usize = 32 << 20;

/// Size limit of what a server declares about itself in the handshake, in bytes. It is retained and
/// shown with the status.
const INTRODUCTION: usize = 1 << 20;

/// How much of a server's error message is used as the reason of a failure, in characters.
const REASON: usize = 2_000;

/// What all upstream connections of a process share.
#[derive(Debug, Clone)]
pub struct UpstreamContext {
    pub http: SameOriginHttp,
    /// The TLS configuration, for components that open their own connections.
    pub tls: ClientConfig,
    /// How server processes are started, so that none of them outlives this process.
    pub supervisor: SupervisorCommand,
    /// The `clientInfo` sent to servers, as JSON.
    pub client_info: Raw,
    pub auth: AuthContext,
    /// The shared budget for the definitions that servers list.
    pub definitions: DefinitionBudget,
    /// The size limit of a message from a server, in bytes. A change applies to new connections.
    pub message_bytes: Arc<AtomicUsize>,
}

impl UpstreamContext {
    /// Creates a context with a new connection pool. Selects the TLS provider of the process.
    pub fn new(supervisor: SupervisorCommand, client_info: Raw) -> Result<Self, reqwest::Error> {
        let tls = tls::tls_config();
        let http = SameOriginHttp::build(http_builder(&tls))?;
        let (definitions, message_bytes) =
            (DefinitionBudget::default(), Arc::new(AtomicUsize::new(MESSAGE_BYTES)));
        Ok(Self {
            http,
            tls,
            supervisor,
            client_info,
            auth: AuthContext::default(),
            definitions,
            message_bytes,
        })
    }

    /// Returns a copy that connects only to addresses that `filter` accepts.
    pub fn with_address_filter(&self, filter: AddressFilter) -> Result<Self, reqwest::Error> {
        let http = SameOriginHttp::build_filtered(http_builder(&self.tls), filter)?;
        Ok(Self { http, ..self.clone() })
    }
}

fn http_builder(tls: &ClientConfig) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls.clone())
        .connect_timeout(Duration::from_secs(10))
        .pool_max_idle_per_host(256)
        .tcp_nodelay(true)
}

/// Why a connection could not be established.
#[derive(Debug)]
pub(crate) struct ConnectError {
    pub(crate) reason: String,
    pub(crate) stderr: Vec<String>,
    /// The challenge of a server that requires authentication.
    pub(crate) challenge: Option<Challenge>,
    /// Whether a retry is pointless until a user does something.
    pub(crate) requires_user_action: bool,
    pub(crate) cause: Box<ConnectErrorCause>,
}

/// The cause of a [`ConnectError`], from which suggestions and details are derived.
#[derive(Debug, Default)]
pub(crate) enum ConnectErrorCause {
    #[default]
    Other,
    Failure(WireError),
    Spawn(SpawnError),
    /// The process exited, with the note about withheld environment variables.
    Exit(ProcessExit, Option<String>),
    TimedOut,
    /// Authorization failed, with the suggestion for the user.
    Unauthorized(Option<String>),
}

impl ConnectError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        let cause = Box::new(ConnectErrorCause::Other);
        Self {
            reason: reason.into(),
            stderr: Vec::new(),
            challenge: None,
            requires_user_action: false,
            cause,
        }
    }

    /// Creates the error for a server that exceeded its start timeout.
    pub(crate) fn timed_out(settings: &ServerSettings) -> Self {
        let seconds = settings.start_timeout.as_secs_f64();
        let timeout = format!("no response within {seconds} s");
        let reason = match settings.transport.downloader() {
            Some(program) => {
                format!("{timeout} (`start_timeout`); `{program}` may still be downloading the server")
            }
            None => timeout,
        };
        Self { cause: Box::new(ConnectErrorCause::TimedOut), ..Self::new(reason) }
    }
}

impl From<WireError> for ConnectError {
    fn from(failure: WireError) -> Self {
        let challenge = Challenge::from_error(&failure);
        // The caller already says that the server cannot be reached.
        let reason = match &failure {
            WireError::Unreachable(reason) => reason.chars().take(REASON).collect(),
            _ => short_reason(&failure),
        };
        Self { challenge, cause: Box::new(ConnectErrorCause::Failure(failure)), ..Self::new(reason) }
    }
}

/// Returns the error message, shortened for the status.
pub(crate) fn short_reason(failure: &WireError) -> String {
    failure.to_string().chars().take(REASON).collect()
}

impl From<SpawnError> for ConnectError {
    fn from(error: SpawnError) -> Self {
        let reason = match error.suggestion() {
            Some(suggestion) => format!("{error}; {suggestion}"),
            None => error.to_string(),
        };
        Self { cause: Box::new(ConnectErrorCause::Spawn(error)), ..Self::new(reason) }
    }
}

impl ConnectError {
    /// Creates the error for a server that cannot be used without authorization.
    pub(crate) fn unauthorized(error: &AuthError, server: &str) -> Self {
        let suggestion = error.suggestion(server);
        let reason = match &suggestion {
            Some(suggestion) => format!("{error}; {suggestion}"),
            None => error.to_string(),
        };
        let cause = Box::new(ConnectErrorCause::Unauthorized(suggestion));
        Self { requires_user_action: error.requires_user_action(), cause, ..Self::new(reason) }
    }
}

/// Answers the challenge of a failed attempt so that it can be retried. Fails if the attempt failed
/// for another reason. `generation` is that of the token that was used.
pub(crate) async fn authorize_retry(
    authorizer: &Authorizer,
    settings: &ServerSettings,
    error: ConnectError,
    generation: u64,
    attempts: &mut usize,
) -> Result<(), ConnectError> {
    let Some(challenge) = &error.challenge else { return Err(error) };
    *attempts += 1;
    let answered = match *attempts < MOST_TRIES {
        true => authorizer.answer_challenge(challenge, generation).await,
        false => Err(AuthError::TokensRejected),
    };
    answered.map_err(|error| ConnectError::unauthorized(&error, settings.name.as_str()))
}

/// Connects as a client with these capabilities. `known_era` is the era that worked last time.
pub(crate) async fn connect(
    common: &UpstreamContext,
    settings: &ServerSettings,
    authorizer: &Arc<Authorizer>,
    capabilities: &ClientCapabilities,
    known_era: Option<Era>,
    message_log: &Arc<MessageLog>,
) -> Result<(LiveConnection, ServerNotifications), ConnectError> {
    let calls = Arc::new(InFlightCalls::default());
    let max_message_bytes = common.message_bytes.load(Ordering::Relaxed);
    let (listener, notifications) =
        build_listener(Arc::clone(&calls), settings.name.to_string(), Arc::clone(message_log));
    let mut tasks = JoinSet::new();
    let mut handshake = HandshakeSettings {
        info: common.client_info.clone(),
        capabilities: to_capabilities(capabilities),
        known_era,
        sse_only: false,
    };
    let (client, server, child) = match &settings.transport {
        TransportSettings::Command(command) => {
            let mut child = Child::spawn(command, &common.supervisor)?;
            let Some((input, output)) = child.take_streams() else {
                return Err(ConnectError::new("the standard streams of the process are already in use"));
            };
            let (client, driver) =
                open_stdio(output, input, max_message_bytes, listener, Arc::clone(message_log));
            tasks.spawn(driver);
            match handshake_stdio(McpClient::Stdio(client), &handshake).await {
                Ok((client, server)) => (client, server, Some(child)),
                Err(failure) => {
                    return Err(
                        describe_startup_failure(failure, (command, &common.supervisor), &mut child).await
                    );
                }
            }
        }
        TransportSettings::Url(url) => {
            handshake.sse_only = url.kind == UrlKind::LegacySse;
            authorizer.load().await;
            let http = HttpClientSettings {
                http: common.http.clone(),
                url: Url::parse(&url.url)
                    .map_err(|error| ConnectError::new(format!("invalid URL: {error}")))?,
                headers: static_headers(url)?,
                authorization: authorizer.header(),
                max_message_bytes,
                listener,
                message_log: Arc::clone(message_log),
            };
            let (client, server) = handshake_http(http, &handshake).await?;
            (client, server, None)
        }
    };
    check_profile_size(&server)?;
    let live = LiveConnection {
        client: Arc::new(client),
        server,
        calls,
        client_info: common.client_info.clone(),
        authorizer: Arc::clone(authorizer),
        child,
        definitions: common.definitions.clone(),
        tasks,
    };
    Ok((live, notifications))
}

fn check_profile_size(server: &ServerProfile) -> Result<(), ConnectError> {
    let length = |raw: &Raw| raw.get().len();
    let instructions = server.instructions.as_deref().map_or(0, str::len);
    let bytes = server.info.as_ref().map_or(0, length) + length(&server.capabilities) + instructions;
    match bytes <= INTRODUCTION {
        true => Ok(()),
        false => Err(ConnectError::from(WireError::TooLarge(format!(
            "sent a handshake of {bytes} bytes, which exceeds the limit of {INTRODUCTION}"
        )))),
    }
}

/// Which credentials may be sent to a server that requires authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialPolicy {
    /// Only the configured ones. A server that requires more is not connected.
    ConfiguredOnly,
    /// Also those that a login has granted to this yard.
    Granted,
}

/// The parameters of a connection that serves one client only.
pub(crate) struct DedicatedConnectionParams<'a> {
    pub(crate) common: &'a UpstreamContext,
    pub(crate) settings: &'a ServerSettings,
    pub(crate) authorizer: &'a Arc<Authorizer>,
    pub(crate) capabilities: &'a ClientCapabilities,
    pub(crate) era: Option<Era>,
    pub(crate) message_log: &'a Arc<MessageLog>,
    pub(crate) credentials: CredentialPolicy,
}

/// Connects for one client, to which all requests of the server are forwarded. Also returns a
/// notification that fires when a list of the server changes.
pub(crate) async fn connect_dedicated(
    params: DedicatedConnectionParams<'_>,
) -> Result<(LiveConnection, Arc<Notify>), ConnectError> {
    let DedicatedConnectionParams {
        common,
        settings,
        authorizer,
        capabilities,
        era,
        message_log,
        credentials,
    } = params;
    let timed_out = || ConnectError::timed_out(settings);
    let mut attempts = 0;
    let (mut live, notifications) = loop {
        let generation = authorizer.token_generation();
        let opening = connect(common, settings, authorizer, capabilities, era, message_log);
        let opened = tokio::time::timeout(settings.start_timeout, opening).await;
        let error = match opened.unwrap_or_else(|_| Err(timed_out())) {
            Ok(opened) => break opened,
            Err(error) => error,
        };
        if credentials == CredentialPolicy::ConfiguredOnly && settings.auth == ServerAuthSettings::OnChallenge
        {
            return Err(error);
        }
        authorize_retry(authorizer, settings, error, generation, &mut attempts).await?;
    };
    let answering = answer_questions(
        Arc::clone(&live.client),
        Arc::clone(&live.calls),
        QuestionRouting::Caller,
        notifications.questions,
    );
    live.tasks.spawn(answering);
    // Some servers send requests on the standing stream, and lose those sent before it is open.
    let _ = tokio::time::timeout(STREAM, live.spawn_listener(settings.name.as_str())).await;
    Ok((live, notifications.lists_changed))
}

/// Describes why a process failed to start as a server, with its standard error.
async fn describe_startup_failure(
    failure: WireError,
    (command, supervisor): (&CommandSettings, &SupervisorCommand),
    child: &mut Child,
) -> ConnectError {
    // The process often exits a moment after its streams break.
    let exited = tokio::time::timeout(Duration::from_millis(500), child.wait()).await;
    let stderr = child.stderr_tail();
    let (reason, cause) = match exited {
        Ok(exit) => {
            let note = supervisor.environment.withheld_note(command, &stderr);
            (format!("`{}` {}", command.program, exit.description), ConnectErrorCause::Exit(exit, note))
        }
        Err(_) => (failure.to_string(), ConnectErrorCause::Failure(failure)),
    };
    ConnectError { stderr, cause: Box::new(cause), ..ConnectError::new(reason) }
}

fn static_headers(url: &UrlSettings) -> Result<HeaderMap, ConnectError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &url.headers {
        // The value may be a secret, so the error contains only the name.
        let invalid = || ConnectError::new(format!("header `{name}` has an invalid name or value"));
        let key = HeaderName::try_from(name.as_str()).map_err(|_| invalid())?;
        let mut value = HeaderValue::try_from(value.reveal()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}
