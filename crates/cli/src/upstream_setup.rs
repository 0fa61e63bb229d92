//! What all connections to servers share: the client identity, process supervision and stored
//! credentials.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context;
use serde_json::json;
use toolyard_cluster::ClusterDatabase;
use toolyard_config::Config;
use toolyard_hub::CredentialStorage;
use toolyard_hub::json::to_raw;
use toolyard_upstream::{
    AuthContext, CredentialStore, ProcessEnvironment, SupervisorCommand, UpstreamContext,
};

/// What the connections of a yard share, and the database that their logins are in.
pub(crate) struct SharedUpstream {
    pub(crate) context: UpstreamContext,
    pub(crate) database: Option<Arc<ClusterDatabase>>,
}

impl SharedUpstream {
    /// Connects to no database before a login is needed.
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        let context = build_context()?;
        let cluster = config.cluster.as_ref();
        let database = cluster.and_then(|cluster| ClusterDatabase::new(cluster, &context.tls));
        let Some(database) = database.map(Arc::new) else { return Ok(Self { context, database: None }) };
        let store = CredentialStore::new(Arc::clone(&database) as Arc<dyn CredentialStorage>);
        let auth = AuthContext { store, ..context.auth };
        Ok(Self { context: UpstreamContext { auth, ..context }, database: Some(database) })
    }

    /// Closes the connection to the database.
    pub(crate) async fn close(&self) {
        if let Some(database) = &self.database {
            database.close().await;
        }
    }
}

pub(crate) fn build_context() -> anyhow::Result<UpstreamContext> {
    let keeper = SupervisorCommand {
        program: current_exe()?,
        args: vec!["keeper".into()],
        environment: ProcessEnvironment::new(std::env::vars_os()),
    };
    let me = to_raw(&json!({"name": "toolyard", "title": "Toolyard", "version": env!("CARGO_PKG_VERSION")}));
    let common = UpstreamContext::new(keeper, me).context("cannot create the HTTP client")?;
    // Without a home directory, credentials are kept in memory only.
    let store = credentials_file().map_or_else(CredentialStore::memory, CredentialStore::file);
    Ok(UpstreamContext { auth: AuthContext { store, ..AuthContext::default() }, ..common })
}

/// Applies the settings for all servers: how much of their output is retained, and which variables
/// are secrets.
pub(crate) fn apply_config(common: &UpstreamContext, config: &Config) {
    common.definitions.set_limits(config.limits.definition_limits());
    common.message_bytes.store(config.limits.message_bytes(), Ordering::Relaxed);
    common.supervisor.environment.set_secrets(config.secret_variables.clone());
}

/// The path of this executable, even after its file was replaced or deleted.
pub(crate) fn current_exe() -> anyhow::Result<PathBuf> {
    let itself = PathBuf::from("/proc/self/exe");
    if itself.exists() {
        return Ok(itself);
    }
    std::env::current_exe().context("cannot determine the path of this executable")
}

/// The data directory of the user.
fn credentials_file() -> Option<PathBuf> {
    let absolute_path = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute_path("XDG_DATA_HOME")
        .or_else(|| absolute_path("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("toolyard/credentials.json"))
}
