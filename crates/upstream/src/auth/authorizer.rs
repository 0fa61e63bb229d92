//! One server's token: got when the server asks, renewed before it expires, and put where all connections to
//! that server read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderValue;
use reqwest::Url;
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;
use toolyard_hub::{AuthStatus, SourceName};
use toolyard_wire::Authorization;

use super::client_credentials;
use super::discovery::{DiscoverySource, discover_authorization_server};
use super::login::{LoginFlow, LoginPrompter};
use super::method::AuthMethod;
use super::record::{CredentialRecord, OAuthToken, merge_scopes, now};
use super::refresh::{RefreshOutcome, refresh};
use super::store::{CredentialKey, CredentialLock, CredentialStore};
use super::{AuthContext, AuthError, Challenge};
use crate::settings::{OAuthSettings, ServerSettings};

/// A renewal that failed is tried again after this long.
const AGAIN: u64 = 10;
/// How long a renewal may take; less than other processes wait for it.
const REFRESH: Duration = Duration::from_secs(45);
/// How long the end waits for a renewal.
const FINISH: Duration = Duration::from_secs(5);
/// How often the store is looked at for what another process has done.
const LOOK: Duration = Duration::from_secs(2);
/// How long an authorization server may take to be found where only words depend on it.
const LOOK_FOR_LOGIN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Authorizer {
    server: SourceName,
    method: AuthMethod,
    shared: AuthContext,
    header: Authorization,
    /// When the token has to be renewed, in seconds since 1970.
    renew_at: AtomicU64,
    /// How many tokens there have been.
    generation: AtomicU64,
    /// What is known, and the right to change it: one at a time talks to the authorization server.
    state: Mutex<State>,
    /// Renewals under way. They go on when nobody waits for them any more: a refresh token that was used and whose
    /// successor was not kept is a login lost.
    renewals: TaskTracker,
}

#[derive(Debug, Default)]
struct State {
    record: CredentialRecord,
    /// The generation that came of a refresh; if the server does not like it either, refreshing is no use.
    refreshed: Option<u64>,
    /// The token that the store still has although ours came of it, because ours could not be saved.
    superseded: Option<OAuthToken>,
}

impl Authorizer {
    pub(crate) fn new(settings: &ServerSettings, shared: &AuthContext) -> Arc<Self> {
        let way = AuthMethod::from_settings(settings);
        let header = Authorization::default();
        if let AuthMethod::Static(Some(token)) = &way {
            // One that cannot be sent is not sent, and the server will say what it thinks of that.
            header.set(HeaderValue::try_from(format!("Bearer {}", token.reveal())).ok());
        }
        Arc::new(Self {
            server: settings.name.clone(),
            method: way,
            shared: shared.clone(),
            header,
            renew_at: AtomicU64::new(u64::MAX),
            generation: AtomicU64::new(0),
            state: Mutex::default(),
            renewals: TaskTracker::new(),
        })
    }

    /// What is sent as `Authorization`, now and later.
    pub(crate) fn header(&self) -> Authorization {
        self.header.clone()
    }

    /// Which token is in use; to be read before a request is sent that may be challenged.
    pub(crate) fn token_generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Takes in what is kept, which another process may have changed, and renews it if it is old.
    pub(crate) async fn load(&self) {
        if let AuthMethod::OAuth { key, oauth: OAuthSettings { client_credentials: false, .. }, .. } =
            &self.method
        {
            let mut state = self.state.lock().await;
            match self.shared.store.load(key).await {
                Ok(record) if self.is_stale(&state, &record) => {}
                Ok(record) => self.set_record(&mut state, record),
                Err(error) => tracing::warn!(server = %self.server, %error, "credentials cannot be read"),
            }
        }
        self.ensure_fresh().await;
    }

    /// Renews the token if it is about to expire. Costs nothing otherwise.
    pub(crate) async fn ensure_fresh(&self) {
        if now() >= self.renew_at.load(Ordering::Acquire) {
            // Rare, and large: what it needs is not carried by every call.
            Box::pin(self.renew()).await;
        }
    }

