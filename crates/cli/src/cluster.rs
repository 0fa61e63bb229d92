//! The parts of a yard that it shares with its other replicas.

use std::sync::Arc;

use toolyard_cluster::{ClusterSettings, KeyTask, LimitTask, RedisKeys, RedisLimits, RedisStore};
use toolyard_hub::{ReplicaId, SharedKeys, SharedLimits, YardSettings};

/// This process as one of several replicas.
pub(crate) struct RunningReplica {
    limits: Arc<RedisLimits>,
    limit_task: LimitTask,
    keys: Arc<RedisKeys>,
    key_task: KeyTask,
}

impl RunningReplica {
    /// Starts the tasks that share limits and keys. Redis need not be reachable yet.
    pub(crate) fn start(settings: &ClusterSettings) -> anyhow::Result<Self> {
        let store = RedisStore::open(&settings.redis)?;
        let id = ReplicaId::new(&toolyard_random::hex_id()?);
        let (keys, key_task) = RedisKeys::start(Arc::clone(&store), id.clone());
        let (limits, limit_task) = RedisLimits::start(store, id, settings.on_store_loss);
        Ok(Self { limits, limit_task, keys, key_task })
    }

    /// Adds what replicas share to the settings of the main yard.
    pub(crate) fn apply_to(&self, settings: YardSettings) -> YardSettings {
        let limits = Arc::clone(&self.limits) as Arc<dyn SharedLimits>;
        let keys = Arc::clone(&self.keys) as Arc<dyn SharedKeys>;
        YardSettings { shared_limits: Some(limits), shared_keys: Some(keys), ..settings }
    }

    /// Adds the shared limits to the settings of another yard of this process.
    pub(crate) fn apply_to_annex(&self, settings: YardSettings, name: &'static str) -> YardSettings {
        YardSettings { shared_limits: Some(self.limits.for_yard(name)), ..settings }
    }

    /// Stops sharing. Permits that are still held are released, and outcomes are stored.
    pub(crate) async fn stop(&self) {
        self.key_task.stop().await;
        self.limit_task.stop().await;
    }
}
