//! Tokens that were saved or revoked by a command. Replicas keep all of them in memory and look for
//! changes, so no request waits for the database. Only digests are stored, never tokens.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::ClientConfig;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, Error, GenericClient, Row};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolyard_postgres::{
    LinkPurpose, PostgresConnector, PostgresDriver, PostgresError, PostgresSettings, drive,
};

use crate::database::ClusterDatabase;

/// How often replicas look for changes.
const INTERVAL: Duration = Duration::from_millis(500);
/// How often they read everything, also without a known change.
const FULL_INTERVAL: Duration = Duration::from_secs(30);
/// How often expired and revoked tokens are deleted.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(3_600);
/// How long a command may take.
const COMMAND_TIME: Duration = Duration::from_secs(10);
/// The maximum number of saved tokens. Every request is compared with all of them.
pub const MOST_TOKENS: i64 = 10_000;
/// How long expired tokens and revocations are kept, in days.
pub const KEEP_DAYS: i32 = 30;

const REVISION: &str = "SELECT revision FROM toolyard.token_revision";
const SAVED: &str =
    "SELECT name, digest, settings, created_at, expires_at FROM toolyard.tokens ORDER BY name";
const REVOKED: &str = "SELECT digest, name, origin, revoked_at FROM toolyard.revoked_tokens ORDER BY name";
/// Also makes changes wait for each other.
const NEXT_REVISION: &str = "UPDATE toolyard.token_revision SET revision = revision + 1";
const CLEANUP: &str = "
    WITH revoked AS (
        DELETE FROM toolyard.revoked_tokens
        WHERE origin = 'saved' AND revoked_at < now() - make_interval(days => $1))
    DELETE FROM toolyard.tokens WHERE expires_at < now() - make_interval(days => $1)";

/// The SHA-256 of a token.
pub type TokenDigest = [u8; 32];

/// A token in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedToken {
    pub name: String,
    pub digest: TokenDigest,
    /// The token as the configuration describes it.
    pub settings: String,
    pub created_at: SystemTime,
    pub expires_at: Option<SystemTime>,
}

/// A token that is refused, wherever it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedToken {
    pub digest: TokenDigest,
    pub name: String,
    pub origin: TokenOrigin,
    pub revoked_at: SystemTime,
}

/// Where a token is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenOrigin {
    Database,
    /// Its revocation is kept as long as the file may contain it.
    Configuration,
}

impl TokenOrigin {
    fn as_str(self) -> &'static str {
        match self {
            Self::Database => "saved",
            Self::Configuration => "configured",
        }
    }
}

/// The tokens in the database at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IssuedTokens {
    pub saved: Vec<SavedToken>,
    pub revoked: Vec<RevokedToken>,
}

/// What became of a token that was to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveOutcome {
    Saved,
    NameTaken,
    /// There are [`MOST_TOKENS`] of them.
    Full,
}

impl IssuedTokens {
    /// Rows that cannot be parsed are not from this yard, and are left out.
    fn from_rows(saved: &[Row], revoked: &[Row]) -> Self {
        let saved = saved.iter().filter_map(|row| {
            Some(SavedToken {
                name: row.try_get(0).ok()?,
                digest: row.try_get::<_, &[u8]>(1).ok()?.try_into().ok()?,
                settings: row.try_get(2).ok()?,
                created_at: row.try_get(3).ok()?,
                expires_at: row.try_get(4).ok()?,
            })
        });
        let revoked = revoked.iter().filter_map(|row| {
            Some(RevokedToken {
                digest: row.try_get::<_, &[u8]>(0).ok()?.try_into().ok()?,
                name: row.try_get(1).ok()?,
                origin: match row.try_get(2).ok()? {
                    "saved" => TokenOrigin::Database,
                    _ => TokenOrigin::Configuration,
                },
                revoked_at: row.try_get(3).ok()?,
            })
        });
        Self { saved: saved.collect(), revoked: revoked.collect() }
    }
}

/// Follows the changes of the tokens until it is stopped.
#[derive(Debug)]
pub struct TokenWatch {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl TokenWatch {
    pub async fn stop(self) {
        drop(self.stop);
        // The panic of the task has been logged.
        let _ = self.task.await;
    }
}

impl ClusterDatabase {
    /// Reads all tokens.
    pub async fn load_tokens(&self) -> Result<IssuedTokens, PostgresError> {
        let revoked = self.link().query(REVOKED, &[]).await?;
        let saved = self.link().query(SAVED, &[]).await?;
        Ok(IssuedTokens::from_rows(&saved, &revoked))
    }

