//! The configuration: read whole from every file, reported whole. Each room has its own settings; this one only
//! assembles them, and is the only one that knows how files look. Nothing here is ever written to a file.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use toolyard_history::{AuditSettings, HistoryStoreSettings};
use toolyard_hooks::HookSettings;
use toolyard_hub::{Redaction, ResultChecks, ScopedLimits, SourceName, YardLimits};
use toolyard_program::ProgramSource;
use toolyard_serve::ConnectionLimits;

use crate::args::AuthMode;

mod access;
mod connections;
mod diff;
mod document;
mod dotenv;
mod environment;
mod expand;
mod files;
mod format;
pub(crate) mod fuzzing;
mod hook;
mod http_syntax;
mod inputs;
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

pub(crate) use access::{Access, TokenEntry, check_token_name};
pub(crate) use diff::diff;
pub(crate) use environment::Environment;
pub(crate) use http_syntax::{is_http_url, parse_header};
pub(crate) use inputs::ConfigInputs;
pub(crate) use keys::TesterKeys;
pub(crate) use limits::LimitKeys;
pub(crate) use listen::parse_listen_address;
pub(crate) use load::{FILE as TOOLYARD_TOML, default_config_file, load_servers_from};
pub(crate) use problem::{ConfigProblem, ConfigProblems, ProblemSeverity};
pub(crate) use programs::ProgramKeys;
pub(crate) use risk::carries_credentials;
pub(crate) use server::ServerEntry;
pub(crate) use values::parse_duration;
pub(crate) use watch::{ConfigChange, ConfigWatcher};

/// Everything that was configured.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) auth: Option<AuthMode>,
    /// Host names, beside the loopback ones, under which this server is reached.
    pub(crate) hosts: Vec<String>,
    /// Origins whose pages may use this server.
    pub(crate) origins: Vec<String>,
    /// How many connections there may be.
    pub(crate) connections: ConnectionLimits,
    /// What the holder of the token may do; everything if this is not said.
    pub(crate) permissions: Option<Vec<String>>,
    /// Whether the embedded demo tools are served too.
    pub(crate) demo: bool,
    /// Who may come in beside the owner.
    pub(crate) access: Access,
    /// Endpoints that are asked before calls and told afterwards.
    pub(crate) hooks: Vec<HookSettings>,
    /// The audit, if there is to be one.
    pub(crate) audit: Option<AuditSettings>,
    /// What is hidden in what is kept, shown and logged.
    pub(crate) redaction: Redaction,
    /// The history, if there is to be one.
    pub(crate) history: Option<HistoryStoreSettings>,
    pub(crate) limits: LimitKeys,
    pub(crate) tester: TesterKeys,
    pub(crate) programs: ProgramKeys,
    results: ResultChecks,
    /// The limits of single servers.
    bounds: BTreeMap<SourceName, ScopedLimits>,
    servers: Vec<ServerEntry>,
    /// What is odd, and what is wrong with single servers.
    problems: Vec<ConfigProblem>,
    /// Environment variables that secrets are taken from.
    pub(crate) secret_variables: BTreeSet<String>,
    files: Vec<files::FileSnapshot>,
}

impl Config {
    /// Reads these files, the usual one if there are none, or else makes the demo yard.
    pub(crate) fn load(files: &[PathBuf], around: &Environment) -> Result<Self, ConfigProblems> {
        load::load(files, around)
    }

    /// The servers, each with its settings or with what is wrong with it.
    pub(crate) fn servers(&self) -> &[ServerEntry] {
        &self.servers
    }

    /// Leaves nothing but the server of this name.
    pub(crate) fn keep_only(&mut self, name: &str) {
        self.servers.retain(|entry| entry.name().as_str() == name);
        self.demo &= name == "demo";
    }

    /// What the yard obeys.
    pub(crate) fn limits(&self) -> YardLimits {
        let mut sources = self.bounds.clone();
        // Programs have places of their own; looking a tool up waits for none.
        let without = ScopedLimits { calls: Some(usize::MAX), ..ScopedLimits::default() };
        sources.entry(SourceName::new(ProgramSource::NAME)).or_insert(without);
        YardLimits { sources, results: self.results.clone(), ..self.limits.limits() }
    }

    /// Whether nothing was configured at all, so that there is only the demo.
    pub(crate) fn is_demo_only(&self) -> bool {
        self.files.is_empty()
    }

    /// What is odd, and what is wrong with single servers, for a person to read.
    pub(crate) fn problems(&self) -> &[ConfigProblem] {
        &self.problems
    }
}

/// A time as the configuration writes it.
pub(crate) fn duration_from_text(text: &str) -> Option<std::time::Duration> {
    values::ConfigDuration::from_text(text).map(|time| time.0)
}

/// Reads the configuration and tells the person who started us what is wrong with it; nothing if it cannot be used.
pub(crate) fn load_or_report(files: &[PathBuf]) -> Option<Config> {
    let loaded = Config::load(files, &Environment::from_process());
    let problems = match &loaded {
        Ok(config) => config.problems(),
        Err(problems) => &problems.0,
    };
    for problem in problems {
        eprintln!("toolyard: {problem}");
    }
    loaded.ok()
}
