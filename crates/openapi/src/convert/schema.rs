//! Schemas of any OpenAPI version to Draft 07. What Draft 07 has no keyword for is said another way, or in words; what is
//! wrong is left out and reported; nothing here fails.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::bank::{Astray, Bank, Key};
use super::hidden::Said;
use super::keywords;
use super::kinds::{Kinds, choices};
use super::spot::{At, Report};
use crate::document::Document;

type Members = Map<String, Value>;

/// What a schema describes: a request leaves out what is `readOnly`, an answer what is `writeOnly`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Direction {
    Input = 0,
    Output = 1,
}

/// Steps into one schema before it is cut: many readers of JSON, ours included, refuse more than 128 levels, and nullable
/// compositions take twice as many as they had.
const DEEPEST: usize = 44;

/// Converts schemas of one document.
#[derive(Debug)]
pub(super) struct Schemas<'d> {
    pub(super) document: &'d Document,
    pub(super) report: Report<'d>,
    pub(super) bank: Bank,
    /// What the schema that is being converted refers to.
    pub(super) needs: Vec<Key>,
    /// The definition that is being converted, while it speaks about its own value.
    pub(super) own: Option<Key>,
    /// Properties of the value that the schema at hand is about, which do not go this way.
    pub(super) hidden: HashSet<String>,
    /// Definitions that are being written out where they stand, the outermost first.
    pub(super) written_out: Vec<Key>,
    pub(super) known_said: HashMap<(Key, Direction), Rc<Said>>,
    /// Whether keywords beside `$ref` count, as from 3.1 on.
    siblings_count: bool,
}

impl<'d> Schemas<'d> {
    pub(super) fn new(document: &'d Document) -> Self {
        let dialect = document.dialect();
        let siblings_count = !(dialect.starts_with('2') || dialect.starts_with("3.0"));
        let report = Report::new(document);
        Self {
            document,
            report,
            bank: Bank::default(),
            needs: Vec::new(),
            own: None,
            hidden: HashSet::new(),
            written_out: Vec::new(),
            known_said: HashMap::new(),
            siblings_count,
        }
    }

    pub(super) fn within<T>(&mut self, key: Key, work: impl FnOnce(&mut Self) -> T) -> T {
        let own = self.own.replace(key);
        let hidden = std::mem::take(&mut self.hidden);
        let written_out = std::mem::take(&mut self.written_out);
        let done = work(self);
        (self.own, self.hidden, self.written_out) = (own, hidden, written_out);
        done
    }

    /// A schema about another value than the one around it, such as a property.
    pub(super) fn inner(&mut self, value: &Value, at: &At<'_>, direction: Direction) -> Value {
        let own = self.own.take();
        let hidden = std::mem::take(&mut self.hidden);
        let converted = self.schema(value, at, direction);
        (self.own, self.hidden) = (own, hidden);
        converted
    }

    pub(super) fn schema(&mut self, value: &Value, at: &At<'_>, direction: Direction) -> Value {
        if at.depth > DEEPEST {
            self.report.warn(
                at,
                "too-deep",
                "this is nested too deeply for most readers; it allows anything",
            );
            return json!({});
        }
        match value {
            Value::Bool(true) => json!({}),
            Value::Bool(false) => json!({"not": {}}),
            Value::Object(source) => {
                let reference =
                    ["$ref", "$dynamicRef", "$recursiveRef"].iter().find_map(|key| source.get(*key));
                match reference.and_then(Value::as_str) {
                    Some(reference) if source.len() == 1 => self.reference(source, reference, at, direction),
                    Some(reference) => self.knowing_hidden(source, at.part, direction, |schemas| {
                        schemas.reference(source, reference, at, direction)
                    }),
                    None => self.knowing_hidden(source, at.part, direction, |schemas| {
                        schemas.described(source, at, direction)
                    }),
                }
            }
            other => {
                let message = format!("a schema is {}; it allows anything", crate::document::kind(other));
                self.report.warn(at, "wrong-type", message);
                json!({})
            }
        }
    }

