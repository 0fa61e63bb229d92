//! From settings to a connection that works, or to the reason why there is none.

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

/// How often a server may want to know who we are before it is taken to go round in circles.
const MOST_TRIES: usize = 3;

/// How long a server may take to open its standing stream before we go on without it.
const STREAM: Duration = Duration::from_secs(1);

/// The largest message that is read from a server, in bytes.
pub const MESSAGE_BYTES: usize = 32 << 20;

/// What a server may say about itself when we meet it, in bytes: that is kept, and shown with its status.
const INTRODUCTION: usize = 1 << 20;

/// How much of an error of a server is told as the reason why there is no connection, in characters.
const REASON: usize = 2_000;

/// What all connections of this process share.
#[derive(Debug, Clone)]
pub struct UpstreamContext {
    pub http: SameOriginHttp,
    /// How connections are encrypted, for whoever opens some of their own.
    pub tls: ClientConfig,
    /// How a server's process is started so that nothing of it outlives us.
    pub supervisor: SupervisorCommand,
    /// Who we say we are, as JSON.
    pub client_info: Raw,
    /// How we prove it.
    pub auth: AuthContext,
    /// Where all of them reserve the bytes of what their servers list.
    pub definitions: DefinitionBudget,
    /// The largest message that is read from a server, in bytes. Counts for connections that are opened from now on.
    pub message_bytes: Arc<AtomicUsize>,
}

impl UpstreamContext {
    /// With a fresh pool of connections. The TLS provider is chosen here, once for the process.
    pub fn new(keeper: SupervisorCommand, me: Raw) -> Result<Self, reqwest::Error> {
        let tls = tls::tls_config();
        let http = SameOriginHttp::build(http_builder(&tls))?;
        let (definitions, message_bytes) =
            (DefinitionBudget::default(), Arc::new(AtomicUsize::new(MESSAGE_BYTES)));
        Ok(Self {
            http,
            tls,
            supervisor: keeper,
            client_info: me,
            auth: AuthContext::default(),
            definitions,
            message_bytes,
        })
    }

    /// The same, for connections to addresses that `filter` accepts.
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

/// Why there is no connection.
#[derive(Debug)]
pub(crate) struct ConnectError {
    pub(crate) reason: String,
    pub(crate) stderr: Vec<String>,
    /// The server wants to know who we are first.
    pub(crate) challenge: Option<Challenge>,
    /// Trying again changes nothing until a person does something about it.
    pub(crate) requires_user_action: bool,
    pub(crate) cause: Box<ConnectErrorCause>,
}

/// What is behind a refusal, for whoever wants to know more than the reason in words.
#[derive(Debug, Default)]
pub(crate) enum ConnectErrorCause {
    #[default]
    Other,
    Failure(WireError),
    Spawn(SpawnError),
    Exit(ProcessExit),
    /// It took longer than it may.
    TimedOut,
    /// We could not become who it wants us to be; and what a person can do about that.
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

    /// The server had as much time to start as it may have.
    pub(crate) fn timed_out(settings: &ServerSettings) -> Self {
        let seconds = settings.start_timeout.as_secs_f64();
        let slow = format!("it did not answer within {seconds} s");
        let reason = match settings.transport.downloader() {
            Some(program) => format!(
                "{slow}; {program} may still be downloading it: try again, or allow it more time with start_timeout"
            ),
            None => slow,
        };
        Self { cause: Box::new(ConnectErrorCause::TimedOut), ..Self::new(reason) }
    }
}

impl From<WireError> for ConnectError {
    fn from(failure: WireError) -> Self {
        let challenge = Challenge::from_error(&failure);
        // That there is no connection is clear: only why not is said.
        let reason = match &failure {
            WireError::Unreachable(why) => why.chars().take(REASON).collect(),
            _ => short_reason(&failure),
        };
        Self { challenge, cause: Box::new(ConnectErrorCause::Failure(failure)), ..Self::new(reason) }
    }
}

/// The error in words, as much of it as a status has room for.
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
    /// We could not become who the server wants us to be.
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

/// Does what it takes so that a beginning that was refused may be tried again, if the server only wants to know who
/// we are. `seen` is the token that it was tried with.
pub(crate) async fn authorize_retry(
    authoriser: &Authorizer,
    settings: &ServerSettings,
    refused: ConnectError,
    seen: u64,
    tries: &mut usize,
) -> Result<(), ConnectError> {
    let Some(challenge) = &refused.challenge else { return Err(refused) };
    *tries += 1;
    let met = match *tries < MOST_TRIES {
        true => authoriser.answer_challenge(challenge, seen).await,
        false => Err(AuthError::TokensRejected),
    };
    met.map_err(|error| ConnectError::unauthorized(&error, settings.name.as_str()))
}

/// Connects, as a client with these abilities. `known` is the era that worked the last time.
pub(crate) async fn connect(
    common: &UpstreamContext,
    settings: &ServerSettings,
    authoriser: &Arc<Authorizer>,
    abilities: &ClientCapabilities,
    known: Option<Era>,
    tape: &Arc<MessageLog>,
) -> Result<(LiveConnection, ServerNotifications), ConnectError> {
    let calls = Arc::new(InFlightCalls::default());
    let longest = common.message_bytes.load(Ordering::Relaxed);
    let (listener, heard) = build_listener(Arc::clone(&calls), settings.name.to_string(), Arc::clone(tape));
    let mut tasks = JoinSet::new();
    let mut me = HandshakeSettings {
        info: common.client_info.clone(),
        capabilities: to_capabilities(abilities),
        known_era: known,
        sse_only: false,
    };
    let (client, server, child) = match &settings.transport {
        TransportSettings::Command(command) => {
            let mut child = Child::spawn(command, &common.supervisor)?;
            let Some((input, output)) = child.take_streams() else {
                return Err(ConnectError::new("its streams are taken already"));
            };
            let (lines, driver) = open_stdio(output, input, longest, listener, Arc::clone(tape));
            tasks.spawn(driver);
            let met = handshake_stdio(McpClient::Stdio(lines), &me).await;
            match met {
                Ok((client, server)) => (client, server, Some(child)),
                Err(failure) => {
                    return Err(
                        describe_startup_failure(failure, (command, &common.supervisor), &mut child).await
                    );
                }
            }
        }
        TransportSettings::Url(url) => {
            me.sse_only = url.kind == UrlKind::LegacySse;
            authoriser.load().await;
            let post = HttpClientSettings {
                http: common.http.clone(),
                url: Url::parse(&url.url)
                    .map_err(|error| ConnectError::new(format!("its address is wrong: {error}")))?,
                headers: static_headers(url)?,
                authorization: authoriser.header(),
                max_message_bytes: longest,
                listener,
                message_log: Arc::clone(tape),
            };
            let (client, server) = handshake_http(post, &me).await?;
            (client, server, None)
        }
    };
    check_profile_size(&server)?;
    let live = LiveConnection {
        client: Arc::new(client),
        server,
        calls,
        client_info: common.client_info.clone(),
        authorizer: Arc::clone(authoriser),
        child,
        definitions: common.definitions.clone(),
        tasks,
    };
    Ok((live, heard))
}

fn check_profile_size(server: &ServerProfile) -> Result<(), ConnectError> {
    let length = |raw: &Raw| raw.get().len();
    let instructions = server.instructions.as_deref().map_or(0, str::len);
    let bytes = server.info.as_ref().map_or(0, length) + length(&server.capabilities) + instructions;
    match bytes <= INTRODUCTION {
        true => Ok(()),
        false => Err(ConnectError::from(WireError::TooLarge(format!(
            "describes itself in {bytes} bytes, more than the limit of {INTRODUCTION}"
        )))),
    }
}

/// Whether a server that wants to know who we are is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialPolicy {
    /// Only what the settings say; a server that asks for more is not connected to.
    ConfiguredOnly,
    /// What was granted to this yard when somebody logged in.
    Granted,
}

