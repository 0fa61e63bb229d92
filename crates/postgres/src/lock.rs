//! Locks that all replicas share. A lock belongs to a connection of its own, so the end of the
//! connection releases it, also if the process is killed.

use std::fmt;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Client;

use crate::connect::{LinkPurpose, PostgresConnector, PostgresDriver, drive};
use crate::error::PostgresError;
use crate::link::SqlParams;

/// Guard of a lock. Dropping it closes the connection, which releases the lock.
pub struct PostgresLock {
    _client: Client,
    _driver: PostgresDriver,
}

impl PostgresConnector {
    /// Waits for the lock with this number. Returns `None` if another connection still holds it
    /// after `patience`, which must be less than a minute.
    pub async fn lock(&self, number: i64, patience: Duration) -> Result<Option<PostgresLock>, PostgresError> {
        let (client, mut driver) = self.connect(LinkPurpose::Lock).await?;
        let locked = {
            let params: SqlParams<'_> = &[&number];
            let locking = client.execute("SELECT pg_advisory_lock($1)", params);
            timeout(patience, drive(&mut driver, locking)).await
        };
        match locked {
            Ok(Ok(_)) => Ok(Some(PostgresLock { _client: client, _driver: driver })),
            Ok(Err(error)) => Err(PostgresError::statement(self.database(), &error)),
            Err(_) => Ok(None),
        }
    }
}

impl fmt::Debug for PostgresLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresLock")
    }
}
