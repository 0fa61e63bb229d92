//! Deletes old and excess rows. One replica does so at a time, on a connection of its own, so that
//! calls do not wait for it.

use std::time::{Duration, SystemTime};

use tokio::time::timeout;
use tokio_postgres::{Client, Error};
use tokio_util::sync::CancellationToken;

use toolyard_postgres::{LinkPurpose, PostgresConnector, PostgresError, drive};

/// When the first deletion begins. Short commands leave it to others.
const FIRST: Duration = Duration::from_secs(3);
/// How many rows are deleted at once, so that the statement fits its deadline.
const MOST_AT_ONCE: i64 = 2_000;
/// How long one round may take. The next one continues.
const ROUND_TIME: Duration = Duration::from_secs(300);

/// What is kept of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RetentionRule {
    table: RetentionTable,
    keep_for: Option<Duration>,
    keep_rows: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetentionTable {
    Audit,
    Calls,
}

impl RetentionRule {
    pub(super) fn audit(keep_for: Option<Duration>) -> Self {
        Self { table: RetentionTable::Audit, keep_for, keep_rows: None }
    }

    pub(super) fn calls(keep_rows: u64, keep_for: Option<Duration>) -> Self {
        Self { table: RetentionTable::Calls, keep_for, keep_rows: Some(keep_rows) }
    }

    /// Returns whether everything is kept.
    fn keeps_all(&self) -> bool {
        self.keep_for.is_none() && self.keep_rows.is_none()
    }
}

impl RetentionTable {
    fn name(self) -> &'static str {
        match self {
            Self::Audit => "toolyard.audit",
            Self::Calls => "toolyard.calls",
        }
    }

    /// The lock that the deleting replica holds: `TYAUDIT`, `TYCALLS`.
    fn lock(self) -> i64 {
        match self {
            Self::Audit => 0x0054_5941_5544_4954,
            Self::Calls => 0x0054_5943_414c_4c53,
        }
    }

    fn interval(self) -> Duration {
        match self {
            Self::Audit => Duration::from_secs(3600),
            Self::Calls => Duration::from_secs(60),
        }
    }

    /// Deletes the oldest of the rows before a time.
    fn delete_expired(self) -> String {
        let table = self.name();
        format!(
            "DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE at < $1 ORDER BY at, id LIMIT $2) AND at < $1"
        )
    }

    /// Deletes the oldest of the rows beyond a number.
    fn delete_excess(self) -> String {
        let table = self.name();
        format!(
            "WITH excess AS (SELECT at, id FROM {table} ORDER BY at DESC, id DESC OFFSET $1 LIMIT 1)
             DELETE FROM {table} WHERE id IN (
                 SELECT old.id FROM {table} AS old, excess WHERE (old.at, old.id) <= (excess.at, excess.id)
                 ORDER BY old.at, old.id LIMIT $2)"
        )
    }
}

/// Deletes rows from time to time, until `stop`.
pub(super) async fn keep_pruned(
    connector: PostgresConnector,
    retention: RetentionRule,
    stop: CancellationToken,
) {
    if retention.keeps_all() {
        return;
    }
    let work = async {
        tokio::time::sleep(FIRST).await;
        loop {
            let done = match timeout(ROUND_TIME, prune(&connector, &retention)).await {
                Ok(done) => done,
                Err(_) => Err(connector.timed_out(ROUND_TIME)),
            };
            if let Err(error) = done {
                tracing::warn!(table = retention.table.name(), %error, "cannot delete old rows");
            }
            tokio::time::sleep(retention.table.interval()).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = stop.cancelled() => {}
    }
}

/// Deletes what need not be kept, unless another replica is doing so. The end of the connection
/// releases the lock.
async fn prune(connector: &PostgresConnector, retention: &RetentionRule) -> Result<(), PostgresError> {
    let (client, mut driver) = connector.connect(LinkPurpose::Retention).await?;
    let done = drive(&mut driver, delete(&client, retention)).await;
    done.map_err(|error| PostgresError::statement(connector.database(), &error))
}

async fn delete(client: &Client, retention: &RetentionRule) -> Result<(), Error> {
    let table = retention.table;
    let locked: bool = client.query_one("SELECT pg_try_advisory_lock($1)", &[&table.lock()]).await?.get(0);
    if !locked {
        return Ok(());
    }
    if let Some(start) = retention.keep_for.and_then(|time| SystemTime::now().checked_sub(time)) {
        let statement = client.prepare(&table.delete_expired()).await?;
        while client.execute(&statement, &[&start, &MOST_AT_ONCE]).await? > 0 {}
    }
    if let Some(rows) = retention.keep_rows {
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        let statement = client.prepare(&table.delete_excess()).await?;
        while client.execute(&statement, &[&rows, &MOST_AT_ONCE]).await? > 0 {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{RetentionRule, RetentionTable};

    #[test]
    fn each_table_has_a_lock_and_limits_of_its_own() {
        assert_ne!(RetentionTable::Audit.lock(), RetentionTable::Calls.lock());
        assert!(RetentionRule::audit(None).keeps_all());
        assert!(!RetentionRule::audit(Some(Duration::from_secs(1))).keeps_all());
        assert!(!RetentionRule::calls(5, None).keeps_all());
    }
}
