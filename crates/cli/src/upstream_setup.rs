//! What everything that connects to servers shares: who we say we are, how processes are kept, and where credentials
//! are.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::Context;
use serde_json::json;
use toolyard_config::Config;
use toolyard_hub::json::to_raw;
use toolyard_upstream::{
    AuthContext, CredentialStore, ProcessEnvironment, SupervisorCommand, UpstreamContext,
};

pub(crate) fn build_context() -> anyhow::Result<UpstreamContext> {
    let keeper = SupervisorCommand {
        program: current_exe()?,
        args: vec!["keeper".into()],
        environment: ProcessEnvironment::new(std::env::vars_os()),
    };
    let me = to_raw(&json!({"name": "toolyard", "title": "Toolyard", "version": env!("CARGO_PKG_VERSION")}));
    let common = UpstreamContext::new(keeper, me).context("cannot set up HTTP")?;
    // Without a home, what is granted lives as long as this process.
    let store = credentials_file().map_or_else(CredentialStore::memory, CredentialStore::file);
    Ok(UpstreamContext { auth: AuthContext { store, ..AuthContext::default() }, ..common })
}

/// What the configuration says about all servers together: how much of them is kept, and which variables are secrets.
pub(crate) fn apply_config(common: &UpstreamContext, config: &Config) {
    common.definitions.set_limits(config.limits.definition_limits());
    common.message_bytes.store(config.limits.message_bytes(), Ordering::Relaxed);
    common.supervisor.environment.set_secrets(config.secret_variables.clone());
}

/// This very program, also after its file was replaced by a newer one or is gone.
pub(crate) fn current_exe() -> anyhow::Result<PathBuf> {
    let itself = PathBuf::from("/proc/self/exe");
    if itself.exists() {
        return Ok(itself);
    }
    std::env::current_exe().context("cannot find out where this program is")
}

/// Where people's programs keep what is not configuration.
fn credentials_file() -> Option<PathBuf> {
    let said = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = said("XDG_DATA_HOME").or_else(|| said("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("toolyard/credentials.json"))
}
