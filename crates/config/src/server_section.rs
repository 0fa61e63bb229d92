//! The section of a file that defines a server: its location, for problems, and the references that
//! its strings can contain.

use std::path::{Path, PathBuf};

use super::document::ConfigDocument;
use super::expand::{MissingReference, VariableExpander};
use super::files::ConfigFileReader;
use super::problem::{ConfigProblem, ProblemSeverity};
use super::tree::{ConfigKey, ConfigNode, ConfigValue, Span};

/// Names of our keys in other formats, used to find the location of a value.
const OTHER_WORDS: [(&str, &[&str]); 6] = [
    ("url", &["httpUrl", "serverUrl", "baseUrl"]),
    ("headers", &["http_headers"]),
    ("env_file", &["envFile"]),
    ("bearer_token_env_var", &["bearerTokenEnvVar", "bearerTokenEnv"]),
    ("client_id", &["clientId", "CLIENT_ID"]),
    ("client_secret", &["clientSecret", "CLIENT_SECRET"]),
];

/// Keys that concern only the server's own process. Variables in all other keys are treated as
/// secrets.
const PUBLIC: [&str; 5] = ["args", "command", "cwd", "env", "env_file"];

pub(super) struct ServerSection<'a> {
    pub(super) document: &'a ConfigDocument,
    pub(super) key: &'a ConfigKey,
    pub(super) node: &'a ConfigNode,
    pub(super) references: &'a VariableExpander<'a>,
    pub(super) files: &'a ConfigFileReader,
    /// Errors of this server.
    pub(super) errors: Vec<ConfigProblem>,
    /// Warnings about risky settings.
    pub(super) warnings: Vec<ConfigProblem>,
}

impl ServerSection<'_> {
    /// Returns the name in the file.
    pub(super) fn name(&self) -> &str {
        &self.key.name
    }

    pub(super) fn has(&self, key: &str) -> bool {
        find(self.node, key).is_some()
    }

    pub(super) fn add_error(&mut self, place: &[&str], message: String) {
        let problem = self.document.problem(ProblemSeverity::Error, &self.span(place), message);
        self.errors.push(problem.with_server(&self.key.name));
    }

    pub(super) fn warn(&mut self, place: &[&str], message: String, suggestion: &str) {
        let problem = self.document.problem(ProblemSeverity::Warning, &self.span(place), message);
        self.warnings.push(problem.with_server(&self.key.name).with_suggestion(Some(suggestion.to_owned())));
    }

    /// Adds an error with a suggestion and returns `None`.
    pub(super) fn refuse<T>(&mut self, place: &[&str], message: &str, suggestion: &str) -> Option<T> {
        let problem = self.document.problem(ProblemSeverity::Error, &self.span(place), message);
        self.errors.push(problem.with_server(&self.key.name).with_suggestion(Some(suggestion.to_owned())));
        None
    }

    /// Expands a text. Unresolved references are added as errors.
    pub(super) fn expand(&mut self, text: &str, place: &[&str]) -> Option<String> {
        let expanded = match place.first() {
            Some(key) if PUBLIC.contains(key) => self.references.expand(text),
            _ => self.references.expand_secret(text),
        };
        match expanded {
            Ok(text) => Some(text),
            Err(missing) => {
                for missing in missing {
                    self.add_missing_reference(missing, place);
                }
                None
            }
        }
    }

    /// Returns the value of a variable that a key names directly.
    pub(super) fn variable(&mut self, name: &str, place: &[&str]) -> Option<String> {
        self.references.variable(name).map_err(|missing| self.add_missing_reference(missing, place)).ok()
    }

    /// Expands a path and resolves it relative to the directory of the file.
    pub(super) fn path(&mut self, path: &str, place: &[&str]) -> Option<PathBuf> {
        let path = self.expand(path, place)?;
        Some(self.references.environment.resolve(&path, self.references.folder))
    }

    /// Reads a file that the server refers to. It is watched for changes.
    pub(super) fn read(&self, path: &Path) -> std::io::Result<String> {
        self.files.read(path)
    }

    fn add_missing_reference(&mut self, missing: MissingReference, place: &[&str]) {
        let span = self.document.span_within(&self.span(place), &missing.reference);
        let problem = self.document.problem(ProblemSeverity::Error, &span, missing.message);
        self.errors.push(problem.with_server(&self.key.name).with_suggestion(missing.suggestion));
    }

    /// Returns the span of a value of this server, or of the server's name if the value cannot be
    /// found.
    fn span(&self, place: &[&str]) -> Span {
        let mut node = self.node;
        for step in place {
            match find(node, step) {
                Some(below) => node = below,
                None => return self.key.span.clone(),
            }
        }
        if place.is_empty() { self.key.span.clone() } else { node.span.clone() }
    }
}

fn find<'a>(node: &'a ConfigNode, step: &str) -> Option<&'a ConfigNode> {
    if let ConfigValue::List(items) = &node.value {
        return items.get(step.parse::<usize>().ok()?);
    }
    let others = OTHER_WORDS.iter().find(|(word, _)| *word == step).map_or(&[][..], |(_, others)| others);
    node.get(step).or_else(|| others.iter().find_map(|other| node.get(other)))
}
