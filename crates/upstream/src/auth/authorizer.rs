//! The token of one server: obtained after a challenge, renewed before it expires, and shared by
//! all connections to that server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderValue;
use reqwest::Url;
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;
use toolyard_hub::{AuthStatus, CredentialKey, CredentialLock, SourceName};
use toolyard_wire::Authorization;

use super::client_credentials;
use super::discovery::{DiscoverySource, discover_authorization_server};
use super::login::{LoginFlow, LoginPrompter};
use super::method::AuthMethod;
use super::record::{CredentialRecord, OAuthToken, merge_scopes, now};
use super::refresh::{RefreshOutcome, refresh};
use super::store::CredentialStore;
use super::{AuthContext, AuthError, Challenge};
use crate::settings::{OAuthSettings, ServerSettings};

/// Delay before a failed renewal is retried, in seconds.
const AGAIN: u64 = 10;
/// Timeout of a renewal. It is shorter than the time that other processes wait for its lock.
const REFRESH: Duration = Duration::from_secs(45);
/// How long shutdown waits for a renewal.
const FINISH: Duration = Duration::from_secs(5);
/// How often the store is checked for changes by another process.
const LOOK: Duration = Duration::from_secs(2);
/// Timeout of discovery where only the wording of a message depends on it.
const LOOK_FOR_LOGIN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Authorizer {
    server: SourceName,
    method: AuthMethod,
    shared: AuthContext,
    header: Authorization,
    /// When the token must be renewed, in seconds since the Unix epoch.
    renew_at: AtomicU64,
    /// The number of tokens so far.
    generation: AtomicU64,
    /// The current credentials. The lock is held while the authorization server is contacted, so
    /// there is one such request at a time.
    state: Mutex<State>,
    /// Renewals in progress. They continue when their caller is gone: if a refresh token is used
    /// and its successor is not stored, the login is lost.
    renewals: TaskTracker,
}

#[derive(Debug, Default)]
struct State {
    record: CredentialRecord,
    /// The generation that a refresh produced. If the server rejects it too, another refresh is
    /// pointless.
    refreshed: Option<u64>,
    /// The token that is still in the store because its successor could not be saved.
    superseded: Option<OAuthToken>,
}

impl Authorizer {
    pub(crate) fn new(settings: &ServerSettings, shared: &AuthContext) -> Arc<Self> {
        let method = AuthMethod::from_settings(settings);
        let header = Authorization::default();
        if let AuthMethod::Static(Some(token)) = &method {
            // A token that is not a valid header value is omitted; the server then rejects the
            // request.
            header.set(HeaderValue::try_from(format!("Bearer {}", token.reveal())).ok());
        }
        Arc::new(Self {
            server: settings.name.clone(),
            method,
            shared: shared.clone(),
            header,
            renew_at: AtomicU64::new(u64::MAX),
            generation: AtomicU64::new(0),
            state: Mutex::default(),
            renewals: TaskTracker::new(),
        })
    }

    /// Returns the `Authorization` header, which follows the current token.
    pub(crate) fn header(&self) -> Authorization {
        self.header.clone()
    }

    /// Returns the generation of the current token. Read it before sending a request that may be
    /// challenged.
    pub(crate) fn token_generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Loads the stored credentials, which another process may have changed, and renews the token
    /// if it is about to expire.
    pub(crate) async fn load(&self) {
        if let AuthMethod::OAuth { key, oauth: OAuthSettings { client_credentials: false, .. }, .. } =
            &self.method
        {
            let mut state = self.state.lock().await;
            match self.shared.store.load(key).await {
                Ok(record) if self.is_stale(&state, &record) => {}
                Ok(record) => self.set_record(&mut state, record),
                Err(error) => {
                    tracing::warn!(server = %self.server, %error, "cannot read the stored credentials")
                }
            }
        }
        self.ensure_fresh().await;
    }

    /// Renews the token if it is about to expire. Otherwise this is cheap.
    pub(crate) async fn ensure_fresh(&self) {
        if now() >= self.renew_at.load(Ordering::Acquire) {
            // Boxed, because this future is large and rarely needed.
            Box::pin(self.renew()).await;
        }
    }

