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
use toolyard_wire::{LoggedMessage, MessageLog, WireError};

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

/// How many commands to a supervisor may wait.
const COMMANDS: usize = 8;

/// One server: it is connected to, supervised and called for as long as this lives.
#[derive(Debug)]
pub struct Upstream {
    inner: Arc<UpstreamState>,
    legacy: LegacySide,
    commands: mpsc::Sender<Command>,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

/// One client that has a server to itself for a while.
#[derive(Debug, Clone)]
pub struct DedicatedClient {
    /// What it can be asked.
    pub capabilities: ClientCapabilities,
    /// What it wants to see; the rest is not asked for.
    pub lists: Vec<ServerListKind>,
}

/// What the source and its supervisor share.
#[derive(Debug)]
pub(crate) struct UpstreamState {
    pub(crate) common: UpstreamContext,
    pub(crate) settings: ServerSettings,
    /// The only client of this connection; without one, all clients share it.
    pub(crate) dedicated_client: Option<DedicatedClient>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) live: ArcSwapOption<LiveConnection>,
    pub(crate) mirrored: ArcSwap<HeaderSchemas>,
    pub(crate) private_sessions: Arc<PrivateSessions>,
    pub(crate) sharing: Arc<SharingState>,
    pub(crate) message_log: Arc<MessageLog>,
    pub(crate) published: PublishedSource,
    /// The login that is under way, if one is.
    pub(crate) login: tokio::sync::Mutex<Option<PendingLogin>>,
    /// Resources that the yard has subscriptions to.
    pub(crate) subscriptions: Mutex<BTreeSet<String>>,
    pub(crate) subscriptions_changed: Notify,
    /// A call found out that the session is gone.
    pub(crate) session_lost: Notify,
    pub(crate) role: ConnectionRole,
    was_ready: AtomicBool,
}

/// Which of the conversations with a server this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionRole {
    /// The one that is always there.
    Main,
    /// That of the legacy era beside it. It is given up if it does not work the first time.
    LegacySide,
}

impl Upstream {
    /// Begins to connect in the background. Must be called inside a runtime.
    pub fn start(settings: ServerSettings, common: UpstreamContext) -> Arc<Self> {
        Self::start_main(settings, common, None)
    }

    /// The same for one client alone. It can be asked on this very connection, so that it never needs another.
    pub fn start_dedicated(
        settings: ServerSettings,
        common: UpstreamContext,
        visitor: DedicatedClient,
    ) -> Arc<Self> {
        Self::start_main(settings, common, Some(visitor))
    }

    /// The legacy side of a server that is spoken to in the modern era: the same credentials, the same transcript.
    pub(crate) fn start_legacy_side(settings: ServerSettings, modern: &UpstreamState) -> Arc<Self> {
        let (authoriser, tape) = (Arc::clone(&modern.authorizer), Arc::clone(&modern.message_log));
        let side =
            Self::spawn(settings, modern.common.clone(), None, ConnectionRole::LegacySide, authoriser, tape);
        if let Some(feed) = modern.notifier() {
            side.attach(feed);
        }
        if side.inner.settings.transport.is_command() {
            *side.inner.lock_subscriptions() = modern.lock_subscriptions().clone();
        }
        side
    }

    fn start_main(
        settings: ServerSettings,
        common: UpstreamContext,
        visitor: Option<DedicatedClient>,
    ) -> Arc<Self> {
        let authoriser = Authorizer::new(&settings, &common.auth);
        Self::spawn(settings, common, visitor, ConnectionRole::Main, authoriser, Arc::default())
    }

