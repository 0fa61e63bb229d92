//! An MCP server as a source of the yard.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use toolyard_hub::{
    AuthStatus, BoxFuture, ClientCapabilities, ClientEra, ErrorKind, HubError, LoginError, ManageError,
    Outcome, PublishedSource, Source, SourceCall, SourceCommand, SourceName, SourceNotifier, SourceOffer,
    SourceState, SourceStatus, TranscriptDirection, TranscriptEntry,
};

use crate::auth::{AuthError, Authorizer, Challenge};
use toolyard_wire::{LoggedMessage, MessageLog, ServerProfile, WireError};

use crate::call::{CallSender, UpstreamError, with_stderr};
use crate::connect::UpstreamContext;
use crate::connection::{HeaderSchemas, LiveConnection};
use crate::legacy_side::LegacySide;
use crate::list::ServerListKind;
use crate::login::{self, PendingLogin};
use crate::private_sessions::{PrivateSessions, SessionLease};
use crate::settings::ServerSettings;
use crate::sharing::SharingState;
use crate::supervise::{Command, supervise};

/// The capacity of a supervisor's command queue.
const COMMANDS: usize = 8;

/// An MCP server that is connected and supervised as long as this value exists.
#[derive(Debug)]
pub struct Upstream {
    inner: Arc<UpstreamState>,
    legacy: LegacySide,
    commands: mpsc::Sender<Command>,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

/// A client that does not share its connection to a server.
#[derive(Debug, Clone)]
pub struct DedicatedClient {
    pub capabilities: ClientCapabilities,
    /// The lists to read.
    pub lists: Vec<ServerListKind>,
}

/// The state shared by the source and its supervisor.
#[derive(Debug)]
pub(crate) struct UpstreamState {
    pub(crate) common: UpstreamContext,
    pub(crate) settings: ServerSettings,
    /// The only client of this connection. If `None`, all clients share it.
    pub(crate) dedicated_client: Option<DedicatedClient>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) live: ArcSwapOption<LiveConnection>,
    pub(crate) mirrored: ArcSwap<HeaderSchemas>,
    pub(crate) private_sessions: Arc<PrivateSessions>,
    pub(crate) sharing: Arc<SharingState>,
    pub(crate) message_log: Arc<MessageLog>,
    pub(crate) published: PublishedSource,
    /// The login in progress, if any.
    pub(crate) login: tokio::sync::Mutex<Option<PendingLogin>>,
    /// Resources that the yard has subscriptions to.
    pub(crate) subscriptions: Mutex<BTreeSet<String>>,
    pub(crate) subscriptions_changed: Notify,
    /// Notified when a call finds that the session is gone.
    pub(crate) session_lost: Notify,
    pub(crate) role: ConnectionRole,
    was_ready: AtomicBool,
}

/// The role of a connection to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionRole {
    /// The main connection, which is always open.
    Main,
    /// The additional connection of the legacy era. It is abandoned if the first attempt fails.
    LegacySide,
}

impl Upstream {
    /// Starts connecting in the background. Must be called inside a runtime.
    pub fn start(settings: ServerSettings, common: UpstreamContext) -> Arc<Self> {
        Self::start_main(settings, common, None)
    }

    /// Starts connecting for one client. All questions on this connection go to that client, so it
    /// never needs a private session.
    pub fn start_dedicated(
        settings: ServerSettings,
        common: UpstreamContext,
        client: DedicatedClient,
    ) -> Arc<Self> {
        Self::start_main(settings, common, Some(client))
    }

    /// Starts the legacy side of a server that is connected in the modern era. Both share the
    /// credentials and the transcript.
    pub(crate) fn start_legacy_side(settings: ServerSettings, modern: &UpstreamState) -> Arc<Self> {
        let (authorizer, message_log) = (Arc::clone(&modern.authorizer), Arc::clone(&modern.message_log));
        let (common, role) = (modern.common.clone(), ConnectionRole::LegacySide);
        let side = Self::spawn(settings, common, None, role, authorizer, message_log);
        if let Some(notifier) = modern.notifier() {
            side.attach(notifier);
        }
        if side.inner.settings.transport.is_command() {
            *side.inner.lock_subscriptions() = modern.lock_subscriptions().clone();
        }
        side
    }

    fn start_main(
        settings: ServerSettings,
        common: UpstreamContext,
        client: Option<DedicatedClient>,
    ) -> Arc<Self> {
        let authorizer = Authorizer::new(&settings, &common.auth);
        Self::spawn(settings, common, client, ConnectionRole::Main, authorizer, Arc::default())
    }