    async fn renew(&self) {
        let AuthMethod::OAuth { key, resource, oauth } = &self.method else { return };
        let mut state = self.state.lock().await;
        // Another caller may have renewed the token while this one waited for the lock.
        if now() < self.renew_at.load(Ordering::Acquire) {
            return;
        }
        let renewed = match oauth.client_credentials {
            true => self.obtain_client_token(&mut state, (resource, oauth), None).await.map(|()| true),
            false => self.refresh(&mut state, key, resource).await,
        };
        match renewed {
            Ok(true) => {}
            // The old token stays in use until the server rejects it.
            Ok(false) => self.renew_at.store(u64::MAX, Ordering::Release),
            Err(error) => {
                tracing::warn!(server = %self.server, %error, "cannot renew the token");
                self.renew_at.store(now() + AGAIN, Ordering::Release);
            }
        }
    }

    /// Obtains a token that allows a challenged request to be sent again. `generation` is the value
    /// of [`Self::token_generation`] before the request was sent.
    pub(crate) async fn answer_challenge(
        &self,
        challenge: &Challenge,
        generation: u64,
    ) -> Result<(), AuthError> {
        let AuthMethod::OAuth { key, resource, oauth } = &self.method else {
            return Err(AuthError::TokenRefused);
        };
        let mut state = self.state.lock().await;
        if self.token_generation() != generation {
            // Another request was challenged too and has already obtained a new token.
            return Ok(());
        }
        let wants_scope = challenge.wants_scope(resource);
        if challenge.status == 403 && !wants_scope {
            return Err(AuthError::Forbidden);
        }
        let demanded = challenge.scopes(resource);
        if oauth.client_credentials {
            self.reject_repeated_scopes(&state.record, wants_scope, &demanded)?;
            return self.obtain_client_token(&mut state, (resource, oauth), Some(challenge)).await;
        }
        let stored = match &self.shared.login_prompter {
            Some(_) => self.shared.store.load_for_login(key).await?,
            None => self.shared.store.load(key).await?,
        };
        if stored.token.is_some() && stored.token != state.record.token && !self.is_stale(&state, &stored) {
            self.set_record(&mut state, stored);
            return Ok(());
        }
        self.reject_repeated_scopes(&stored, wants_scope, &demanded)?;
        if !wants_scope
            && state.refreshed != Some(generation)
            && self.refresh(&mut state, key, resource).await?
        {
            return Ok(());
        }
        let mut record = stored.clone();
        record.challenge.clone_from(&challenge.text);
        if wants_scope {
            record.missing = merge_scopes(&[&record.missing, &demanded]);
        }
        match &self.shared.login_prompter {
            Some(prompter) => self.prompt_login(&mut state, &record, prompter).await,
            None => {
                // Stored for the next login, which then requests what the server requires.
                if record != stored {
                    let (challenge, missing) = (record.challenge.clone(), record.missing.clone());
                    let store_challenge = move |stored: &mut CredentialRecord| {
                        (stored.challenge, stored.missing) = (challenge, missing);
                    };
                    self.shared.store.update(key, store_challenge).await?;
                }
                state.record = record;
                match wants_scope {
                    true => Err(AuthError::ScopeNeeded(demanded.join(" "))),
                    false => Err(AuthError::LoginNeeded),
                }
            }
        }
    }

    /// Completes when a user has logged in, in this process or in another.
    pub(crate) async fn wait_for_login(&self) {
        let AuthMethod::OAuth { key, .. } = &self.method else { return std::future::pending().await };
        loop {
            tokio::time::sleep(LOOK).await;
            let known = self.state.lock().await.record.token.clone();
            let stored = self.shared.store.load(key).await;
            if stored.is_ok_and(|stored| stored.token.is_some() && stored.token != known) {
                return;
            }
        }
    }

    pub(crate) async fn log_in(
        &self,
        challenge: Option<&Challenge>,
        prompter: &LoginPrompter,
    ) -> Result<(), AuthError> {
        let (key, oauth) = match &self.method {
            AuthMethod::OAuth { key, oauth, .. } => (key, oauth),
            AuthMethod::Static(_) => {
                return Err(AuthError::NothingToDo("the token of the server is set in the configuration"));
            }
            AuthMethod::None | AuthMethod::InvalidUrl => {
                return Err(AuthError::NothingToDo("the server has no valid URL"));
            }
        };
        if oauth.client_credentials {
            return Err(AuthError::NothingToDo("the server is used with client credentials"));
        }
        let mut record = self.shared.store.load_for_login(key).await?;
        match challenge {
            Some(challenge) => record.challenge.clone_from(&challenge.text),
            None if !record.missing.is_empty() || *oauth != OAuthSettings::default() => {}
            None => return Err(AuthError::NothingToDo("the server does not require authentication")),
        }
        let mut state = self.state.lock().await;
        self.prompt_login(&mut state, &record, prompter).await
    }