    fn spawn(
        settings: ServerSettings,
        common: UpstreamContext,
        visitor: Option<DedicatedClient>,
        role: ConnectionRole,
        authoriser: Arc<Authorizer>,
        tape: Arc<MessageLog>,
    ) -> Arc<Self> {
        let state = if settings.enabled { SourceState::Starting } else { SourceState::Disabled };
        let inner = Arc::new(UpstreamState {
            authorizer: authoriser,
            common,
            dedicated_client: visitor,
            role,
            was_ready: AtomicBool::new(false),
            live: ArcSwapOption::empty(),
            mirrored: ArcSwap::default(),
            private_sessions: Arc::default(),
            sharing: Arc::new(SharingState::new(&settings)),
            message_log: tape,
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

    /// Connects anew, at once.
    pub fn reconnect(&self) {
        self.stop_legacy_side();
        let _ = self.commands.try_send(Command::Reconnect);
    }

    /// How we stand with this server.
    pub async fn auth_status(&self) -> Result<AuthStatus, AuthError> {
        self.inner.auth_status(self.inner.status().state).await
    }

    /// Whether a person could log in to it. Asks on the network.
    pub async fn offers_login(&self) -> bool {
        self.inner.authorizer.offers_login().await
    }

    /// Ends the connection, and everything that was started for it.
    pub async fn stop(&self) {
        if let Some(legacy) = self.legacy.take() {
            legacy.stop_supervisor().await;
        }
        self.stop_supervisor().await;
        self.inner.authorizer.wait_for_renewals().await;
    }

    /// Has the legacy side end in the background; it is opened again when it is needed.
    fn stop_legacy_side(&self) {
        if let Some(legacy) = self.legacy.take() {
            // A queue that is full has a command in it that ends the connection, too, or its supervisor is gone.
            let _ = legacy.commands.try_send(Command::Stop);
        }
    }

    async fn stop_supervisor(&self) {
        let _ = self.commands.send(Command::Stop).await;
        // A login that nobody is asked about yet ends when the server answers, or does not in time.
        if let Ok(mut login) = self.inner.login.try_lock() {
            login.take();
        }
        let supervisor = self.supervisor.lock().take();
        if let Some(supervisor) = supervisor {
            let _ = supervisor.await;
        }
    }

    /// Carries a call out in the era of its client.
    async fn call_in_era(&self, call: SourceCall) -> Result<Outcome, HubError> {
        if call.record.context.era == ClientEra::Legacy && self.inner.role == ConnectionRole::Main {
            // Which eras the server knows is clear once it is connected to; why it is not is said below.
            let _ = self.inner.shared_connection().await;
            // Rare, and large: what it needs is not carried by every call.
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

    /// How we stand with a server in this state. One that is connected to and never asked has nothing to log in to.
    async fn auth_status(&self, state: SourceState) -> Result<AuthStatus, AuthError> {
        let status = self.authorizer.status().await?;
        let unasked = status == AuthStatus::NotLoggedIn && state == SourceState::Ready;
        Ok(if unasked { AuthStatus::Unsupported } else { status })
    }

    /// The same, where what was kept of it can be read.
    pub(crate) async fn auth_status_or_unsupported(&self, state: SourceState) -> AuthStatus {
        self.auth_status(state).await.unwrap_or(AuthStatus::Unsupported)
    }

    /// Changes the status and tells whoever watches.
    pub(crate) fn set_status(&self, status: SourceStatus) {
        if status.state == SourceState::Ready {
            self.was_ready.store(true, Ordering::Relaxed);
        }
        self.published.set_status(status);
    }

    /// Says in the status what is odd about a server that is connected, or that nothing is.
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

    /// Whether it has ever been connected to.
    pub(crate) fn was_ready(&self) -> bool {
        self.was_ready.load(Ordering::Relaxed)
    }

    /// Waits until it is connected, or is known not to be.
    pub(crate) async fn wait_settled(&self) {
        let is_known = |status: &SourceStatus| {
            (status.startup_complete && status.state != SourceState::Starting).then_some(())
        };
        self.published.wait_for(is_known).await
    }

    pub(crate) fn lock_subscriptions(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.subscriptions.lock()
    }

    /// The shared connection; waits for it while it is being made for the first time.
    async fn shared_connection(&self) -> Result<Arc<LiveConnection>, HubError> {
        let or_given_up = |status: &SourceStatus| match self.live.load_full() {
            Some(live) => Some(Ok(live)),
            None if status.state == SourceState::Starting && !status.startup_complete => None,
            None => Some(Err(self.unavailable_error(status))),
        };
        self.published.wait_for(or_given_up).await
    }

    fn unavailable_error(&self, status: &SourceStatus) -> HubError {
        let name = &self.settings.name;
        let reason = status.reason.as_deref().unwrap_or("it is not running");
        let error =
            HubError::new(ErrorKind::CannotConnect, format!("{name} is {}: {reason}", status.state.label()));
        match status.state {
            // The reason says what to do.
            SourceState::NeedsAuthorization => error,
            SourceState::Disabled => error.with_suggestion("enable it in the configuration"),
            _ => with_stderr(error, &status.stderr),
        }
    }

    async fn call(&self, call: SourceCall) -> Result<Outcome, HubError> {
        let mut challenged = false;
        let mut gone = false;
        // A session that is gone is opened once more, and a challenge is met once: neither time did the call reach
        // anybody, so it may be sent again.
        loop {
            self.authorizer.ensure_fresh().await;
            let seen = self.authorizer.token_generation();
            let shared = self.shared_connection().await?;
            let own =
                match self.dedicated_client.is_none() && self.sharing.needs_private_session(&shared, &call) {
                    // Rare, and large: what it needs is not carried by every call.
                    true => Some(Box::pin(self.private_sessions.take(self, &shared, &call)).await?),
                    false => None,
                };
            let live = own.as_ref().and_then(SessionLease::live).unwrap_or(&shared);
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
                        Box::pin(self.answer_challenge(&challenge, seen)).await?;
                        challenged = true;
                        continue;
                    }
                    None => {}
                }
            }
            if let UpstreamError::Wire(WireError::SessionGone) = &error
                && !gone
            {
                gone = true;
                match own {
                    Some(own) => own.discard(),
                    None => self.await_new_session(&shared).await,
                }
                continue;
            }
            let error = sender.hub_error(error, &call);
            if let (ErrorKind::ConnectionLost, Some(own)) = (error.kind(), own) {
                own.discard();
            }
            return Err(error);
        }
    }

    async fn answer_challenge(&self, challenge: &Challenge, seen: u64) -> Result<(), HubError> {
        self.authorizer
            .answer_challenge(challenge, seen)
            .await
            .map_err(|error| self.unauthorized_error(&error))
    }

    fn unauthorized_error(&self, error: &AuthError) -> HubError {
        let name = &self.settings.name;
        let told = HubError::new(ErrorKind::CannotConnect, format!("{name} refuses the call: {error}"));
        error.suggestion(name.as_str()).into_iter().fold(told, HubError::with_suggestion)
    }

    /// Tells the supervisor that this session is gone, and waits until it has another or has given up.
    async fn await_new_session(&self, gone: &Arc<LiveConnection>) {
        self.session_lost.notify_one();
        let another = self.published.wait_for(|status| match self.live.load_full() {
            Some(live) => (!Arc::ptr_eq(&live, gone)).then_some(()),
            None => (status.state != SourceState::Starting).then_some(()),
        });
        let _ = tokio::time::timeout(self.settings.start_timeout, another).await;
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

    fn manage(&self, order: SourceCommand) -> Result<(), ManageError> {
        let command = match order {
            SourceCommand::Reconnect => Command::Reconnect,
            SourceCommand::Disable => Command::Disable,
            // Whoever is connected already need not be torn away.
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

fn to_transcript_entry(taped: LoggedMessage) -> TranscriptEntry {
    let direction = match taped.direction {
        toolyard_wire::WireDirection::ToServer => TranscriptDirection::ToSource,
        toolyard_wire::WireDirection::FromServer => TranscriptDirection::FromSource,
    };
    TranscriptEntry { number: taped.number, at: taped.at, direction, text: taped.text }
}
