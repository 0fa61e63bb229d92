//! The membership of `toolyard serve` in a yard with several replicas.

mod sharing;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolyard_cluster::{ClusterSettings, Membership, RedisStore, ReplicaRecord};
use toolyard_config::Config;
use toolyard_hub::Replicas;
use toolyard_serve::ReplicaSettings;
use toolyard_upstream::UpstreamContext;

pub(crate) use self::sharing::ClusterSharing;

/// A replica that has not joined the others yet.
pub(crate) struct ClusterMember {
    pub(crate) membership: Arc<Membership>,
    settings: ClusterSettings,
    store: Arc<RedisStore>,
}

/// A replica that is registered with the others.
pub(crate) struct JoinedMember {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl ClusterMember {
    pub(crate) fn open(settings: &ClusterSettings, config: &Config) -> anyhow::Result<Self> {
        let store = RedisStore::open(&settings.redis)?;
        let own = ReplicaRecord {
            name: settings.name.clone().unwrap_or_default(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            keys: settings.keys.fingerprint(),
            config: config.digest.clone(),
            ..ReplicaRecord::default()
        };
        let membership =
            Membership::new(Arc::clone(&store), own).context("cannot create the ID of this replica")?;
        Ok(Self { membership: Arc::new(membership), settings: settings.clone(), store })
    }

    /// Starts sharing limits and idempotency keys with the other replicas.
    pub(crate) fn share(&self) -> ClusterSharing {
        ClusterSharing::start(&self.settings, &self.store, &self.membership.own_id())
    }

    pub(crate) fn replica_settings(&self, upstream: &UpstreamContext) -> ReplicaSettings {
        let replicas = Arc::clone(&self.membership) as Arc<dyn Replicas>;
        ReplicaSettings { replicas, keys: self.settings.keys.clone(), tls: upstream.tls.clone() }
    }

    /// Sets the URL at which the other replicas reach this one. Returns false if it is unknown: a
    /// process that listens on all addresses does not know its own.
    #[must_use]
    pub(crate) fn advertise(&self, listening: SocketAddr) -> bool {
        match &self.settings.advertise {
            Some(url) => self.membership.set_url(url),
            None if listening.ip().is_unspecified() => return false,
            None => self.membership.set_url(&format!("http://{listening}")),
        }
        true
    }

    /// Registers this replica until [`JoinedMember::leave`].
    pub(crate) fn join(self) -> JoinedMember {
        let (stop, membership) = (CancellationToken::new(), self.membership);
        let running = stop.clone();
        JoinedMember { task: tokio::spawn(async move { membership.run(running).await }), stop }
    }
}

impl JoinedMember {
    /// Tells the other replicas that this one is gone.
    pub(crate) async fn leave(self) {
        self.stop.cancel();
        let _ = self.task.await;
    }
}
