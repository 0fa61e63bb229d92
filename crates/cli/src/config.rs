//! The configuration: read whole from every file, reported whole. Each room has its own settings; this one only
//! assembles them, and is the only one that knows how files look. Nothing here is ever written to a file.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use toolyard_history::{AuditSettings, StoreSettings};
use toolyard_hub::{Bounds, Limits, Redaction, ResultChecks, SourceName};
use toolyard_program::Programs;
use toolyard_serve::ConnectionLimits;

use crate::args::AuthMode;
use crate::outside::HookSettings;

mod access;
mod address;
mod connections;
mod diff;
mod document;
mod dotenv;
mod expand;
mod files;
mod form;
pub(crate) mod fuzzing;
mod given;
mod hook;
mod keys;
mod limits;
mod listen;
mod load;
mod openapi;
mod origin;
mod problem;
mod programs;
mod records;
mod risk;
mod server;
mod surroundings;
#[cfg(test)]
mod tests;
mod transport;
mod tree;
mod values;
mod watch;

pub(crate) use access::{Access, TokenEntry, name_problem};
pub(crate) use address::{header, is_address};
pub(crate) use diff::diff;
pub(crate) use given::Given;
pub(crate) use keys::TesterKeys;
pub(crate) use limits::LimitKeys;
pub(crate) use listen::read_listen;
pub(crate) use load::{FILE as TOOLYARD_TOML, servers_of, usual_file};
pub(crate) use problem::{Problem, Problems, Severity};
pub(crate) use programs::ProgramKeys;
pub(crate) use risk::carries_credentials;
pub(crate) use server::ServerEntry;
pub(crate) use surroundings::Surroundings;
pub(crate) use values::read_time;
pub(crate) use watch::{Change, Watch};

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
    pub(crate) history: Option<StoreSettings>,
    pub(crate) limits: LimitKeys,
    pub(crate) tester: TesterKeys,
    pub(crate) programs: ProgramKeys,
    results: ResultChecks,
    /// The limits of single servers.
    bounds: BTreeMap<SourceName, Bounds>,
    servers: Vec<ServerEntry>,
    /// What is odd, and what is wrong with single servers.
    problems: Vec<Problem>,
    /// Environment variables that secrets are taken from.
    pub(crate) secret_variables: BTreeSet<String>,
    files: Vec<files::SeenFile>,
}

impl Config {
    /// Reads these files, the usual one if there are none, or else makes the demo yard.
    pub(crate) fn load(files: &[PathBuf], around: &Surroundings) -> Result<Self, Problems> {
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
    pub(crate) fn limits(&self) -> Limits {
        let mut sources = self.bounds.clone();
        // Programs have places of their own; looking a tool up waits for none.
        let without = Bounds { calls: Some(usize::MAX), ..Bounds::default() };
        sources.entry(SourceName::new(Programs::NAME)).or_insert(without);
        Limits { sources, results: self.results.clone(), ..self.limits.limits() }
    }

    /// Whether nothing was configured at all, so that there is only the demo.
    pub(crate) fn is_demo_only(&self) -> bool {
        self.files.is_empty()
    }

    /// What is odd, and what is wrong with single servers, for a person to read.
    pub(crate) fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// A time as the configuration writes it.
pub(crate) fn time(text: &str) -> Option<std::time::Duration> {
    values::Time::from_text(text).map(|time| time.0)
}

/// Reads the configuration and tells the person who started us what is wrong with it; nothing if it cannot be used.
pub(crate) fn load_or_tell(files: &[PathBuf]) -> Option<Config> {
    let loaded = Config::load(files, &Surroundings::of_process());
    let problems = match &loaded {
        Ok(config) => config.problems(),
        Err(problems) => &problems.0,
    };
    for problem in problems {
        eprintln!("toolyard: {problem}");
    }
    loaded.ok()
}
