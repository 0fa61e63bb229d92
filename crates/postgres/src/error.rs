//! Why PostgreSQL cannot be used. No message contains the password, and the server does not repeat
//! it.

use std::error::Error;
use std::io;
use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::schema::{MIGRATIONS, SCHEMA};

/// Why a database cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostgresError {
    /// It may be reachable later.
    #[error("cannot connect to PostgreSQL at {database}: {reason}")]
    Unreachable { database: String, reason: String },
    #[error("PostgreSQL at {database} did not answer within {} seconds", time.as_secs())]
    TimedOut { database: String, time: Duration },
    #[error("this system does not trust PostgreSQL at {database}: {reason}")]
    Untrusted { database: String, reason: String },
    #[error("PostgreSQL at {database} refused the connection: {reason}")]
    Refused { database: String, reason: String },
    #[error("PostgreSQL at {database} denied access: {reason}")]
    Denied { database: String, reason: String },
    #[error("PostgreSQL at {database} failed: {reason}")]
    Failed { database: String, reason: String },
    #[error(
        "the schema `{SCHEMA}` of the PostgreSQL database {database} was not created by Toolyard; it was left unchanged"
    )]
    Foreign { database: String },
    #[error(
        "the PostgreSQL database {database} was migrated by a newer Toolyard (schema version {found}, supported up \
         to {})",
        MIGRATIONS.len()
    )]
    Newer { database: String, found: i32 },
    #[error("the PostgreSQL database {database} has the encoding {encoding}, but UTF8 is required")]
    Encoding { database: String, encoding: String },
}

impl PostgresError {
    /// Describes a failure to connect.
    pub(crate) fn connecting(database: &str, error: &tokio_postgres::Error) -> Self {
        let (database, reason) = (database.to_owned(), describe(error));
        if is_untrusted(error) {
            return Self::Untrusted { database, reason };
        }
        match error.code() {
            // A server that is starting, is stopping or has no room now.
            Some(code) if is_shutdown(code) || *code == SqlState::TOO_MANY_CONNECTIONS => {
                Self::Unreachable { database, reason }
            }
            Some(_) => Self::Refused { database, reason },
            None => Self::Unreachable { database, reason },
        }
    }

    /// Describes a statement that failed.
    pub fn statement(database: &str, error: &tokio_postgres::Error) -> Self {
        let (database, reason) = (database.to_owned(), describe(error));
        if is_connection_lost(error) {
            Self::Unreachable { database, reason }
        } else if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
            Self::Denied { database, reason }
        } else {
            Self::Failed { database, reason }
        }
    }

    /// Returns whether the database may be usable again without any change.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TimedOut { .. })
    }

    /// Returns what the user can do about it.
    pub fn suggestion(&self) -> String {
        let text = match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } => {
                "check that the server is running and that `cluster.postgres` has its address"
            }
            Self::Untrusted { .. } => {
                "make this system trust the certificate, name a file with it in SSL_CERT_FILE, or change `sslmode` in \
                 `cluster.postgres`"
            }
            Self::Refused { .. } => {
                "check the user, the password and the database in `cluster.postgres`; special characters of a password \
                 must be percent-encoded"
            }
            Self::Failed { .. } => "see the log of PostgreSQL for the reason",
            Self::Denied { .. } => {
                "the user needs the privilege to create a schema in the database: make it the owner of the database, or \
                 run: GRANT CREATE ON DATABASE name TO user"
            }
            Self::Foreign { .. } => {
                "use another database in `cluster.postgres`, or rename the schema: ALTER SCHEMA toolyard RENAME TO other"
            }
            Self::Newer { .. } => "use the newer Toolyard, or another database in `cluster.postgres`",
            Self::Encoding { .. } => {
                "use another database in `cluster.postgres`: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
            }
        };
        text.to_owned()
    }
}

/// Returns whether a statement failed because of its connection, so that another connection may
/// succeed.
pub(crate) fn is_connection_lost(error: &tokio_postgres::Error) -> bool {
    error.code().is_none_or(|code| {
        // After a failover, the old server accepts only reads.
        is_shutdown(code) || code.code().starts_with("08") || *code == SqlState::READ_ONLY_SQL_TRANSACTION
    })
}

/// Returns whether a server has a certificate that was rejected.
fn is_untrusted(error: &tokio_postgres::Error) -> bool {
    let io = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    let tls = io.and_then(|error| error.get_ref()).and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(tls, Some(rustls::Error::InvalidCertificate(_)))
}

/// Returns whether a server is starting, is stopping, or has ended the session.
fn is_shutdown(code: &SqlState) -> bool {
    code.code().starts_with("57P")
}

/// Describes an error with its causes. The library's own message omits them.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
