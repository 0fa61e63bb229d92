//! The tables and their migrations. They are in a schema of their own, so that a database can be
//! shared with other applications.

use std::time::Duration;

use tokio_postgres::{Client, Error, GenericClient};

use crate::error::PostgresError;

/// Where the tables are.
pub(crate) const SCHEMA: &str = "toolyard";

/// The lock that a replica holds while it migrates: `TYSCHEMA`.
const MIGRATION_LOCK: i64 = 0x5459_5343_4845_4d41;
/// How long a migration may take, including the wait for the migration of another replica.
pub(crate) const MIGRATION_TIME: Duration = Duration::from_secs(120);

/// The migrations, starting with the creation of version 1. Existing ones must not be changed.
/// Replicas of the previous version keep running while the first one of the next version migrates,
/// so a migration must not remove or rename anything that they write.
pub(crate) const MIGRATIONS: [&str; 2] = [
    "
    CREATE TABLE toolyard.audit (
        id uuid PRIMARY KEY,
        at timestamptz NOT NULL,
        replica text,
        principal text NOT NULL,
        kind text NOT NULL,
        name text NOT NULL,
        server text,
        ended text NOT NULL,
        error_kind text,
        line text NOT NULL
    );
    CREATE INDEX audit_by_time ON toolyard.audit (at, id);
    CREATE TABLE toolyard.calls (
        id uuid PRIMARY KEY,
        at timestamptz NOT NULL,
        duration_us bigint NOT NULL,
        kind text NOT NULL,
        subject text NOT NULL,
        source text,
        principal text NOT NULL,
        session_id text,
        user_id text,
        status text NOT NULL,
        error_kind text,
        error text,
        replica text
    );
    CREATE INDEX calls_by_time ON toolyard.calls (at, id);
    CREATE INDEX calls_by_principal ON toolyard.calls (principal, at, id);
",
    "
    CREATE TABLE toolyard.logins (
        id bytea PRIMARY KEY,
        server text NOT NULL,
        sealed text NOT NULL,
        changed_at timestamptz NOT NULL DEFAULT now(),
        replica text
    );
    CREATE TABLE toolyard.tokens (
        name text PRIMARY KEY,
        digest bytea NOT NULL UNIQUE,
        settings text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz
    );
    CREATE TABLE toolyard.revoked_tokens (
        digest bytea PRIMARY KEY,
        name text NOT NULL,
        origin text NOT NULL,
        revoked_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE toolyard.token_revision (
        only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
        revision bigint NOT NULL
    );
    INSERT INTO toolyard.token_revision (revision) VALUES (0);
",
];

/// Creates the schema. A role without the privilege to create schemas can use an empty one that
/// was created for it.
const CREATE_SCHEMA: &str = "CREATE SCHEMA toolyard";
const CREATE_VERSION: &str = "
    CREATE TABLE toolyard.schema_version (
        only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
        version integer NOT NULL
    );
    INSERT INTO toolyard.schema_version (version) VALUES (0);
";
/// Locks and statements of a migration may take longer than those of calls.
const ALLOW_TIME: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = '130s'";

/// What the schema contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemaState {
    Absent,
    Empty,
    /// Something else is in it.
    Foreign,
    Version(i32),
}

/// What is done with a schema in this state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemaPlan {
    /// All migrations from this version on, after these statements.
    Migrate {
        first: &'static str,
        second: &'static str,
        from: usize,
    },
    Nothing,
    RefuseForeign,
    RefuseNewer(i32),
}

impl SchemaState {
    fn plan(self) -> SchemaPlan {
        match self {
            Self::Absent => SchemaPlan::Migrate { first: CREATE_SCHEMA, second: CREATE_VERSION, from: 0 },
            Self::Empty => SchemaPlan::Migrate { first: "", second: CREATE_VERSION, from: 0 },
            Self::Foreign => SchemaPlan::RefuseForeign,
            Self::Version(version) => match usize::try_from(version) {
                Ok(version) if version == MIGRATIONS.len() => SchemaPlan::Nothing,
                Ok(from) if from < MIGRATIONS.len() => SchemaPlan::Migrate { first: "", second: "", from },
                Ok(_) => SchemaPlan::RefuseNewer(version),
                Err(_) => SchemaPlan::RefuseForeign,
            },
        }
    }
}