    pub(crate) async fn log_out(&self) -> Result<bool, AuthError> {
        let AuthMethod::OAuth { key, .. } = &self.method else { return Ok(false) };
        let mut state = self.state.lock().await;
        let _lock = self.shared.store.lock(key).await?;
        self.set_record(&mut state, CredentialRecord::default());
        self.shared.store.remove(key).await
    }

    pub(crate) async fn status(&self) -> Result<AuthStatus, AuthError> {
        match &self.method {
            AuthMethod::None | AuthMethod::InvalidUrl => Ok(AuthStatus::Unsupported),
            AuthMethod::Static(_) => Ok(AuthStatus::BearerToken),
            AuthMethod::OAuth { oauth, .. } if oauth.client_credentials => Ok(AuthStatus::OAuth),
            AuthMethod::OAuth { key, .. } => match self.shared.store.load_for_login(key).await?.token {
                Some(_) => Ok(AuthStatus::OAuth),
                None => Ok(AuthStatus::NotLoggedIn),
            },
        }
    }

    /// Returns whether the server announces an authorization server. Sends network requests.
    pub(crate) async fn offers_login(&self) -> bool {
        let AuthMethod::OAuth { resource, .. } = &self.method else { return false };
        let challenge = self.state.lock().await.record.challenge.clone();
        let server = tokio::time::timeout(
            LOOK_FOR_LOGIN,
            discover_authorization_server(resource, challenge.as_deref()),
        )
        .await;
        server.is_ok_and(|server| server.is_ok_and(|server| server.source == DiscoverySource::Announced))
    }

    /// Fails if the demanded scopes have already been requested, to avoid a login loop.
    fn reject_repeated_scopes(
        &self,
        record: &CredentialRecord,
        wants_scope: bool,
        demanded: &[String],
    ) -> Result<(), AuthError> {
        let already_requested =
            record.token.is_some() && demanded.iter().all(|scope| record.requested.contains(scope));
        if wants_scope && already_requested {
            Err(AuthError::ScopeRejected(demanded.join(" ")))
        } else {
            Ok(())
        }
    }

    async fn prompt_login(
        &self,
        state: &mut State,
        record: &CredentialRecord,
        prompter: &LoginPrompter,
    ) -> Result<(), AuthError> {
        let AuthMethod::OAuth { key, resource, oauth } = &self.method else {
            return Err(AuthError::LoginNeeded);
        };
        let document = self.shared.client_metadata_url.as_deref();
        let login = LoginFlow {
            server: &self.server,
            resource,
            oauth,
            client_metadata_url: document,
            previous: record,
        };
        let record = login.run(prompter).await?;
        // The lock keeps a renewal of the previous login from overwriting this one.
        let _lock = self.shared.store.lock(key).await?;
        self.shared.store.save(key, &record).await?;
        self.set_record(state, record);
        Ok(())
    }

    /// Refreshes the token. Returns false if the user must log in.
    async fn refresh(
        &self,
        state: &mut State,
        key: &CredentialKey,
        resource: &Url,
    ) -> Result<bool, AuthError> {
        let lock = self.shared.store.lock(key).await?;
        let mut record = self.shared.store.load(key).await?;
        let stored_token = record.token.clone();
        if self.is_stale(state, &record) {
            record.token.clone_from(&state.record.token);
        } else if record.token != state.record.token {
            // Another process or connection renewed the token while this one waited for the lock.
            let has_token = record.token.is_some();
            self.set_record(state, record);
            return Ok(has_token);
        }
        let renewal = Renewal { lock, store: self.shared.store.clone(), key: key.clone() };
        let renewing = self.renewals.spawn(renewal.run(resource.clone(), record));
        let renewed = renewing.await.map_err(|error| AuthError::Token(error.to_string()))??;
        let Some((record, saved)) = renewed else { return self.adopt_stored(state, key).await };
        self.set_record(state, record);
        state.refreshed = Some(self.token_generation());
        if let Err(error) = saved {
            state.superseded = stored_token;
            tracing::warn!(server = %self.server, %error, "cannot save the new token; it is lost when this process ends");
        }
        Ok(true)
    }