/// What a connection is opened with that one client has for itself.
pub(crate) struct DedicatedConnectionParams<'a> {
    pub(crate) common: &'a UpstreamContext,
    pub(crate) settings: &'a ServerSettings,
    pub(crate) authorizer: &'a Arc<Authorizer>,
    pub(crate) abilities: &'a ClientCapabilities,
    pub(crate) era: Option<Era>,
    pub(crate) message_log: &'a Arc<MessageLog>,
    pub(crate) credentials: CredentialPolicy,
}

/// Connects for one client alone, who can be asked whatever the server wants to know. What is given back beside the
/// connection says when its lists change.
pub(crate) async fn connect_dedicated(
    alone: DedicatedConnectionParams<'_>,
) -> Result<(LiveConnection, Arc<Notify>), ConnectError> {
    let DedicatedConnectionParams {
        common,
        settings,
        authorizer: authoriser,
        abilities,
        era,
        message_log: tape,
        credentials,
    } = alone;
    let slow = || ConnectError::timed_out(settings);
    let mut tries = 0;
    let (mut live, heard) = loop {
        let seen = authoriser.token_generation();
        let opening = connect(common, settings, authoriser, abilities, era, tape);
        let opened = tokio::time::timeout(settings.start_timeout, opening).await;
        let refused = match opened.unwrap_or_else(|_| Err(slow())) {
            Ok(opened) => break opened,
            Err(refused) => refused,
        };
        if credentials == CredentialPolicy::ConfiguredOnly && settings.auth == ServerAuthSettings::OnChallenge
        {
            return Err(refused);
        }
        authorize_retry(authoriser, settings, refused, seen, &mut tries).await?;
    };
    let answering = answer_questions(
        Arc::clone(&live.client),
        Arc::clone(&live.calls),
        QuestionRouting::Caller,
        heard.questions,
    );
    live.tasks.spawn(answering);
    // Some servers ask on the standing stream, and what they ask before it is there is lost.
    let _ = tokio::time::timeout(STREAM, live.spawn_listener(settings.name.as_str())).await;
    Ok((live, heard.lists_changed))
}

/// What happened to a process that did not become a server, with its own last words.
async fn describe_startup_failure(
    failure: WireError,
    (command, keeper): (&CommandSettings, &SupervisorCommand),
    child: &mut Child,
) -> ConnectError {
    // The exit often comes a moment after the streams break.
    let exited = tokio::time::timeout(Duration::from_millis(500), child.wait()).await;
    let stderr = child.stderr_tail();
    let (reason, cause) = match exited {
        Ok(fate) => {
            let mut reason = format!("{} {}", command.program, fate.description);
            if let Some(note) = keeper.environment.withheld_note(command, &stderr) {
                reason = format!("{reason}; {note}");
            }
            (reason, ConnectErrorCause::Exit(fate))
        }
        Err(_) => (failure.to_string(), ConnectErrorCause::Failure(failure)),
    };
    ConnectError { stderr, cause: Box::new(cause), ..ConnectError::new(reason) }
}

fn static_headers(url: &UrlSettings) -> Result<HeaderMap, ConnectError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &url.headers {
        // The value may be a secret, so only the name is told.
        let wrong = || ConnectError::new(format!("the header {name} cannot be sent"));
        let key = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value.reveal()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}
