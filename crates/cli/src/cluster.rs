//! The parts of a yard that it shares with its other replicas.

use std::sync::Arc;

use toolyard_cluster::{ClusterSettings, LimitTask, RedisLimits, RedisStore};
use toolyard_hub::{ReplicaId, SharedLimits, YardSettings};

/// This process as one of several replicas.
pub(crate) struct RunningReplica {
    limits: Arc<RedisLimits>,
    limit_task: LimitTask,
}

impl RunningReplica {
    /// Starts the tasks that share limits. Redis need not be reachable yet.
    pub(crate) fn start(settings: &ClusterSettings) -> anyhow::Result<Self> {
        let store = RedisStore::open(&settings.redis)?;
        let id = ReplicaId::new(&toolyard_random::hex_id()?);
        let (limits, limit_task) = RedisLimits::start(store, id, settings.on_store_loss);
        Ok(Self { limits, limit_task })
    }

    /// Adds what replicas share to the settings of the main yard.
    pub(crate) fn apply_to(&self, settings: YardSettings) -> YardSettings {
        let limits = Arc::clone(&self.limits) as Arc<dyn SharedLimits>;
        YardSettings { shared_limits: Some(limits), ..settings }
    }

    /// Adds the shared limits to the settings of another yard of this process.
    pub(crate) fn apply_to_annex(&self, settings: YardSettings, name: &'static str) -> YardSettings {
        YardSettings { shared_limits: Some(self.limits.for_yard(name)), ..settings }
    }

    /// Stops sharing. Permits that are still held are released.
    pub(crate) async fn stop(&self) {
        self.limit_task.stop().await;
    }
}
