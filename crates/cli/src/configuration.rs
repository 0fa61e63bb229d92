//! Loads the configuration of this process: the files and documents named on the command line, with
//! the environment of the process. Prints the problems found.

use std::ffi::OsString;
use std::path::PathBuf;

use toolyard_config::{Config, ConfigProblem, Environment, ProblemSeverity};

use crate::terminal::{print_error, print_hint, print_warning};

/// The environment variables and the working directory of this process.
pub(crate) fn process_environment() -> Environment {
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let folder = std::env::current_dir().unwrap_or_default();
    Environment::new(&folder, std::env::vars_os().filter_map(text))
}

/// Loads the configuration and prints its problems. Returns `None` if it cannot be used.
pub(crate) fn load_or_report(files: &[PathBuf]) -> Option<Config> {
    load_in(&process_environment(), files)
}

fn load_in(environment: &Environment, files: &[PathBuf]) -> Option<Config> {
    let loaded = Config::load(files, environment);
    let problems = match &loaded {
        Ok(config) => config.problems(),
        Err(problems) => &problems.0,
    };
    problems.iter().for_each(report_problem);
    loaded.ok()
}

/// Prints a problem with its location and excerpt, then its suggestion as a hint.
pub(crate) fn report_problem(problem: &ConfigProblem) {
    let text = ConfigProblem { suggestion: None, ..problem.clone() }.to_string();
    let (print, prefix): (fn(&str), _) = match problem.severity {
        ProblemSeverity::Error => (print_error, "error: "),
        ProblemSeverity::Warning => (print_warning, "warning: "),
    };
    print(text.strip_prefix(prefix).unwrap_or(&text));
    problem.suggestion.iter().for_each(|suggestion| print_hint(suggestion));
}

/// What to serve, as given on the command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigInputs {
    pub(crate) files: Vec<PathBuf>,
    /// OpenAPI documents, as paths or URLs.
    pub(crate) documents: Vec<String>,
    /// Base URL of the operations, overriding the documents.
    pub(crate) base_url: Option<String>,
    /// Restricts the configuration to this server.
    pub(crate) only: Option<String>,
}

impl ConfigInputs {
    /// Loads everything. Returns `None` if the configuration cannot be used; its problems have been
    /// printed.
    pub(crate) fn load(&self) -> Option<Config> {
        let environment = process_environment();
        // A document without a configuration is served alone.
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
