//! The limits and idempotency keys that a yard shares with its other replicas.

use std::sync::Arc;

use toolyard_cluster::{ClusterSettings, KeyTask, LimitTask, RedisKeys, RedisLimits, RedisStore};
use toolyard_hub::{ReplicaId, SharedKeys, SharedLimits, YardSettings};

/// What the calls of this replica share with those of others, and the tasks behind it.
pub(crate) struct ClusterSharing {
    limits: Arc<RedisLimits>,
    limit_task: LimitTask,
    keys: Arc<RedisKeys>,
    key_task: KeyTask,
}

impl ClusterSharing {
    /// Starts the tasks. Redis need not be reachable yet.
    pub(super) fn start(settings: &ClusterSettings, store: &Arc<RedisStore>, id: &ReplicaId) -> Self {
        let (keys, key_task) = RedisKeys::start(Arc::clone(store), id.clone());
        let (limits, limit_task) = RedisLimits::start(Arc::clone(store), id.clone(), settings.on_store_loss);
        Self { limits, limit_task, keys, key_task }
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

    /// Stops the tasks. Permits that are still held are released, and outcomes are stored.
    pub(crate) async fn stop(&self) {
        self.key_task.stop().await;
        self.limit_task.stop().await;
    }
}
