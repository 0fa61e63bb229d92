//! Configuration files: reads, merges, validates, watches and edits them, in every supported
//! format.
//!
//! Each crate defines its own settings. This crate fills them in and is the only one that knows the
//! file formats. It neither reads the environment nor prints: it takes an [`Environment`] and
//! returns a [`Config`] or [`ConfigProblems`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use toolyard_cluster::ClusterSettings;
use toolyard_history::{AuditDestination, HistoryDestination};
use toolyard_hooks::HookSettings;
use toolyard_hub::{Redaction, ResultChecks, ScopedLimits, SourceName, YardLimits};
use toolyard_openapi::{DocumentLocation, DocumentSettings};
use toolyard_program::ProgramSource;
use toolyard_serve::ConnectionLimits;

mod access;
mod atomic;
mod cluster;
mod connections;
mod diff;
mod document;
mod dotenv;
mod edit;
mod environment;
mod expand;
mod files;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod hook;
mod http_syntax;
mod keys;
mod limits;
mod lint;
mod listen;
mod load;
mod openapi;
mod problem;
mod programs;
mod records;
mod risk;
mod server;
mod server_section;
#[cfg(test)]
mod tests;
mod token_text;
mod transport;
mod tree;
mod values;
mod watch;

pub use access::{Access, JwtEntry, TokenEntry, check_token_name};
pub use atomic::{lock_folder, write_atomically};
pub use diff::{ConfigDiff, diff};
pub use edit::{
    ConfigEditError, NewServer, add_imports, add_server, read_imports, remove_server, set_server_enabled,
};
pub use environment::Environment;
pub use http_syntax::{is_http_url, parse_header};
pub use keys::{AuthMode, TesterKeys};
pub use limits::LimitKeys;
pub use lint::LintKeys;
pub use listen::parse_listen_address;
pub use load::{FILE as TOOLYARD_TOML, default_config_file, load_servers_from};
pub use problem::{ConfigProblem, ConfigProblems, ProblemSeverity};
pub use programs::ProgramKeys;
pub use risk::carries_credentials;
pub use server::{BrokenServer, ServerEntry};
pub use token_text::parse_token;
pub use watch::{ConfigChange, ConfigWatcher};

/// The effective configuration, merged from all files.
#[derive(Debug, Default)]
pub struct Config {
    pub listen: Option<SocketAddr>,
    pub auth: Option<AuthMode>,
    /// Host names, in addition to the loopback names, that the `Host` header may contain.
    pub hosts: Vec<String>,
    /// Web origins that may use this server from a browser.
    pub origins: Vec<String>,
    /// Limits on HTTP connections.
    pub connections: ConnectionLimits,
    /// Permissions of the owner. `None` grants all permissions.
    pub permissions: Option<Vec<String>>,
    /// Whether the built-in demo tools are served.
    pub demo: bool,
    /// Access of callers other than the owner.
    pub access: Access,
    /// HTTP endpoints that are called before and after tool calls.
    pub hooks: Vec<HookSettings>,
    /// Settings of a yard with several replicas, if this is one of them.
    pub cluster: Option<ClusterSettings>,
    /// Settings of the audit log, if enabled.
    pub audit: Option<AuditDestination>,
    /// What is redacted in records and logs.
    pub redaction: Redaction,
    /// Settings of the call history, if enabled.
    pub history: Option<HistoryDestination>,
    pub limits: LimitKeys,
    pub lint: LintKeys,
    pub tester: TesterKeys,
    pub programs: ProgramKeys,
    results: ResultChecks,
    /// Limits by server.
    bounds: BTreeMap<SourceName, ScopedLimits>,
    servers: Vec<ServerEntry>,
    /// Warnings, and errors of single servers.
    problems: Vec<ConfigProblem>,
    /// Names of environment variables that contain secrets.
    pub secret_variables: BTreeSet<String>,
    /// A digest of the configuration files.
    pub digest: String,
    files: Vec<files::FileSnapshot>,
}

impl Config {
    /// Loads these files. If `files` is empty, loads the default file, or else configures the demo
    /// yard.
    pub fn load(files: &[PathBuf], around: &Environment) -> Result<Self, ConfigProblems> {
        load::load(files, around)
    }

    /// Returns the servers, each with its settings or its errors.
    pub fn servers(&self) -> &[ServerEntry] {
        &self.servers
    }

    /// Removes all servers except the one of this name.
    pub fn retain_server(&mut self, name: &str) {
        self.servers.retain(|entry| entry.name().as_str() == name);
        self.demo &= name == "demo";
    }

    /// Adds an OpenAPI document that is not in a file, under an unused name.
    pub fn add_document(&mut self, document: &str, base_url: Option<String>, environment: &Environment) {
        let location = match openapi::has_http_scheme(document) {
            true => DocumentLocation::Url(document.to_owned()),
            false => DocumentLocation::File(environment.resolve(document, environment.folder())),
        };
        let name = self.unused_name(&openapi::document_name(document));
        let settings = DocumentSettings { base_url, ..DocumentSettings::new(name, location) };
        self.servers.push(ServerEntry::Document(Box::new(settings)));
    }

    fn unused_name(&self, wanted: &str) -> SourceName {
        let taken = |name: &str| self.servers.iter().any(|entry| entry.name().as_str() == name);
        let names =
            std::iter::once(wanted.to_owned()).chain((2_u32..).map(|number| format!("{wanted}-{number}")));
        let free = names.into_iter().find(|name| !(taken(name) || name == "demo" && self.demo));
        SourceName::new(free.unwrap_or_else(|| wanted.to_owned()))
    }

    /// Returns the limits of the yard, including those of its servers.
    pub fn limits(&self) -> YardLimits {
        let mut sources = self.bounds.clone();
        // Programs have a concurrency limit of their own, and looking up a tool must not wait for
        // it.
        let without = ScopedLimits { calls: Some(usize::MAX), ..ScopedLimits::default() };
        sources.entry(SourceName::new(ProgramSource::NAME)).or_insert(without);
        YardLimits { sources, results: self.results.clone(), ..self.limits.limits() }
    }

    /// Whether there is no configuration file, so that only the demo tools are served.
    pub fn is_demo_only(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns warnings and errors of single servers, to be shown to the user.
    pub fn problems(&self) -> &[ConfigProblem] {
        &self.problems
    }
}

/// Parses a duration as it is written in the configuration.
pub fn duration_from_text(text: &str) -> Option<std::time::Duration> {
    values::ConfigDuration::from_text(text).map(|time| time.0)
}