    fn spawn(
        settings: ServerSettings,
        common: UpstreamContext,
        dedicated_client: Option<DedicatedClient>,
        role: ConnectionRole,
        authorizer: Arc<Authorizer>,
        message_log: Arc<MessageLog>,
    ) -> Arc<Self> {
        let state = if settings.enabled { SourceState::Starting } else { SourceState::Disabled };
        let inner = Arc::new(UpstreamState {
            authorizer,
            common,
            dedicated_client,
            role,
            was_ready: AtomicBool::new(false),
            live: ArcSwapOption::empty(),
            mirrored: ArcSwap::default(),
            private_sessions: Arc::default(),
            sharing: Arc::new(SharingState::new(&settings)),
            message_log,
            published: PublishedSource::new(SourceStatus::new(state, !settings.enabled)),
            login: tokio::sync::Mutex::default(),
            subscriptions: Mutex::default(),
            subscriptions_changed: Notify::new(),
            session_lost: Notify::new(),
            settings,
        });
        let (commands, received) = mpsc::channel(COMMANDS);
        let supervisor = tokio::spawn(supervise(Arc::clone(&inner), received));
        let (legacy, supervisor) = (LegacySide::default(), Mutex::new(Some(supervisor)));
        Arc::new(Self { inner, legacy, commands, supervisor })
    }

    pub(crate) fn inner(&self) -> &UpstreamState {
        &self.inner
    }

    pub fn settings(&self) -> &ServerSettings {
        &self.inner.settings
    }

    /// Returns what the server declared in the handshake, while it is connected.
    pub fn profile(&self) -> Option<ServerProfile> {
        self.inner.live.load().as_ref().map(|live| live.server.clone())
    }

    /// Reconnects immediately.
    pub fn reconnect(&self) {
        self.stop_legacy_side();
        let _ = self.commands.try_send(Command::Reconnect);
    }

    /// Returns how the yard is authenticated with this server.
    pub async fn auth_status(&self) -> Result<AuthStatus, AuthError> {
        self.inner.auth_status(self.inner.status().state).await
    }

    /// Returns whether a user can log in to the server. Sends network requests.
    pub async fn offers_login(&self) -> bool {
        self.inner.authorizer.offers_login().await
    }

    /// Closes the connection and stops everything that was started for it.
    pub async fn stop(&self) {
        if let Some(legacy) = self.legacy.take() {
            legacy.stop_supervisor().await;
        }
        self.stop_supervisor().await;
        self.inner.authorizer.wait_for_renewals().await;
    }

    /// Stops the legacy side in the background. It is opened again when needed.
    fn stop_legacy_side(&self) {
        if let Some(legacy) = self.legacy.take() {
            // If the queue is full, it already contains a command that ends the connection, or the
            // supervisor is gone.
            let _ = legacy.commands.try_send(Command::Stop);
        }
    }

    async fn stop_supervisor(&self) {
        let _ = self.commands.send(Command::Stop).await;
        // If the lock is taken, a login is still contacting the server and ends with its response
        // or a timeout.
        if let Ok(mut login) = self.inner.login.try_lock() {
            login.take();
        }
        let supervisor = self.supervisor.lock().take();
        if let Some(supervisor) = supervisor {
            let _ = supervisor.await;
        }
    }

    /// Executes a call in the era of its client.
    async fn call_in_era(&self, call: SourceCall) -> Result<Outcome, HubError> {
        if call.record.context.era == ClientEra::Legacy && self.inner.role == ConnectionRole::Main {
            // The era of the server is known once it is connected. An error is reported below.
            let _ = self.inner.shared_connection().await;
            // Boxed, because this future is large and rarely needed.
            if let Some(legacy) = Box::pin(self.legacy.get(&self.inner)).await {
                return legacy.inner.call(call).await;
            }
        }
        self.inner.call(call).await
    }
}

impl UpstreamState {
    pub(crate) fn status(&self) -> SourceStatus {
        self.published.status()
    }

    /// Returns how the yard is authenticated with a server in this state. A server that is ready
    /// without a challenge does not support login.
    async fn auth_status(&self, state: SourceState) -> Result<AuthStatus, AuthError> {
        let status = self.authorizer.status().await?;
        let unchallenged = status == AuthStatus::NotLoggedIn && state == SourceState::Ready;
        Ok(if unchallenged { AuthStatus::Unsupported } else { status })
    }