    fn reference(&mut self, source: &Members, reference: &str, at: &At<'_>, direction: Direction) -> Value {
        let mut base = Members::new();
        match self.bank.look_up(self.document, at.part, reference) {
            Ok(key) if self.own.is_some_and(|own| self.comes_back(key, own)) => {
                let message =
                    format!("`{reference}` leads back to this very schema; here it allows anything");
                self.report.warn(at, "schema-cycle", message);
            }
            Ok(key) => match self.without_hidden(key, at, direction) {
                Some(Value::Object(written_out)) => base = written_out,
                _ => {
                    self.needs.push(key);
                    let reference = format!("#/definitions/{}", self.bank.name(key));
                    base.insert("$ref".to_owned(), Value::String(reference));
                }
            },
            Err(Astray::Dangling(reason)) => {
                let message = format!("`{reference}`: {reason}; it allows anything");
                self.report.warn(at, "dangling-reference", message);
            }
            Err(Astray::Cycle) => {
                let message = format!("`{reference}` leads back to itself; it allows anything");
                self.report.warn(at, "reference-cycle", message);
            }
        }
        let mut beside = self.beside_reference(source);
        let nullable = beside.remove("nullable").is_some() | beside.remove("x-nullable").is_some();
        if nullable {
            base = match Value::Object(base) {
                Value::Object(base) if base.is_empty() => base,
                base => Map::from_iter([("anyOf".to_owned(), json!([base, {"type": "null"}]))]),
            };
        }
        if beside.is_empty() {
            return Value::Object(base);
        }
        let Value::Object(mut out) = self.described(&beside, at, direction) else {
            return Value::Object(base);
        };
        if out.is_empty() {
            return Value::Object(base);
        }
        if !base.is_empty() {
            // Draft 07 looks at nothing beside `$ref`.
            let mut all = vec![Value::Object(base)];
            if let Some(Value::Array(more)) = out.remove("allOf") {
                all.extend(more);
            }
            out.insert("allOf".to_owned(), Value::Array(all));
        }
        Value::Object(out)
    }

    /// The keywords beside a reference that count. Before 3.1 only what does not change what is allowed, and `nullable`,
    /// which its authors mean.
    fn beside_reference(&self, source: &Members) -> Members {
        const WORDS: [&str; 8] = [
            "title",
            "description",
            "deprecated",
            "default",
            "example",
            "examples",
            "nullable",
            "x-nullable",
        ];
        let counts = |key: &str, value: &Value| match key {
            "$ref" | "$dynamicRef" | "$recursiveRef" | "$defs" | "definitions" | "$id" | "$anchor" => false,
            "nullable" | "x-nullable" => *value == Value::Bool(true),
            key => self.siblings_count || WORDS.contains(&key),
        };
        let beside = source.iter().filter(|(key, value)| counts(key, value));
        beside.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn described(&mut self, source: &Members, at: &At<'_>, direction: Direction) -> Value {
        let mut out = Members::new();
        let mut remarks = Vec::new();
        let mut body = Members::new();
        let kinds = Kinds::of(source, at, &mut self.report);
        kinds.write(&mut body);
        choices(source, &kinds, at, &mut self.report, &mut body);
        keywords::numbers(source, at, &mut self.report, &mut body);
        keywords::counts(source, at, &mut self.report, &mut body);
        keywords::pattern(source, at, &mut self.report, &mut body, &mut remarks);
        self.arrays(source, at, direction, &mut body);
        self.objects(source, at, direction, &mut body);
        let composed = self.composed(source, at, direction, &mut body, &mut remarks);
        if kinds.file {
            body.insert("contentEncoding".to_owned(), Value::from("base64"));
        }
        // A schema without a type is nullable in that null is one more thing that it may be.
        if kinds.nullable && kinds.names.is_empty() && composed {
            body = Map::from_iter([("anyOf".to_owned(), json!([body, {"type": "null"}]))]);
        }
        keywords::words(source, &remarks, &mut out);
        out.append(&mut body);
        keywords::hints(source, at, &mut self.report, &mut out);
        Value::Object(out)
    }
}
