//! `[cluster]`: several replicas of this yard behind a load balancer.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_cluster::{ClusterSettings, StoreLossPolicy};
use toolyard_postgres::PostgresSettings;
use toolyard_seal::SealingKeys;

use super::expand::VariableExpander;
use super::http_syntax::is_http_url;
use super::limits::SettingProblem;

/// Several replicas that serve one yard. Redis, PostgreSQL and `keys` must be the same for all of
/// them.
// Not `Debug`: URLs and keys are secrets.
#[derive(Deserialize, JsonSchema)]
#[serde(expecting = "a table")]
pub(super) struct ClusterKeys {
    /// URL of the Redis server that the replicas share, such as "redis://127.0.0.1:6379/0".
    /// Variables are expanded. Required.
    redis: String,
    /// Connection string of the PostgreSQL server that the replicas share, such as
    /// "postgres://user@127.0.0.1/toolyard". Logins to servers are stored there, encrypted with
    /// `keys`, and so are tokens that `toolyard token` saves or revokes. With a table `[history]`,
    /// the history is stored there instead of in a file, and so is the audit log of a table
    /// `[audit]` without a `file`. A replica does not start without the database. With
    /// `sslmode=require`, the system must trust the certificate of the server; `disable` and
    /// `prefer`, the default, do not check it. Variables are expanded. Default: none.
    postgres: Option<String>,
    /// Secrets of at least 32 bytes, from which the keys are derived that protect session IDs,
    /// requests between replicas and logins to servers. The first one is used for everything new,
    /// all of them are accepted. To
    /// replace a key, put the new one second on every replica, then first, then remove the old one.
    /// Variables are expanded. Required.
    keys: Vec<String>,
    /// Base URL at which the other replicas reach this one, such as "http://10.0.0.5:8080".
    /// Variables are expanded. Default: the address that the yard listens on.
    advertise: Option<String>,
    /// Name of this replica in logs and lists. Variables are expanded. Default: the advertised
    /// address.
    name: Option<String>,
    /// What happens to shared limits while Redis cannot be reached. Default: "share".
    #[serde(default)]
    on_store_loss: StoreLossKey,
}

/// `share`: each replica applies its share of every limit. `refuse`: calls that a shared limit
/// applies to are refused.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StoreLossKey {
    #[default]
    Share,
    Refuse,
}

impl ClusterKeys {
    /// Returns whether records are to be stored in a database, valid or not.
    pub(super) fn has_database(&self) -> bool {
        self.postgres.is_some()
    }
}

/// Builds the cluster settings and appends invalid settings to `wrong`.
pub(super) fn build_cluster(
    keys: ClusterKeys,
    references: &VariableExpander<'_>,
    wrong: &mut Vec<SettingProblem>,
) -> Option<ClusterSettings> {
    let mut expand = |text: &str, place: &[&str]| match references.expand_secret(text) {
        Ok(text) => Some(text),
        Err(missing) => {
            let place = [&["cluster"], place].concat();
            wrong.extend(missing.into_iter().map(|missing| {
                SettingProblem::new(&place, format!("cannot be expanded: {}", missing.message))
            }));
            None
        }
    };
    let redis = expand(&keys.redis, &["redis"]);
    let postgres = keys.postgres.map(|text| expand(&text, &["postgres"]));
    let advertise = keys.advertise.map(|text| expand(&text, &["advertise"]));
    let name = keys.name.map(|text| expand(&text, &["name"]));
    let indexed = keys.keys.iter().enumerate();
    let secrets: Vec<Option<String>> =
        indexed.map(|(at, text)| expand(text, &["keys", &at.to_string()])).collect();
    let mut check = |fine: bool, key: &str, why: &str| {
        if !fine {
            wrong.push(SettingProblem::new(&["cluster", key], why));
        }
    };
    let is_redis = |url: &String| {
        ["redis://", "rediss://", "unix://", "redis+unix://"].iter().any(|scheme| url.starts_with(scheme))
    };
    check(redis.as_ref().is_none_or(is_redis), "redis", "must be a redis:// or rediss:// URL");
    let is_postgres = |url: &String| url.starts_with("postgres://") || url.starts_with("postgresql://");
    check(postgres.iter().flatten().all(is_postgres), "postgres", "must be a postgres:// URL");
    let replica = name.clone().flatten().or_else(|| advertise.clone().flatten());
    let database = match postgres.iter().flatten().find(|url| is_postgres(url)) {
        None => None,
        Some(url) => match PostgresSettings::parse(url, replica) {
            Ok(database) => Some(database),
            Err(error) => {
                check(false, "postgres", &error.to_string());
                None
            }
        },
    };
    check(
        advertise.iter().flatten().all(|url| is_http_url(url)),
        "advertise",
        "must be an http:// or https:// URL",
    );
    let secrets: Vec<String> = secrets.into_iter().collect::<Option<_>>()?;
    let sealing = SealingKeys::from_secrets(&secrets);
    check(sealing.is_ok(), "keys", "must contain at least one secret, each of at least 32 bytes");
    Some(ClusterSettings {
        name: name.map_or(Some(None), |name| name.map(Some))?,
        redis: redis?,
        // An invalid URL has been reported.
        postgres: database,
        keys: sealing.ok()?,
        advertise: advertise.map_or(Some(None), |url| url.map(Some))?,
        on_store_loss: match keys.on_store_loss {
            StoreLossKey::Share => StoreLossPolicy::LocalShare,
            StoreLossKey::Refuse => StoreLossPolicy::Refuse,
        },
    })
}
