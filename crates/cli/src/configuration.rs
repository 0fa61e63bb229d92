//! The configuration of this process: the files and documents that the command line names, read with
//! the environment of the process. Problems are printed here.

use std::ffi::OsString;
use std::path::PathBuf;

use toolyard_config::{Config, Environment};

/// The variables and the folder that this process was started with.
pub(crate) fn process_environment() -> Environment {
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let folder = std::env::current_dir().unwrap_or_default();
    Environment::new(&folder, std::env::vars_os().filter_map(text))
}

/// Reads the configuration and prints what is wrong with it; nothing if it cannot be used.
pub(crate) fn load_or_report(files: &[PathBuf]) -> Option<Config> {
    load_in(&process_environment(), files)
}

fn load_in(environment: &Environment, files: &[PathBuf]) -> Option<Config> {
    let loaded = Config::load(files, environment);
    let problems = match &loaded {
        Ok(config) => config.problems(),
        Err(problems) => &problems.0,
    };
    for problem in problems {
        eprintln!("toolyard: {problem}");
    }
    loaded.ok()
}

/// What to serve, as the command line has it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigInputs {
    pub(crate) files: Vec<PathBuf>,
    /// OpenAPI documents, files or addresses.
    pub(crate) documents: Vec<String>,
    /// Where the operations of these documents are, whatever they say.
    pub(crate) base_url: Option<String>,
    /// Only this server of all that.
    pub(crate) only: Option<String>,
}

impl ConfigInputs {
    /// Reads all of it; nothing if it cannot be used, and then the problems have been printed.
    pub(crate) fn load(&self) -> Option<Config> {
        let environment = process_environment();
        // A document on the command line without a configuration is served alone.
        let mut config = match (self.files.is_empty(), self.documents.is_empty()) {
            (true, false) => Config::default(),
            _ => load_in(&environment, &self.files)?,
        };
        for document in &self.documents {
            config.add_document(document, self.base_url.clone(), &environment);
        }
        if let Some(only) = &self.only {
            config.retain_server(only);
        }
        Some(config)
    }
}
