//! A schema document: where it is, how `$ref` works in its dialect, and what references lead to.

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::node::Located;

/// A schema with everything that its references can lead to.
#[derive(Debug)]
pub(super) struct SchemaDocument<'a> {
    schema: &'a Value,
    /// Where the schema is in the definition.
    pointer: &'a str,
    /// Up to draft 7, the keywords next to `$ref` have no effect.
    pub(super) ignores_siblings_of_ref: bool,
}

impl<'a> SchemaDocument<'a> {
    pub(super) fn new(schema: &'a Value, pointer: &'a str) -> Self {
        let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let old = ["draft-03", "draft-04", "draft-06", "draft-07"];
        let ignores_siblings_of_ref = old.iter().any(|name| dialect.contains(name));
        Self { schema, pointer, ignores_siblings_of_ref }
    }

    pub(super) fn root(&self) -> Located<'a> {
        Located { value: self.schema, pointer: self.pointer.to_owned() }
    }

    /// Follows a reference inside the document.
    pub(super) fn resolve(&self, reference: &str) -> Option<Located<'a>> {
        let fragment = reference.strip_prefix('#')?;
        if fragment.is_empty() {
            return Some(self.root());
        }
        if fragment.starts_with('/') {
            let decoded = percent_decode_str(fragment).decode_utf8().ok()?;
            let value = self.schema.pointer(&decoded)?;
            return Some(Located { value, pointer: format!("{}{decoded}", self.pointer) });
        }
        ["$defs", "definitions"].iter().find_map(|key| {
            let definitions = self.schema.get(key)?.as_object()?;
            let (name, value) = definitions
                .iter()
                .find(|(_, schema)| schema.get("$anchor").and_then(Value::as_str) == Some(fragment))?;
            Some(Located { value, pointer: format!("{}/{key}/{}", self.pointer, escape(name)) })
        })
    }
}

/// A name as one step of a JSON pointer.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
