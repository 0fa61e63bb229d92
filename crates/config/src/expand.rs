//! Expands `${VAR}`, `${VAR:-default}` and `${env:VAR}`, and in editor formats also `${input:id}`,
//! `${workspaceFolder}` and related variables. Anything else that looks like a reference is left
//! unchanged. `$${` is an escaped `${`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::environment::Environment;

/// Expands the references in the strings of one file.
pub(super) struct VariableExpander<'a> {
    pub(super) environment: &'a Environment,
    /// The project directory of the file.
    pub(super) folder: &'a Path,
    /// Inputs that the file declares, with their defaults.
    pub(super) inputs: &'a BTreeMap<String, Option<String>>,
    pub(super) rule: ExpansionRule,
    pub(super) secrets: &'a SecretNames,
}

/// Names of the variables that contain secrets.
#[derive(Default)]
pub(super) struct SecretNames(RefCell<BTreeSet<String>>);

impl SecretNames {
    fn add(&self, name: &str) {
        self.0.borrow_mut().insert(name.to_owned());
    }

    pub(super) fn into_names(self) -> BTreeSet<String> {
        self.0.into_inner()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpansionRule {
    /// References are not expanded.
    Literal,
    Variables,
    /// Environment variables and editor variables.
    Editor,
}

/// A reference that cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingReference {
    /// As written in the file, for example `${TOKEN}`.
    pub(super) reference: String,
    pub(super) message: String,
    pub(super) suggestion: Option<String>,
}

impl VariableExpander<'_> {
    /// Expands all references in a text, or returns those that cannot be resolved.
    pub(super) fn expand(&self, text: &str) -> Result<String, Vec<MissingReference>> {
        if self.rule == ExpansionRule::Literal {
            return Ok(text.to_owned());
        }
        let mut done = String::with_capacity(text.len());
        let mut missing = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            if rest[..at].ends_with('$') {
                done.push_str(&rest[..at]);
                done.push('{');
                rest = &rest[at + 2..];
                continue;
            }
            done.push_str(&rest[..at]);
            let Some(end) = find_closing_brace(&rest[at..]) else {
                rest = &rest[at..];
                break;
            };
            let reference = &rest[at..at + end + 1];
            match self.look_up(&reference[2..end]) {
                Ok(Some(value)) => done.push_str(&value),
                Ok(None) => done.push_str(reference),
                Err(mut lacking) => missing.append(&mut lacking),
            }
            rest = &rest[at + end + 1..];
        }
        done.push_str(rest);
        if missing.is_empty() { Ok(done) } else { Err(missing) }
    }

    /// Expands a text that can contain a secret, and records the names of its variables.
    pub(super) fn expand_secret(&self, text: &str) -> Result<String, Vec<MissingReference>> {
        if self.rule != ExpansionRule::Literal {
            self.record_secrets(text);
        }
        self.expand(text)
    }

    /// Records every variable that a text refers to, including those in defaults.
    fn record_secrets(&self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let Some(end) = find_closing_brace(&rest[at..]) else { return };
            let inside = &rest[at + 2..at + end];
            let (name, default) = inside.split_once(":-").unwrap_or((inside, ""));
            match name.strip_prefix("input:") {
                Some(id) => self.secrets.add(&input_variable(id)),
                None if is_name(strip_env_prefix(name)) => self.secrets.add(strip_env_prefix(name)),
                None => {}
            }
            self.record_secrets(default);
            rest = &rest[at + end + 1..];
        }
    }

    /// Returns the value of a variable that a key names directly, and records it as a secret.
    pub(super) fn variable(&self, name: &str) -> Result<String, MissingReference> {
        self.secrets.add(name);
        if let Some(value) = self.environment.variable(name) {
            return Ok(value.to_owned());
        }
        // Users sometimes write the token itself here. It must not appear in a log.
        let usual = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
        if name.chars().all(usual) {
            return Err(self.unset_variable(name, name));
        }
        Err(MissingReference {
            reference: String::new(),
            message: "the environment variable named here is not set".to_owned(),
            suggestion: Some("enter the name of the variable, not its value".to_owned()),
        })
    }

    /// Returns the value of a reference, or `None` if the text between the braces is not a known
    /// reference.
    fn look_up(&self, inside: &str) -> Result<Option<String>, Vec<MissingReference>> {
        if let Some((name, default)) =
            inside.split_once(":-").filter(|(name, _)| is_name(strip_env_prefix(name)))
        {
            return match self.environment.variable(strip_env_prefix(name)).filter(|value| !value.is_empty()) {
                Some(value) => Ok(Some(value.to_owned())),
                None => self.expand(default).map(Some),
            };
        }
        if self.rule == ExpansionRule::Editor
            && let Some(value) = self.editor(inside)
        {
            return value.map(Some).map_err(|missing| vec![missing]);
        }
        let name = strip_env_prefix(inside);
        if !is_name(name) {
            return Ok(None);
        }
        match self.environment.variable(name) {
            Some(value) => Ok(Some(value.to_owned())),
            None => Err(vec![self.unset_variable(name, &format!("${{{inside}}}"))]),
        }
    }

    fn editor(&self, inside: &str) -> Option<Result<String, MissingReference>> {
        let text = |path: &Path| Some(Ok(path.display().to_string()));
        match inside {
            "workspaceFolder" => return text(self.folder),
            "workspaceFolderBasename" => return text(Path::new(self.folder.file_name()?)),
            "userHome" => return text(self.environment.home()?),
            "pathSeparator" | "/" => return Some(Ok("/".to_owned())),
            _ => {}
        }
        let (kind, id) = inside.split_once(':')?;
        let reference = format!("${{{inside}}}");
        match kind {
            "input" => Some(self.input(id, reference)),
            "command" | "config" | "file" => Some(Err(MissingReference {
                message: format!("`{reference}` is a variable of an editor, which Toolyard cannot resolve"),
                reference,
                suggestion: Some("use an environment variable: ${NAME}".to_owned()),
            })),
            _ => None,
        }
    }

    fn input(&self, id: &str, reference: String) -> Result<String, MissingReference> {
        let variable = input_variable(id);
        let given = self.environment.variable(&variable).map(str::to_owned);
        given.or_else(|| self.inputs.get(id).cloned().flatten()).ok_or_else(|| MissingReference {
            message: format!("input `{id}` has no value"),
            reference,
            suggestion: Some(format!("set the environment variable `{variable}`")),
        })
    }

    fn unset_variable(&self, name: &str, reference: &str) -> MissingReference {
        let near = super::problem::did_you_mean(name, self.environment.names());
        MissingReference {
            reference: reference.to_owned(),
            message: format!("the environment variable `{name}` is not set"),
            suggestion: near.or_else(|| {
                (self.rule != ExpansionRule::Literal && reference.starts_with("${"))
                    .then(|| format!("set it, or add a default: `${{{name}:-…}}`"))
            }),
        }
    }
}

/// Returns the name of the environment variable that provides an editor input.
fn input_variable(id: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("INPUT_{}", id.chars().map(letter).collect::<String>())
}

fn strip_env_prefix(name: &str) -> &str {
    name.strip_prefix("env:").unwrap_or(name)
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Returns the end of the reference at the start of a text. Its default can contain other
/// references.
fn find_closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' if text[..at].ends_with('$') => depth += 1,
            '}' if depth == 1 => return Some(at),
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}
