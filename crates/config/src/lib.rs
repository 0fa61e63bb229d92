//! The configuration: files in every known format, read, merged, checked, watched and edited. Each crate
//! defines its own settings; this one fills them in, and is the only one that knows how files look.
//! It neither reads the environment nor prints: an [`Environment`] comes in, a [`Config`] or
//! [`ConfigProblems`] go out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use toolyard_history::{AuditSettings, HistoryStoreSettings};
use toolyard_hooks::HookSettings;
use toolyard_hub::{Redaction, ResultChecks, ScopedLimits, SourceName, YardLimits};
use toolyard_openapi::{DocumentLocation, DocumentSettings};
use toolyard_program::ProgramSource;
use toolyard_serve::ConnectionLimits;

mod access;
mod atomic;
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
mod transport;
mod tree;
mod values;
mod watch;

pub use access::{Access, JwtEntry, TokenEntry, check_token_name};
pub use atomic::write_atomically;
pub use diff::{ConfigDiff, diff};
pub use edit::{
    ConfigEditError, NewServer, add_imports, add_server, read_imports, remove_server, set_server_enabled,
};
pub use environment::Environment;
pub use http_syntax::{is_http_url, parse_header};
pub use keys::{AuthMode, TesterKeys};
pub use limits::LimitKeys;
pub use listen::parse_listen_address;
pub use load::{FILE as TOOLYARD_TOML, default_config_file, load_servers_from};
pub use problem::{ConfigProblem, ConfigProblems, ProblemSeverity};
pub use programs::ProgramKeys;
pub use risk::carries_credentials;
pub use server::{BrokenServer, ServerEntry};
pub use watch::{ConfigChange, ConfigWatcher};

/// Everything that was configured.
#[derive(Debug, Default)]
pub struct Config {
    pub listen: Option<SocketAddr>,
    pub auth: Option<AuthMode>,
    /// Host names, beside the loopback ones, under which this server is reached.
    pub hosts: Vec<String>,
    /// Origins whose pages may use this server.
    pub origins: Vec<String>,
    /// How many connections there may be.
    pub connections: ConnectionLimits,
    /// What the holder of the token may do; everything if this is not said.
    pub permissions: Option<Vec<String>>,
    /// Whether the embedded demo tools are served too.
    pub demo: bool,
    /// Who may come in beside the owner.
    pub access: Access,
    /// Endpoints that are asked before calls and told afterwards.
    pub hooks: Vec<HookSettings>,
    /// The audit, if there is to be one.
    pub audit: Option<AuditSettings>,
    /// What is hidden in what is kept, shown and logged.
    pub redaction: Redaction,
    /// The history, if there is to be one.
    pub history: Option<HistoryStoreSettings>,
    pub limits: LimitKeys,
    pub tester: TesterKeys,
    pub programs: ProgramKeys,
    results: ResultChecks,
    /// The limits of single servers.
    bounds: BTreeMap<SourceName, ScopedLimits>,
    servers: Vec<ServerEntry>,
    /// What is odd, and what is wrong with single servers.
    problems: Vec<ConfigProblem>,
    /// Environment variables that secrets are taken from.
    pub secret_variables: BTreeSet<String>,
    files: Vec<files::FileSnapshot>,
}

impl Config {
    /// Reads these files, the usual one if there are none, or else makes the demo yard.
    pub fn load(files: &[PathBuf], around: &Environment) -> Result<Self, ConfigProblems> {
        load::load(files, around)
    }

    /// The servers, each with its settings or with what is wrong with it.
    pub fn servers(&self) -> &[ServerEntry] {
        &self.servers
    }

    /// Leaves nothing but the server of this name.
    pub fn retain_server(&mut self, name: &str) {
        self.servers.retain(|entry| entry.name().as_str() == name);
        self.demo &= name == "demo";
    }

    /// Adds an OpenAPI document that no file names, under a name that is still free.
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

    /// What the yard obeys.
    pub fn limits(&self) -> YardLimits {
        let mut sources = self.bounds.clone();
        // Programs have places of their own; looking a tool up waits for none.
        let without = ScopedLimits { calls: Some(usize::MAX), ..ScopedLimits::default() };
        sources.entry(SourceName::new(ProgramSource::NAME)).or_insert(without);
        YardLimits { sources, results: self.results.clone(), ..self.limits.limits() }
    }

    /// Whether nothing was configured at all, so that there is only the demo.
    pub fn is_demo_only(&self) -> bool {
        self.files.is_empty()
    }

    /// What is odd, and what is wrong with single servers, for a person to read.
    pub fn problems(&self) -> &[ConfigProblem] {
        &self.problems
    }
}

/// A time as the configuration writes it.
pub fn duration_from_text(text: &str) -> Option<std::time::Duration> {
    values::ConfigDuration::from_text(text).map(|time| time.0)
}
