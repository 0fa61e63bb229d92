//! The connection to Redis. Every command has a deadline. While Redis does not answer, commands
//! fail immediately, except for the heartbeat, which notices when it is back.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Cmd, FromRedisValue, Pipeline, RedisError, ScriptInvocation};
use tokio::time::Instant;
use toolyard_hub::StoreUnavailable;

/// How long a command may take. Calls wait for it, so it is short.
const COMMAND_TIME: Duration = Duration::from_millis(500);
const CONNECT_TIME: Duration = Duration::from_secs(2);

/// Every key starts with this. The braces keep all keys in one slot, so that one script can use
/// several of them.
pub const KEY_PREFIX: &str = "toolyard:{yard}:";

/// The URL of the Redis server is invalid.
#[derive(Debug, thiserror::Error)]
#[error("`cluster.redis` is not a valid Redis URL: {0}")]
pub struct InvalidStoreUrl(String);

/// A connection to Redis, which all parts of this process share.
pub struct RedisStore {
    connection: ConnectionManager,
    available: AtomicBool,
}

impl RedisStore {
    /// Prepares the connection. It is opened by the first command.
    pub fn open(url: &str) -> Result<Arc<Self>, InvalidStoreUrl> {
        let invalid = |error: RedisError| InvalidStoreUrl(error.to_string());
        let client = Client::open(url).map_err(invalid)?;
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT_TIME))
            // `watch` applies the deadline.
            .set_response_timeout(None)
            .set_number_of_retries(1);
        let connection = ConnectionManager::new_lazy_with_config(client, config).map_err(invalid)?;
        Ok(Arc::new(Self { connection, available: AtomicBool::new(true) }))
    }

    /// Returns whether the last command was answered.
    pub fn is_available(&self) -> bool {
        self.available.load(Ordering::Relaxed)
    }

    /// Runs a command. Fails immediately while Redis does not answer.
    pub async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreUnavailable> {
        self.check_available()?;
        let mut connection = self.connection.clone();
        self.watch(command.query_async(&mut connection)).await
    }

    /// Sends several commands and ignores their answers. Fails immediately while Redis does not answer.
    pub(crate) async fn send(&self, commands: &Pipeline) -> Result<(), StoreUnavailable> {
        self.check_available()?;
        let mut connection = self.connection.clone();
        self.watch(commands.query_async(&mut connection)).await
    }

    /// Runs a script. Fails immediately while Redis does not answer.
    pub async fn run<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, StoreUnavailable> {
        self.check_available()?;
        self.probe(script).await
    }

    /// Runs a script even if Redis did not answer before.
    pub(crate) async fn probe<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, StoreUnavailable> {
        let mut connection = self.connection.clone();
        self.watch(script.invoke_async(&mut connection)).await
    }

    fn check_available(&self) -> Result<(), StoreUnavailable> {
        match self.is_available() {
            true => Ok(()),
            false => Err(StoreUnavailable("Redis does not answer".to_owned())),
        }
    }

    /// Applies the deadline and notes whether Redis answers.
    async fn watch<T>(
        &self,
        command: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, StoreUnavailable> {
        let mut command = pin!(command);
        let answer = loop {
            let sent = Instant::now();
            match tokio::time::timeout(COMMAND_TIME, &mut command).await {
                Ok(answer) => break answer.map_err(|error| error.to_string()),
                // The deadline was noticed so late that this process must have been stopped. The
                // answer may be there and not read yet.
                Err(_) if sent.elapsed() > 2 * COMMAND_TIME => {}
                Err(_) => break Err(format!("Redis did not answer within {} ms", COMMAND_TIME.as_millis())),
            }
        };
        let available = answer.is_ok();
        if self.available.swap(available, Ordering::Relaxed) != available {
            match &answer {
                Ok(_) => tracing::info!("Redis is available again"),
                Err(error) => tracing::warn!(error, "Redis is not available"),
            }
        }
        answer.map_err(StoreUnavailable)
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore").field("available", &self.is_available()).finish_non_exhaustive()
    }
}
