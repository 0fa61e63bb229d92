//! The current location of the conversion in the files, and the diagnostics that it collects.

use std::collections::HashSet;

use serde_json::Value;

use crate::document::{ReferenceTarget, SpecDocument, SpecNode, SpecObject, push_segment};
use crate::operation::{Diagnostic, DiagnosticSeverity};

/// A location in one of the files. Most are never rendered, so each one only links to its parent.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpecPath<'a> {
    pub(super) part: usize,
    /// Number of steps from the start of the path.
    pub(super) depth: usize,
    step: SpecPathStep<'a>,
}

#[derive(Debug, Clone, Copy)]
enum SpecPathStep<'a> {
    From(&'a str),
    Key(&'a SpecPath<'a>, &'a str),
    Index(&'a SpecPath<'a>, usize),
}

impl<'a> SpecPath<'a> {
    pub(super) fn new(part: usize, pointer: &'a str) -> Self {
        Self { part, depth: 0, step: SpecPathStep::From(pointer) }
    }

    pub(super) fn from_target(target: &'a ReferenceTarget) -> Self {
        Self::new(target.part, &target.pointer)
    }

    /// Returns the same location with the depth of a location inside another one.
    pub(super) fn nested_in(self, other: &SpecPath<'_>) -> Self {
        Self { depth: other.depth + 1, ..self }
    }

    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self { part: self.part, depth: self.depth + 1, step: SpecPathStep::Key(self, key) }
    }

    pub(super) fn index(&'a self, index: usize) -> Self {
        Self { part: self.part, depth: self.depth + 1, step: SpecPathStep::Index(self, index) }
    }

    pub(super) fn pointer(&self) -> String {
        let mut steps = Vec::new();
        let mut path = self;
        let mut pointer = loop {
            match &path.step {
                SpecPathStep::From(pointer) => break (*pointer).to_owned(),
                SpecPathStep::Key(up, key) => {
                    steps.push((*key).to_owned());
                    path = up;
                }
                SpecPathStep::Index(up, index) => {
                    steps.push(index.to_string());
                    path = up;
                }
            }
        };
        for step in steps.iter().rev() {
            push_segment(&mut pointer, step);
        }
        pointer
    }

    pub(super) fn target(&self) -> ReferenceTarget {
        ReferenceTarget { part: self.part, pointer: self.pointer() }
    }
}

/// Diagnostics in document order, without duplicates.
#[derive(Debug)]
pub(super) struct ConversionReport<'d> {
    document: &'d SpecDocument,
    pub(super) diagnostics: Vec<Diagnostic>,
    seen: HashSet<(String, &'static str, Option<String>, String)>,
    /// The operation that is being converted.
    pub(super) operation: Option<String>,
    suppressed: usize,
}

/// Maximum number of diagnostics. A hostile document could cause millions.
const MOST: usize = 20_000;

impl<'d> ConversionReport<'d> {
    pub(super) fn new(document: &'d SpecDocument) -> Self {
        let diagnostics = document.diagnostics.clone();
        Self { document, diagnostics, seen: HashSet::new(), operation: None, suppressed: 0 }
    }

    pub(super) fn note(&mut self, at: &SpecPath<'_>, code: &'static str, message: impl Into<String>) {
        self.add(DiagnosticSeverity::Note, at, code, message.into(), DiagnosticData::None);
    }

    pub(super) fn warn(&mut self, at: &SpecPath<'_>, code: &'static str, message: impl Into<String>) {
        self.add(DiagnosticSeverity::Warning, at, code, message.into(), DiagnosticData::None);
    }

    pub(super) fn error(&mut self, at: &SpecPath<'_>, code: &'static str, message: impl Into<String>) {
        self.add(DiagnosticSeverity::Error, at, code, message.into(), DiagnosticData::None);
    }

    pub(super) fn add(
        &mut self,
        severity: DiagnosticSeverity,
        at: &SpecPath<'_>,
        code: &'static str,
        message: String,
        extra: DiagnosticData,
    ) {
        if self.diagnostics.len() >= MOST {
            self.suppressed += 1;
            return;
        }
        let mut pointer = at.pointer();
        if let Some(part) = self.document.parts.get(at.part).filter(|part| !part.name.is_empty()) {
            pointer = format!("{}#{pointer}", part.name);
        }
        // A problem in a schema that several operations share is reported once.
        let about = pointer.starts_with("/paths").then(|| self.operation.clone()).flatten();
        if self.seen.insert((pointer.clone(), code, about, message.clone())) {
            let extra = match extra {
                DiagnosticData::None => None,
                DiagnosticData::Value(value) => Some(value),
            };
            let operation = self.operation.clone();
            self.diagnostics.push(Diagnostic { severity, pointer, code, message, operation, extra });
        }
    }

    pub(super) fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        if self.suppressed > 0 {
            let message = format!("{} more diagnostics are not listed", self.suppressed);
            self.diagnostics.push(Diagnostic {
                severity: DiagnosticSeverity::Note,
                pointer: String::new(),
                code: "more-findings",
                message,
                operation: None,
                extra: None,
            });
        }
        self.diagnostics
    }
}

/// Additional data of a diagnostic.
pub(super) enum DiagnosticData {
    None,
    Value(Value),
}

/// A resolved object of the document and its actual location.
#[derive(Debug, Clone)]
pub(super) struct ResolvedObject<'d> {
    pub(super) members: &'d SpecObject,
    pub(super) target: ReferenceTarget,
}

const MOST_HOPS: usize = 64;

/// Follows `$ref`s to an object. Reports a missing object or a value of another type.
pub(super) fn resolve_object<'d>(
    document: &'d SpecDocument,
    report: &mut ConversionReport<'_>,
    value: &'d SpecNode,
    at: &SpecPath<'_>,
    subject: &str,
) -> Option<ResolvedObject<'d>> {
    let mut value = value;
    let mut target = at.target();
    for _ in 0..MOST_HOPS {
        let Some(members) = value.as_object() else {
            let message = format!("{subject} is {}, not an object", crate::document::describe_kind(value));
            report.warn(&SpecPath::from_target(&target), "wrong-type", message);
            return None;
        };
        let Some(reference) = members.get("$ref").and_then(SpecNode::as_str) else {
            return Some(ResolvedObject { members, target });
        };
        let found = document.index.find(&document.parts, target.part, reference);
        let next = found.and_then(|next| {
            let value = document.parts.get(next.part).and_then(|part| part.value.pointer(&next.pointer));
            value.map(|value| (next, value)).ok_or_else(|| "the target does not exist".to_owned())
        });
        match next {
            Ok((next, found)) => {
                target = next;
                value = found;
            }
            Err(reason) => {
                let message = format!("{subject} refers to `{reference}`: {reason}");
                report.warn(&SpecPath::from_target(&target), "dangling-reference", message);
                return None;
            }
        }
    }
    report.warn(at, "reference-cycle", format!("{subject} refers to itself"));
    None
}