    async fn renew(&self) {
        let AuthMethod::OAuth { key, resource, oauth } = &self.method else { return };
        let mut state = self.state.lock().await;
        // Somebody else may have been here first.
        if now() < self.renew_at.load(Ordering::Acquire) {
            return;
        }
        let renewed = match oauth.client_credentials {
            true => self.obtain_client_token(&mut state, (resource, oauth), None).await.map(|()| true),
            false => self.refresh(&mut state, key, resource).await,
        };
        match renewed {
            Ok(true) => {}
            // The server is asked with the old token, and its answer decides.
            Ok(false) => self.renew_at.store(u64::MAX, Ordering::Release),
            Err(error) => {
                tracing::warn!(server = %self.server, %error, "its token could not be renewed");
                self.renew_at.store(now() + AGAIN, Ordering::Release);
            }
        }
    }

    /// Does what it takes so that a request that was challenged may be sent again. `seen` is what [`Self::token_generation`] was
    /// before it was sent.
    pub(crate) async fn answer_challenge(&self, challenge: &Challenge, seen: u64) -> Result<(), AuthError> {
        let AuthMethod::OAuth { key, resource, oauth } = &self.method else {
            return Err(AuthError::TokenRefused);
        };
        let mut state = self.state.lock().await;
        if self.token_generation() != seen {
            // Somebody else was challenged too and was here first.
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
        let kept = self.shared.store.load(key).await?;
        if kept.token.is_some() && kept.token != state.record.token && !self.is_stale(&state, &kept) {
            self.set_record(&mut state, kept);
            return Ok(());
        }
        self.reject_repeated_scopes(&kept, wants_scope, &demanded)?;
        if !wants_scope && state.refreshed != Some(seen) && self.refresh(&mut state, key, resource).await? {
            return Ok(());
        }
        let mut record = kept.clone();
        record.challenge.clone_from(&challenge.text);
        if wants_scope {
            record.missing = merge_scopes(&[&record.missing, &demanded]);
        }
        match &self.shared.login_prompter {
            Some(person) => self.prompt_login(&mut state, &record, person).await,
            None => {
                // The next login then begins with what the server wanted.
                if record != kept {
                    let (challenge, missing) = (record.challenge.clone(), record.missing.clone());
                    let note = move |kept: &mut CredentialRecord| {
                        (kept.challenge, kept.missing) = (challenge, missing);
                    };
                    self.shared.store.update(key, note).await?;
                }
                state.record = record;
                match wants_scope {
                    true => Err(AuthError::ScopeNeeded(demanded.join(" "))),
                    false => Err(AuthError::LoginNeeded),
                }
            }
        }
    }

    /// Completes when somebody has logged in, in this process or in another.
    pub(crate) async fn wait_for_login(&self) {
        let AuthMethod::OAuth { key, .. } = &self.method else { return std::future::pending().await };
        loop {
            tokio::time::sleep(LOOK).await;
            let known = self.state.lock().await.record.token.clone();
            let kept = self.shared.store.load(key).await;
            if kept.is_ok_and(|kept| kept.token.is_some() && kept.token != known) {
                return;
            }
        }
    }

    pub(crate) async fn log_in(
        &self,
        challenge: Option<&Challenge>,
        person: &LoginPrompter,
    ) -> Result<(), AuthError> {
        let (key, oauth) = match &self.method {
            AuthMethod::OAuth { key, oauth, .. } => (key, oauth),
            AuthMethod::Static(_) => return Err(AuthError::NothingToDo("its token is in the configuration")),
            AuthMethod::None | AuthMethod::InvalidUrl => {
                return Err(AuthError::NothingToDo("it has no address"));
            }
        };
        if oauth.client_credentials {
            return Err(AuthError::NothingToDo("it is used with the client's own credentials"));
        }
        let mut record = self.shared.store.load(key).await?;
        match challenge {
            Some(challenge) => record.challenge.clone_from(&challenge.text),
            None if !record.missing.is_empty() || *oauth != OAuthSettings::default() => {}
            None => return Err(AuthError::NothingToDo("it does not ask who we are")),
        }
        let mut state = self.state.lock().await;
        self.prompt_login(&mut state, &record, person).await
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
            AuthMethod::OAuth { key, .. } => match self.shared.store.load(key).await?.token {
                Some(_) => Ok(AuthStatus::OAuth),
                None => Ok(AuthStatus::NotLoggedIn),
            },
        }
    }