    /// Uses the stored token if another process has replaced the one that this process has. Returns
    /// whether there is such a token.
    async fn adopt_stored(&self, state: &mut State, key: &CredentialKey) -> Result<bool, AuthError> {
        let stored = self.shared.store.load(key).await?;
        if stored.token.is_none() || stored.token == state.record.token || self.is_stale(state, &stored) {
            return Ok(false);
        }
        self.set_record(state, stored);
        Ok(true)
    }

    /// Follows changes that other processes make to the stored credentials: a new token is used, and
    /// one that could not be saved is saved. Completes when a user has logged out.
    pub(crate) async fn follow_store(&self) {
        let AuthMethod::OAuth { key, oauth: OAuthSettings { client_credentials: false, .. }, .. } =
            &self.method
        else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(LOOK).await;
            let mut state = self.state.lock().await;
            if state.record.token.is_none() {
                continue;
            }
            // Storage that is away or unreadable changes nothing.
            let Ok(stored) = self.shared.store.load(key).await else { continue };
            if self.is_stale(&state, &stored) {
                self.save_again(&mut state, key).await;
            } else if stored.token != state.record.token {
                let logged_out = stored.token.is_none();
                self.set_record(&mut state, stored);
                if logged_out {
                    tracing::info!(server = %self.server, "another process has logged out");
                    return;
                }
            }
        }
    }

    /// Saves a token that could not be saved when it was obtained.
    async fn save_again(&self, state: &mut State, key: &CredentialKey) {
        let Ok(_lock) = self.shared.store.lock(key).await else { return };
        let Ok(stored) = self.shared.store.load(key).await else { return };
        if self.is_stale(state, &stored) && self.shared.store.save(key, &state.record).await.is_ok() {
            state.superseded = None;
            tracing::info!(server = %self.server, "saved the new token");
        }
    }

    /// Returns whether the stored record is older than the one in memory, because saving failed.
    fn is_stale(&self, state: &State, stored: &CredentialRecord) -> bool {
        state.superseded.is_some() && stored.token == state.superseded
    }

    /// Waits for renewals in progress.
    pub(crate) async fn wait_for_renewals(&self) {
        self.renewals.close();
        let _ = tokio::time::timeout(FINISH, self.renewals.wait()).await;
    }

    /// Obtains a token with the client credentials. It is not stored, because every process can
    /// obtain its own.
    async fn obtain_client_token(
        &self,
        state: &mut State,
        (resource, oauth): (&Url, &OAuthSettings),
        challenge: Option<&Challenge>,
    ) -> Result<(), AuthError> {
        let text =
            challenge.map_or_else(|| state.record.challenge.clone(), |challenge| challenge.text.clone());
        let demanded = challenge.map(|challenge| challenge.scopes(resource)).unwrap_or_default();
        let requested = merge_scopes(&[&oauth.scopes, &state.record.requested, &demanded]);
        let token =
            client_credentials::request_client_token(resource, oauth, text.as_deref(), &requested).await?;
        self.set_record(
            state,
            CredentialRecord {
                challenge: text,
                token: Some(token),
                requested,
                ..CredentialRecord::default()
            },
        );
        Ok(())
    }

    /// Makes a record current and sends its token from now on.
    fn set_record(&self, state: &mut State, record: CredentialRecord) {
        if record.token != state.record.token {
            let header = record.token.as_ref().and_then(|token| token.header().ok());
            self.header.set(header);
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        let renew_at = record.token.as_ref().map_or(u64::MAX, OAuthToken::renew_at);
        self.renew_at.store(renew_at, Ordering::Release);
        state.record = record;
        state.superseded = None;
    }
}

/// A refresh and the storage of its result, as one uninterrupted step.
struct Renewal {
    lock: CredentialLock,
    store: CredentialStore,
    key: CredentialKey,
}

impl Renewal {
    /// Returns the new record and whether it was saved, or `None` if the user must log in.
    async fn run(
        self,
        resource: Url,
        previous: CredentialRecord,
    ) -> Result<Option<(CredentialRecord, Result<(), AuthError>)>, AuthError> {
        let refreshed = tokio::time::timeout(REFRESH, refresh(&resource, &previous)).await;
        let refreshed = refreshed.map_err(|_| {
            AuthError::Token(format!(
                "no response from the authorization server within {} s",
                REFRESH.as_secs()
            ))
        })?;
        let RefreshOutcome::Renewed(token) = refreshed? else { return Ok(None) };
        let record = CredentialRecord { token: Some(token), ..previous };
        let saved = self.store.save(&self.key, &record).await;
        drop(self.lock);
        Ok(Some((record, saved)))
    }
}