    /// Calls `apply` with all tokens whenever they change. While the database is away, nothing
    /// changes.
    pub fn watch_tokens(
        self: &Arc<Self>,
        first: IssuedTokens,
        apply: impl Fn(IssuedTokens) + Send + Sync + 'static,
    ) -> TokenWatch {
        let (stop, database) = (CancellationToken::new(), Arc::clone(self));
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            tokio::select! {
                () = database.follow_tokens(first, apply) => {}
                () = stopped.cancelled() => {}
            }
        });
        TokenWatch { stop: stop.drop_guard(), task }
    }

    async fn follow_tokens(&self, first: IssuedTokens, apply: impl Fn(IssuedTokens)) {
        let mut current = first;
        // Unknown, because it was not read together with the tokens.
        let mut revision = None;
        let (mut read_at, mut cleaned_at) = (Instant::now(), None::<Instant>);
        loop {
            tokio::time::sleep(INTERVAL).await;
            if cleaned_at.is_none_or(|at| at.elapsed() >= CLEANUP_INTERVAL)
                && self.link().query(CLEANUP, &[&KEEP_DAYS]).await.is_ok()
            {
                cleaned_at = Some(Instant::now());
            }
            // The loss of the connection has been logged. Changes after this answer have a later
            // revision.
            let Ok(rows) = self.link().query(REVISION, &[]).await else { continue };
            let latest = rows.first().and_then(|row| row.try_get::<_, i64>(0).ok());
            if latest.is_some() && latest == revision && read_at.elapsed() < FULL_INTERVAL {
                continue;
            }
            let Ok(tokens) = self.load_tokens().await else { continue };
            (revision, read_at) = (latest, Instant::now());
            if tokens != current {
                current.clone_from(&tokens);
                apply(tokens);
            }
        }
    }
}

/// A connection for one command that lists or changes tokens.
pub struct TokenTable {
    client: Client,
    driver: PostgresDriver,
    connector: PostgresConnector,
}

impl TokenTable {
    pub async fn open(settings: &PostgresSettings, tls: &ClientConfig) -> Result<Self, PostgresError> {
        let connector = PostgresConnector::new(settings, tls);
        let (client, driver) = connector.connect_migrated(LinkPurpose::State).await?;
        Ok(Self { client, driver, connector })
    }

    pub async fn list(&mut self) -> Result<IssuedTokens, PostgresError> {
        let Self { client, driver, connector } = self;
        run(connector, driver, async {
            Ok(IssuedTokens::from_rows(&client.query(SAVED, &[]).await?, &client.query(REVOKED, &[]).await?))
        })
        .await
    }

    /// Saves a token under a name that no other token has. Expired tokens lose their names.
    pub async fn save(&mut self, token: &SavedToken) -> Result<SaveOutcome, PostgresError> {
        let Self { client, driver, connector } = self;
        run(connector, driver, async {
            let change = client.transaction().await?;
            change.execute(NEXT_REVISION, &[]).await?;
            let name = &token.name;
            let expired = "DELETE FROM toolyard.tokens WHERE name = $1 AND expires_at <= now()";
            change.execute(expired, &[name]).await?;
            let counts = "SELECT count(*), count(*) FILTER (WHERE name = $1) FROM toolyard.tokens";
            let counts = change.query_one(counts, &[name]).await?;
            if counts.try_get::<_, i64>(1)? > 0 {
                return Ok(SaveOutcome::NameTaken);
            }
            if counts.try_get::<_, i64>(0)? >= MOST_TOKENS {
                return Ok(SaveOutcome::Full);
            }
            let insert = "INSERT INTO toolyard.tokens (name, digest, settings, created_at, expires_at)
                VALUES ($1, $2, $3, $4, $5)";
            let digest = token.digest.as_slice();
            change
                .execute(insert, &[name, &digest, &token.settings, &token.created_at, &token.expires_at])
                .await?;
            change.commit().await?;
            Ok(SaveOutcome::Saved)
        })
        .await
    }

    /// Revokes the saved token of this name, and `configured`, the digest of that in the
    /// configuration. Returns how many tokens were not revoked before.
    pub async fn revoke(
        &mut self,
        name: &str,
        configured: Option<TokenDigest>,
    ) -> Result<u64, PostgresError> {
        let Self { client, driver, connector } = self;
        run(connector, driver, async {
            let change = client.transaction().await?;
            change.execute(NEXT_REVISION, &[]).await?;
            let deleted = "DELETE FROM toolyard.tokens WHERE name = $1 RETURNING digest";
            let mut revoked = 0;
            for row in change.query(deleted, &[&name]).await? {
                revoked += insert_revoked(&change, row.try_get(0)?, name, TokenOrigin::Database).await?;
            }
            if let Some(digest) = configured {
                revoked += insert_revoked(&change, &digest, name, TokenOrigin::Configuration).await?;
            }
            change.commit().await?;
            Ok(revoked)
        })
        .await
    }
}

impl std::fmt::Debug for TokenTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenTable").field("connector", &self.connector).finish_non_exhaustive()
    }
}

/// A revocation that is already there remains, for the longer time.
async fn insert_revoked(
    client: &impl GenericClient,
    digest: &[u8],
    name: &str,
    origin: TokenOrigin,
) -> Result<u64, Error> {
    let insert = "INSERT INTO toolyard.revoked_tokens (digest, name, origin) VALUES ($1, $2, $3)
        ON CONFLICT (digest) DO NOTHING";
    let inserted = client.execute(insert, &[&digest, &name, &origin.as_str()]).await?;
    if inserted == 0 && origin == TokenOrigin::Configuration {
        let keep = "UPDATE toolyard.revoked_tokens SET origin = $2 WHERE digest = $1";
        client.execute(keep, &[&digest, &origin.as_str()]).await?;
    }
    Ok(inserted)
}

/// Runs the statements of a command under a deadline.
async fn run<T>(
    connector: &PostgresConnector,
    driver: &mut PostgresDriver,
    statements: impl Future<Output = Result<T, Error>>,
) -> Result<T, PostgresError> {
    match timeout(COMMAND_TIME, drive(driver, statements)).await {
        Ok(done) => done.map_err(|error| PostgresError::statement(connector.database(), &error)),
        Err(_) => Err(connector.timed_out(COMMAND_TIME)),
    }
}