    /// Whether there is anything to log in to: an authorization server that says where it is. Asks on the network.
    pub(crate) async fn offers_login(&self) -> bool {
        let AuthMethod::OAuth { resource, .. } = &self.method else { return false };
        let challenge = self.state.lock().await.record.challenge.clone();
        let found = tokio::time::timeout(
            LOOK_FOR_LOGIN,
            discover_authorization_server(resource, challenge.as_deref()),
        )
        .await;
        found.is_ok_and(|found| found.is_ok_and(|found| found.source == DiscoverySource::Announced))
    }

    /// What was asked for and did not help is not asked for again.
    fn reject_repeated_scopes(
        &self,
        record: &CredentialRecord,
        wants_scope: bool,
        demanded: &[String],
    ) -> Result<(), AuthError> {
        let asked = record.token.is_some() && demanded.iter().all(|scope| record.requested.contains(scope));
        if wants_scope && asked { Err(AuthError::ScopeRejected(demanded.join(" "))) } else { Ok(()) }
    }

    async fn prompt_login(
        &self,
        state: &mut State,
        record: &CredentialRecord,
        person: &LoginPrompter,
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
        let record = login.run(person).await?;
        // A renewal of the login of before that is under way must not replace this one.
        let _lock = self.shared.store.lock(key).await?;
        self.shared.store.save(key, record.clone()).await?;
        self.set_record(state, record);
        Ok(())
    }

    /// False if only a person can help.
    async fn refresh(
        &self,
        state: &mut State,
        key: &CredentialKey,
        resource: &Url,
    ) -> Result<bool, AuthError> {
        let lock = self.shared.store.lock(key).await?;
        let mut kept = self.shared.store.load(key).await?;
        let stored = kept.token.clone();
        if self.is_stale(state, &kept) {
            kept.token.clone_from(&state.record.token);
        } else if kept.token != state.record.token {
            // Another process, or another connection of this one, has renewed it while we waited.
            let there = kept.token.is_some();
            self.set_record(state, kept);
            return Ok(there);
        }
        let renewal = Renewal { lock, store: self.shared.store.clone(), key: key.clone() };
        let renewing = self.renewals.spawn(renewal.run(resource.clone(), kept));
        let renewed = renewing.await.map_err(|error| AuthError::Token(error.to_string()))??;
        let Some((record, saved)) = renewed else { return Ok(false) };
        self.set_record(state, record);
        state.refreshed = Some(self.token_generation());
        if let Err(error) = saved {
            state.superseded = stored;
            tracing::warn!(server = %self.server, %error, "its new token cannot be saved, and is lost at the end of this process");
        }
        Ok(true)
    }

    /// Whether the store has less than we do, because our token could not be saved.
    fn is_stale(&self, state: &State, kept: &CredentialRecord) -> bool {
        state.superseded.is_some() && kept.token == state.superseded
    }

    /// Waits for renewals that are under way.
    pub(crate) async fn wait_for_renewals(&self) {
        self.renewals.close();
        let _ = tokio::time::timeout(FINISH, self.renewals.wait()).await;
    }

    /// A token for the client itself. It is not kept: the next process can get one just as well.
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

    /// From now on this is what we know, and its token is what is sent.
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

/// A refresh and what comes of it, as one step that nothing interrupts.
struct Renewal {
    lock: CredentialLock,
    store: CredentialStore,
    key: CredentialKey,
}

impl Renewal {
    /// What is known then, and whether it was saved; nothing if only a person can help.
    async fn run(
        self,
        resource: Url,
        kept: CredentialRecord,
    ) -> Result<Option<(CredentialRecord, Result<(), AuthError>)>, AuthError> {
        let refreshed = tokio::time::timeout(REFRESH, refresh(&resource, &kept)).await;
        let refreshed = refreshed.map_err(|_| {
            AuthError::Token(format!(
                "its authorization server did not answer within {} s",
                REFRESH.as_secs()
            ))
        })?;
        let RefreshOutcome::Renewed(token) = refreshed? else { return Ok(None) };
        let record = CredentialRecord { token: Some(token), ..kept };
        let saved = self.store.save(&self.key, record.clone()).await;
        drop(self.lock);
        Ok(Some((record, saved)))
    }
}
