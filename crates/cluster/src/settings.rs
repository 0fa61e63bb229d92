//! The settings of a yard with several replicas.

use toolyard_postgres::PostgresSettings;
use toolyard_seal::SealingKeys;

/// The settings of a yard with several replicas, which are the same for all of them except for the
/// name and the address.
#[derive(Clone)]
pub struct ClusterSettings {
    /// The name of this replica in logs and lists. It need not be unique.
    pub name: Option<String>,
    /// The URL of the Redis server.
    pub redis: String,
    /// The database for what outlives a process, if there is one.
    pub postgres: Option<PostgresSettings>,
    pub keys: SealingKeys,
    /// The base URL at which the other replicas reach this one. `None` uses the address that the
    /// yard listens on.
    pub advertise: Option<String>,
    pub on_store_loss: StoreLossPolicy,
}

/// What happens to shared limits while Redis cannot be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StoreLossPolicy {
    /// Each replica applies its share of every limit.
    #[default]
    LocalShare,
    /// Calls that a shared limit applies to are refused.
    Refuse,
}

impl std::fmt::Debug for ClusterSettings {
    /// URLs of stores contain passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterSettings")
            .field("name", &self.name)
            .field("advertise", &self.advertise)
            .field("on_store_loss", &self.on_store_loss)
            .finish_non_exhaustive()
    }
}