/// Brings the database to the current version. Other replicas that start at the same time wait and
/// then find it migrated.
pub(crate) async fn migrate(client: &mut Client, database: &str) -> Result<(), PostgresError> {
    let failed = |error: Error| PostgresError::statement(database, &error);
    let encoding: String = client.query_one("SHOW server_encoding", &[]).await.map_err(failed)?.get(0);
    if encoding != "UTF8" {
        return Err(PostgresError::Encoding { database: database.to_owned(), encoding });
    }
    // Most starts find nothing to do, and take no lock.
    if read_state(client).await.map_err(failed)?.plan() == SchemaPlan::Nothing {
        return Ok(());
    }
    let change = client.transaction().await.map_err(failed)?;
    change.batch_execute(ALLOW_TIME).await.map_err(failed)?;
    change.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await.map_err(failed)?;
    match read_state(&change).await.map_err(failed)?.plan() {
        SchemaPlan::Nothing => return Ok(()),
        SchemaPlan::RefuseForeign => return Err(PostgresError::Foreign { database: database.to_owned() }),
        SchemaPlan::RefuseNewer(found) => {
            return Err(PostgresError::Newer { database: database.to_owned(), found });
        }
        SchemaPlan::Migrate { first, second, from } => {
            for step in [first, second].iter().chain(&MIGRATIONS[from..]) {
                change.batch_execute(step).await.map_err(failed)?;
            }
        }
    }
    let version = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    let set_version = "UPDATE toolyard.schema_version SET version = $1";
    change.execute(set_version, &[&version]).await.map_err(failed)?;
    change.commit().await.map_err(failed)?;
    tracing::info!(database, version, "migrated the PostgreSQL database");
    Ok(())
}

async fn read_state(client: &impl GenericClient) -> Result<SchemaState, Error> {
    let tables = client
        .query_one(
            "SELECT to_regnamespace('toolyard') IS NOT NULL,
                 EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('toolyard')),
                 EXISTS (SELECT FROM pg_attribute
                     WHERE attrelid = to_regclass('toolyard.schema_version') AND attname = 'version'
                     AND atttypid = 'integer'::regtype)
                     AND to_regclass('toolyard.audit') IS NOT NULL AND to_regclass('toolyard.calls') IS NOT NULL",
            &[],
        )
        .await?;
    match (tables.get(0), tables.get(1), tables.get(2)) {
        (false, _, _) => return Ok(SchemaState::Absent),
        (true, false, _) => return Ok(SchemaState::Empty),
        (true, true, false) => return Ok(SchemaState::Foreign),
        (true, true, true) => {}
    }
    let versions = client.query("SELECT version FROM toolyard.schema_version", &[]).await?;
    Ok(match versions.as_slice() {
        [row] => SchemaState::Version(row.get(0)),
        _ => SchemaState::Foreign,
    })
}

#[cfg(test)]
mod tests {
    use super::{CREATE_SCHEMA, CREATE_VERSION, MIGRATIONS, SchemaPlan, SchemaState};

    #[test]
    fn only_a_schema_of_this_or_an_earlier_version_is_used() {
        let current = i32::try_from(MIGRATIONS.len()).unwrap();
        for (state, plan) in [
            (
                SchemaState::Absent,
                SchemaPlan::Migrate { first: CREATE_SCHEMA, second: CREATE_VERSION, from: 0 },
            ),
            (SchemaState::Empty, SchemaPlan::Migrate { first: "", second: CREATE_VERSION, from: 0 }),
            (
                SchemaState::Version(current - 1),
                SchemaPlan::Migrate { first: "", second: "", from: MIGRATIONS.len() - 1 },
            ),
            (SchemaState::Version(current), SchemaPlan::Nothing),
            (SchemaState::Version(current + 1), SchemaPlan::RefuseNewer(current + 1)),
            (SchemaState::Version(-1), SchemaPlan::RefuseForeign),
            (SchemaState::Foreign, SchemaPlan::RefuseForeign),
        ] {
            assert_eq!(state.plan(), plan, "{state:?}");
        }
    }

    #[test]
    fn migrations_name_the_schema_of_every_table() {
        for migration in MIGRATIONS {
            for statement in ["CREATE TABLE ", "ALTER TABLE ", " ON ", "UPDATE "] {
                for (at, _) in migration.match_indices(statement) {
                    assert!(migration[at + statement.len()..].starts_with("toolyard."), "{migration}");
                }
            }
        }
    }
}