    /// Like [`Self::auth_status`], with `Unsupported` if the stored credentials cannot be read.
    pub(crate) async fn auth_status_or_unsupported(&self, state: SourceState) -> AuthStatus {
        self.auth_status(state).await.unwrap_or(AuthStatus::Unsupported)
    }

    /// Sets the status and notifies its observers.
    pub(crate) fn set_status(&self, status: SourceStatus) {
        if status.state == SourceState::Ready {
            self.was_ready.store(true, Ordering::Relaxed);
        }
        self.published.set_status(status);
    }

    /// Sets or clears the warning in the status of a connected server.
    pub(crate) fn set_warning(&self, warning: Option<String>) {
        let status = self.status();
        let warnings: Vec<String> = warning.into_iter().collect();
        if status.warnings != warnings {
            self.set_status(SourceStatus { warnings, ..status });
        }
    }

    pub(crate) fn set_offer(&self, offer: SourceOffer, mirrored: HeaderSchemas) {
        self.mirrored.store(Arc::new(mirrored));
        self.published.set_offer(offer);
    }

    pub(crate) fn notifier(&self) -> Option<SourceNotifier> {
        self.published.notifier().cloned()
    }

    pub(crate) fn resource_updated(&self, uri: &str) {
        if let Some(notifier) = self.published.notifier() {
            notifier.resource_updated(uri);
        }
    }

    /// Returns whether the server has ever been ready.
    pub(crate) fn was_ready(&self) -> bool {
        self.was_ready.load(Ordering::Relaxed)
    }

    /// Waits until the first connection attempt has succeeded or failed.
    pub(crate) async fn wait_settled(&self) {
        let is_known = |status: &SourceStatus| {
            (status.startup_complete && status.state != SourceState::Starting).then_some(())
        };
        self.published.wait_for(is_known).await
    }

    pub(crate) fn lock_subscriptions(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.subscriptions.lock()
    }

    /// Returns the shared connection. Waits for the first connection attempt.
    async fn shared_connection(&self) -> Result<Arc<LiveConnection>, HubError> {
        let connection_or_error = |status: &SourceStatus| match self.live.load_full() {
            Some(live) => Some(Ok(live)),
            None if status.state == SourceState::Starting && !status.startup_complete => None,
            None => Some(Err(self.unavailable_error(status))),
        };
        self.published.wait_for(connection_or_error).await
    }

    fn unavailable_error(&self, status: &SourceStatus) -> HubError {
        let name = &self.settings.name;
        let reason = status.reason.as_deref().unwrap_or("not running");
        let is = if status.state == SourceState::NeedsAuthorization { "" } else { "is " };
        let message = format!("{name} {is}{}: {reason}", status.state.label());
        let error = HubError::new(ErrorKind::CannotConnect, message);
        match status.state {
            // The reason already says what to do.
            SourceState::NeedsAuthorization => error,
            SourceState::Disabled => error.with_suggestion("enable the server first"),
            _ => with_stderr(error, &status.stderr),
        }
    }

    async fn call(&self, call: SourceCall) -> Result<Outcome, HubError> {
        let mut challenged = false;
        let mut reopened = false;
        // A lost session is reopened once, and a challenge is answered once. In both cases the call
        // was not executed, so it can be sent again.
        loop {
            self.authorizer.ensure_fresh().await;
            let generation = self.authorizer.token_generation();
            let shared = self.shared_connection().await?;
            let private =
                match self.dedicated_client.is_none() && self.sharing.needs_private_session(&shared, &call) {
                    // Boxed, because this future is large and rarely needed.
                    true => Some(Box::pin(self.private_sessions.take(self, &shared, &call)).await?),
                    false => None,
                };
            let live = private.as_ref().and_then(SessionLease::live).unwrap_or(&shared);
            let mirrored = self.mirrored.load();
            let sender = CallSender { live, settings: &self.settings, mirrored: &mirrored };
            let error = match sender.send(&call).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => error,
            };
            if let UpstreamError::Wire(failure) = &error {
                match Challenge::from_error(failure) {
                    Some(_) if challenged => return Err(self.unauthorized_error(&AuthError::TokensRejected)),
                    Some(challenge) => {
                        Box::pin(self.answer_challenge(&challenge, generation)).await?;
                        challenged = true;
                        continue;
                    }
                    None => {}
                }
            }
            if let UpstreamError::Wire(WireError::SessionGone) = &error
                && !reopened
            {
                reopened = true;
                match private {
                    Some(lease) => lease.discard(),
                    None => self.await_new_session(&shared).await,
                }
                continue;
            }
            let error = sender.hub_error(error, &call);
            if let (ErrorKind::ConnectionLost, Some(lease)) = (error.kind(), private) {
                lease.discard();
            }
            return Err(error);
        }
    }

    async fn answer_challenge(&self, challenge: &Challenge, generation: u64) -> Result<(), HubError> {
        self.authorizer
            .answer_challenge(challenge, generation)
            .await
            .map_err(|error| self.unauthorized_error(&error))
    }

    fn unauthorized_error(&self, error: &AuthError) -> HubError {
        let name = &self.settings.name;
        let message = format!("{name} rejected the call: {error}");
        let hub_error = HubError::new(ErrorKind::CannotConnect, message);
        error.suggestion(name.as_str()).into_iter().fold(hub_error, HubError::with_suggestion)
    }

    /// Notifies the supervisor that this session is lost, and waits until it has reconnected or
    /// failed.
    async fn await_new_session(&self, lost: &Arc<LiveConnection>) {
        self.session_lost.notify_one();
        let reconnected = self.published.wait_for(|status| match self.live.load_full() {
            Some(live) => (!Arc::ptr_eq(&live, lost)).then_some(()),
            None => (status.state != SourceState::Starting).then_some(()),
        });
        let _ = tokio::time::timeout(self.settings.start_timeout, reconnected).await;
    }
}

