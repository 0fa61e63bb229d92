//! Tests with real files and an environment of their own.

use std::path::PathBuf;

use toolyard_testkit::harness::Scratch;
use toolyard_upstream::{CommandSettings, ServerSettings, TransportSettings, UrlSettings};

use super::server::BrokenServer;
use super::{Config, ConfigProblem, ConfigProblems, Environment, ServerEntry};

mod access;
mod cluster;
mod docs;
mod excerpts;
mod expanding;
mod forms;
mod hooks;
mod mistakes;
mod openapi;
mod own;
mod precedence;
mod programs;
mod records;
mod reloading;
mod risks;
mod secrets;

/// A directory with files, which is also the home directory, and environment variables.
struct Place {
    scratch: Scratch,
    variables: Vec<(&'static str, &'static str)>,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self { scratch: Scratch::new(), variables: Vec::new() };
        for (name, text) in files {
            place.write(name, text);
        }
        place
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.scratch.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn folder(&self) -> PathBuf {
        self.scratch.path("")
    }

    fn try_load(&self, named: &[&str]) -> Result<Config, ConfigProblems> {
        let folder = self.folder().to_str().unwrap().trim_end_matches('/').to_owned();
        let mut variables = self.variables.clone();
        variables.push(("HOME", &folder));
        let named: Vec<PathBuf> = named.iter().map(PathBuf::from).collect();
        Config::load(&named, &Environment::new(folder.as_ref(), variables))
    }

    /// Loads a configuration that must be usable. Single servers can have errors.
    fn load(&self, named: &[&str]) -> Config {
        self.try_load(named).unwrap_or_else(|problems| panic!("{problems}"))
    }

    /// Returns everything that a user would see, without the name of the directory.
    fn problems_text(&self, named: &[&str]) -> String {
        let problems = match self.try_load(named) {
            Ok(config) => config.problems().to_vec(),
            Err(ConfigProblems(problems)) => problems,
        };
        let text: Vec<String> = problems.iter().map(ConfigProblem::to_string).collect();
        text.join("\n").replace(self.folder().to_str().unwrap().trim_end_matches('/'), "FOLDER")
    }
}

/// Returns the only server of a `toolyard.toml`, which must have no errors or warnings.
fn only(text: &str) -> ServerSettings {
    let place = Place::new(&[("toolyard.toml", text)]).with("TOKEN", "t0ken").with("EMPTY", "");
    let config = place.load(&[]);
    assert_eq!(config.problems(), []);
    assert_eq!(config.servers().len(), 1);
    settings(&config, config.servers()[0].name().as_str()).clone()
}

fn entry<'a>(config: &'a Config, name: &str) -> &'a ServerEntry {
    let found = config.servers().iter().find(|entry| entry.name().as_str() == name);
    found.unwrap_or_else(|| panic!("no server {name} in {:?}", config.servers()))
}

fn settings<'a>(config: &'a Config, name: &str) -> &'a ServerSettings {
    match entry(config, name) {
        ServerEntry::Ready(settings) => settings,
        broken @ (ServerEntry::Broken(_) | ServerEntry::Document(_)) => panic!("{broken:?}"),
    }
}

fn broken<'a>(config: &'a Config, name: &str) -> &'a BrokenServer {
    match entry(config, name) {
        ServerEntry::Broken(broken) => broken,
        ready @ (ServerEntry::Ready(_) | ServerEntry::Document(_)) => panic!("{ready:?}"),
    }
}

fn command(settings: &ServerSettings) -> &CommandSettings {
    match &settings.transport {
        TransportSettings::Command(command) => command,
        TransportSettings::Url(_) => panic!("{} has a URL", settings.name),
    }
}

fn address(settings: &ServerSettings) -> &UrlSettings {
    match &settings.transport {
        TransportSettings::Url(address) => address,
        TransportSettings::Command(_) => panic!("{} is a command", settings.name),
    }
}

/// Returns a table with its secrets revealed.
fn open(table: &std::collections::BTreeMap<String, toolyard_hub::Secret>) -> Vec<(&str, &str)> {
    table.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect()
}
