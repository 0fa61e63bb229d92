//! Connections to the PostgreSQL database that several replicas share. They are opened again
//! whenever they break. The tables and their migrations are here, so that there is one version of
//! the database; the statements belong to the crates that use them.

mod connect;
mod error;
mod link;
mod lock;
mod schema;
mod tls;

use std::fmt;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

pub use self::connect::{LinkPurpose, PostgresConnector, PostgresDriver, drive};
pub use self::error::PostgresError;
pub use self::link::{LinkChanges, PostgresLink, SqlParams};
pub use self::lock::PostgresLock;

/// The port of PostgreSQL, unless the URL has another one.
const USUAL_PORT: u16 = 5432;

/// A database, and the replica that writes to it.
#[derive(Clone)]
pub struct PostgresSettings {
    config: Box<Config>,
    /// What messages call the database: its address and name, without credentials.
    database: String,
    /// What rows call the replica that wrote them.
    pub replica: Option<String>,
}

/// The URL of a database is invalid. The message does not repeat the URL, which can contain a
/// password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not a valid PostgreSQL URL: {0}")]
pub struct InvalidPostgresUrl(String);

impl PostgresSettings {
    /// Parses a `postgres://` URL.
    pub fn parse(url: &str, replica: Option<String>) -> Result<Self, InvalidPostgresUrl> {
        let invalid = |error: tokio_postgres::Error| InvalidPostgresUrl(error::describe(&error));
        let config: Config = url.parse().map_err(invalid)?;
        if config.get_hosts().is_empty() {
            return Err(InvalidPostgresUrl("it has no host".to_owned()));
        }
        let database = describe_database(&config);
        Ok(Self { config: Box::new(config), database, replica })
    }
}

impl fmt::Debug for PostgresSettings {
    /// The URL contains a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSettings")
            .field("database", &self.database)
            .field("replica", &self.replica)
            .finish_non_exhaustive()
    }
}

/// Returns the addresses and the name of the database, such as `10.0.0.5:5432/toolyard`.
fn describe_database(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(at, host)| {
        // One port applies to all hosts.
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(USUAL_PORT);
        match host {
            Host::Tcp(host) if host.contains(':') => format!("[{host}]:{port}"),
            Host::Tcp(host) => format!("{host}:{port}"),
            Host::Unix(folder) => folder.join(format!(".s.PGSQL.{port}")).display().to_string(),
        }
    });
    let name = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("{}/{name}", hosts.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::PostgresSettings;

    #[test]
    fn a_database_is_described_without_credentials() {
        for (url, database) in [
            ("postgres://yard:hush@db.example/toolyard?sslmode=require", "db.example:5432/toolyard"),
            ("postgresql://yard:hush@10.0.0.5:6000", "10.0.0.5:6000/yard"),
            ("postgres://yard:hush@[::1]:6000/a", "[::1]:6000/a"),
            ("postgres://yard:hush@one,two:6000/a?target_session_attrs=read-write", "one:5432,two:6000/a"),
            ("postgres://yard:hush@%2Frun%2Fpg/a", "/run/pg/.s.PGSQL.5432/a"),
        ] {
            let settings = PostgresSettings::parse(url, Some("one".to_owned())).unwrap();
            let expected =
                format!(r#"PostgresSettings {{ database: "{database}", replica: Some("one"), .. }}"#);
            assert_eq!(format!("{settings:?}"), expected, "{url}");
        }
    }

    #[test]
    fn an_invalid_url_is_described_without_credentials() {
        for (url, message) in [
            ("postgres://yard:hush@db:port/a", "invalid connection string: invalid value for option `port`"),
            (
                "postgres://yard:hush@db/a?sslmode=maybe",
                "invalid connection string: invalid value for option `sslmode`",
            ),
            ("postgres://yard:hush@db/a?color=red", "invalid connection string: unknown option `color`"),
            ("postgres:///a", "it has no host"),
        ] {
            let error = PostgresSettings::parse(url, None).unwrap_err().to_string();
            assert_eq!(error, format!("is not a valid PostgreSQL URL: {message}"), "{url}");
        }
    }
}