impl Source for Upstream {
    fn name(&self) -> &SourceName {
        &self.inner.settings.name
    }

    fn offer(&self) -> Arc<SourceOffer> {
        self.inner.published.offer()
    }

    fn status(&self) -> SourceStatus {
        let mut status = self.inner.status();
        if let Some(live) = self.inner.live.load().as_ref() {
            status.stderr = live.stderr();
        }
        status
    }

    fn starting_since(&self) -> Option<Instant> {
        self.inner.published.starting_since()
    }

    fn attach(&self, notifier: SourceNotifier) {
        self.inner.published.attach(notifier);
    }

    fn permissions(&self) -> &[String] {
        &self.inner.settings.permissions
    }

    fn legacy_offer(&self) -> Option<Arc<SourceOffer>> {
        self.legacy.offer()
    }

    fn discover_era(&self, era: ClientEra) -> Option<BoxFuture<'_, ()>> {
        if era == ClientEra::Newest || !self.legacy.is_undetermined(&self.inner) {
            return None;
        }
        Some(Box::pin(async { drop(self.legacy.get(&self.inner).await) }))
    }

    fn watch(&self, uri: &str) {
        if let Some(legacy) = self.legacy.separate_process() {
            legacy.watch(uri);
        }
        let new = self.inner.subscriptions.lock().insert(uri.to_owned());
        if new {
            self.inner.subscriptions_changed.notify_one();
        }
    }

    fn unwatch(&self, uri: &str) {
        if let Some(legacy) = self.legacy.separate_process() {
            legacy.unwatch(uri);
        }
        if self.inner.subscriptions.lock().remove(uri) {
            self.inner.subscriptions_changed.notify_one();
        }
    }

    fn manage(&self, command: SourceCommand) -> Result<(), ManageError> {
        let command = match command {
            SourceCommand::Reconnect => Command::Reconnect,
            SourceCommand::Disable => Command::Disable,
            // An enabled server stays connected.
            SourceCommand::Enable if self.inner.status().state != SourceState::Disabled => return Ok(()),
            SourceCommand::Enable => Command::Reconnect,
        };
        self.stop_legacy_side();
        self.commands.try_send(command).map_err(|error| match error {
            TrySendError::Full(_) => ManageError::Busy,
            TrySendError::Closed(_) => ManageError::Unmanaged,
        })
    }

    fn transcript(&self, after: Option<u64>) -> Vec<TranscriptEntry> {
        self.inner
            .message_log
            .read_after(after.unwrap_or_default())
            .into_iter()
            .map(to_transcript_entry)
            .collect()
    }

    fn log_in(&self) -> BoxFuture<'_, Result<String, LoginError>> {
        Box::pin(login::begin_login(&self.inner, &self.commands))
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(self.call_in_era(call))
    }
}

fn to_transcript_entry(message: LoggedMessage) -> TranscriptEntry {
    let direction = match message.direction {
        toolyard_wire::WireDirection::ToServer => TranscriptDirection::ToSource,
        toolyard_wire::WireDirection::FromServer => TranscriptDirection::FromSource,
    };
    TranscriptEntry { number: message.number, at: message.at, direction, text: message.text }
}
