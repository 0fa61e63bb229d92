//! Parses the bytes of one file: detects the encoding, whether it is JSON or YAML, and whether it
//! is an OpenAPI document.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};

use super::node::SpecNode;
use super::{LoadError, json, yaml};
use crate::operation::{Diagnostic, DiagnosticSeverity};

/// The limits of a parser and the diagnostics that it collects.
#[derive(Debug)]
pub(super) struct ParseContext {
    pub(super) depth: usize,
    /// The number of values that may still be read.
    pub(super) left: usize,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Why a text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ParseRefusal {
    TooManyValues,
    Syntax(String),
}

impl ParseContext {
    /// Counts one value.
    pub(super) fn count(&mut self, values: usize) -> Result<(), ParseRefusal> {
        self.left = self.left.checked_sub(values).ok_or(ParseRefusal::TooManyValues)?;
        Ok(())
    }

    pub(super) fn warn(&mut self, pointer: String, code: &'static str, message: String) {
        let severity = DiagnosticSeverity::Warning;
        // A file may repeat the same problem millions of times.
        if self.diagnostics.len() < 1_000 {
            self.diagnostics.push(Diagnostic {
                severity,
                pointer,
                code,
                message,
                operation: None,
                extra: None,
            });
        }
    }
}

/// Parses a text as JSON if it looks like JSON. Otherwise, or if that fails, parses it as YAML:
/// some files with a JSON name are YAML.
pub(super) fn read(bytes: &[u8], reading: &mut ParseContext) -> Result<SpecNode, ParseRefusal> {
    let text = decode(bytes, reading);
    let text = text.trim_start_matches('\u{feff}');
    let start = text.trim_start();
    if start.is_empty() {
        return Err(ParseRefusal::Syntax("it is empty".to_owned()));
    }
    if !start.starts_with(['{', '[', '"']) {
        return yaml::read(text, reading);
    }
    let left = reading.left;
    let found = reading.diagnostics.len();
    match json::read(text, reading) {
        Err(ParseRefusal::Syntax(first)) => {
            reading.left = left;
            reading.diagnostics.truncate(found);
            yaml::read(text, reading).map_err(|error| match error {
                ParseRefusal::Syntax(second) => {
                    ParseRefusal::Syntax(format!("as JSON: {first}; as YAML: {second}"))
                }
                ParseRefusal::TooManyValues => error,
            })
        }
        done => done,
    }
}

/// Decodes UTF-8, or UTF-16 with a byte order mark. Invalid bytes are replaced and reported.
fn decode<'b>(bytes: &'b [u8], reading: &mut ParseContext) -> Cow<'b, str> {
    match Encoding::for_bom(bytes) {
        Some((encoding, _)) if encoding != UTF_8 => encoding.decode(bytes).0,
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(error) => {
                let at = error.valid_up_to();
                reading.warn(String::new(), "not-utf-8", format!("byte {at} is not valid UTF-8; replaced"));
                String::from_utf8_lossy(bytes)
            }
        },
    }
}

/// Returns the OpenAPI or Swagger version that a document declares.
pub(super) fn stated_version(document: &SpecNode) -> Option<String> {
    let version = document.get("openapi").or_else(|| document.get("swagger"))?;
    match version {
        SpecNode::String(version) => Some(version.trim().to_owned()),
        SpecNode::Number(version) => Some(version.to_string()),
        _ => None,
    }
}

/// Rejects other formats with an error that names the format. A document without a version is
/// accepted if it has paths.
pub(super) fn check(name: &str, document: &SpecNode, reading: &mut ParseContext) -> Result<(), LoadError> {
    let refuse = |found: String| Err(LoadError::NotOpenApi { name: name.to_owned(), found });
    let Some(root) = document.as_object() else {
        // YAML parses such a page as one long string.
        if document.as_str().is_some_and(|text| text.trim_start().starts_with('<')) {
            return refuse("it is HTML or XML".to_owned());
        }
        return refuse(format!("it is {}, not an object", describe_kind(document)));
    };
    let has_paths = ["paths", "webhooks", "components"].iter().any(|key| root.contains_key(key));
    let Some(version) = stated_version(document) else {
        for (key, description) in [
            ("asyncapi", "an AsyncAPI document"),
            ("swaggerVersion", "a Swagger 1 document; convert it to Swagger 2 or OpenAPI 3 first"),
            ("$schema", "a JSON Schema"),
            ("arazzo", "an Arazzo document"),
            ("overlay", "an OpenAPI overlay"),
            ("raml", "a RAML document"),
        ] {
            if root.contains_key(key) && !root.contains_key("paths") {
                return refuse(format!("it is {description}"));
            }
        }
        if !has_paths {
            let keys: Vec<&str> = root.keys().take(5).collect();
            return refuse(format!(
                "it has neither `openapi` nor `swagger`; its keys are {}",
                keys.join(", ")
            ));
        }
        reading.warn(
            String::new(),
            "no-version",
            "the document does not declare an OpenAPI version".to_owned(),
        );
        return Ok(());
    };
    let known = ["2.", "3.0", "3.1", "3.2"].iter().any(|start| version.starts_with(start))
        || ["2", "3"].contains(&version.as_str());
    if version.starts_with("1.") {
        return refuse(format!("version {version} is not supported; expected 2.0 or 3.0 to 3.2"));
    }
    if !known {
        let message = format!("unknown version {version}; treated as the nearest supported version");
        reading.warn("/openapi".to_owned(), "unknown-version", message);
    }
    Ok(())
}

/// Returns a value's type as part of a sentence.
pub(crate) fn describe_kind(value: &SpecNode) -> &'static str {
    match value {
        SpecNode::Null => "null",
        SpecNode::Bool(_) => "a boolean",
        SpecNode::Number(_) => "a number",
        SpecNode::String(_) => "a string",
        SpecNode::Array(_) => "an array",
        SpecNode::Object(_) => "an object",
    }
}
