//! Human-readable descriptions of the parameters and results of a tool, derived from a schema:
//! names, types, defaults and constraints. Nothing is validated here, and an invalid schema has no
//! parameters.

use std::collections::HashSet;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// One parameter, or one field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolParameter {
    pub name: String,
    pub required: bool,
    /// A short description of the type: `string`, `array of integer`, `string or null`.
    pub kind: String,
    pub description: Option<String>,
    pub default: Option<Value>,
    /// The allowed values, if the schema lists them.
    pub choices: Vec<Value>,
    /// Further constraints in words: `1 to 5`, `at most 64 characters`.
    pub limits: Vec<String>,
    /// The fields of an object, or of the objects in an array.
    pub fields: Vec<ToolParameter>,
}

/// Maximum depth to describe. A schema may contain itself.
const DEEPEST: usize = 6;
/// Maximum number of parameters to describe.
const MOST: usize = 5_000;
/// Maximum length of a chain of references.
const MOST_STEPS: usize = 16;

/// Returns the parameters of a schema: required ones first, otherwise in the advertised order.
pub fn parameters(schema: &RawValue) -> Vec<ToolParameter> {
    let Ok(root) = serde_json::from_str::<Value>(schema.get()) else { return Vec::new() };
    SchemaReader { root: &root, left: MOST }.fields(&root, 0)
}

/// If there are more choices than this, the rest is only counted.
const MOST_CHOICES: usize = 50;

impl ToolParameter {
    /// Returns the details other than the type, each in brackets.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if let Some(default) = &self.default {
            remarks.push(format!("[default: {default}]"));
        }
        match self.choices.as_slice() {
            [] => {}
            [only] => remarks.push(format!("[always: {only}]")),
            choices => {
                let shown: Vec<String> = choices.iter().take(MOST_CHOICES).map(Value::to_string).collect();
                let more = match choices.len().saturating_sub(MOST_CHOICES) {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                remarks.push(format!("[one of: {}{more}]", shown.join(", ")));
            }
        }
        remarks.extend(self.limits.iter().map(|limit| format!("[{limit}]")));
        remarks
    }
}

/// One member of an object and its schema.
#[derive(Debug, Clone, Copy)]
pub struct SchemaProperty<'a> {
    pub name: &'a str,
    pub required: bool,
    pub schema: &'a Value,
}

/// Returns the members of a schema: required ones first, otherwise in the advertised order.
pub fn properties<'a>(root: &'a Value, schema: &'a Value) -> Vec<SchemaProperty<'a>> {
    SchemaReader { root, left: MOST }.members(schema)
}

/// Describes a member without its own fields.
pub fn parameter(root: &Value, member: SchemaProperty<'_>) -> ToolParameter {
    SchemaReader { root, left: 0 }.field(member, DEEPEST)
}

/// Returns a short description of the type of a schema.
pub fn type_name(root: &Value, schema: &Value) -> String {
    SchemaReader { root, left: 0 }.type_name(schema, 0)
}

/// Follows a local reference. Returns the schema itself if the reference cannot be resolved.
pub fn resolve_reference<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..MOST_STEPS {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        match target.and_then(|pointer| root.pointer(pointer)) {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

struct SchemaReader<'a> {
    root: &'a Value,
    left: usize,
}

impl<'a> SchemaReader<'a> {
    fn fields(&mut self, schema: &'a Value, depth: usize) -> Vec<ToolParameter> {
        let mut fields = Vec::new();
        for member in self.members(schema) {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            fields.push(self.field(member, depth));
        }
        fields
    }

    fn members(&self, schema: &'a Value) -> Vec<SchemaProperty<'a>> {
        let mut found: Vec<(&'a str, &'a Value)> = Vec::new();
        let mut required: Vec<&'a str> = Vec::new();
        self.collect_properties(schema, &mut found, &mut required, 0);
        let required: HashSet<&str> = required.into_iter().collect();
        let member = |(name, schema)| SchemaProperty { name, required: required.contains(name), schema };
        let mut members: Vec<SchemaProperty<'a>> = found.into_iter().map(member).collect();
        // The sort is stable and preserves the advertised order.
        members.sort_by_key(|member| !member.required);
        members
    }

    /// Collects the properties of a schema and of its subschemas.
    fn collect_properties(
        &self,
        schema: &'a Value,
        members: &mut Vec<(&'a str, &'a Value)>,
        required: &mut Vec<&'a str>,
        depth: usize,
    ) {
        let schema = resolve_reference(self.root, schema);
        for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if !members.iter().any(|(known, _)| known == name) {
                members.push((name, member));
            }
        }
        required.extend(list(schema, "required").filter_map(Value::as_str));
        if depth < DEEPEST {
            for part in list(schema, "allOf") {
                self.collect_properties(part, members, required, depth + 1);
            }
        }
    }

    fn field(&mut self, member: SchemaProperty<'a>, depth: usize) -> ToolParameter {
        let SchemaProperty { name, required, schema: own } = member;
        let schema = resolve_reference(self.root, own);
        // Keywords next to a reference apply to this use of it.
        let text = |key: &str| own.get(key).or_else(|| schema.get(key));
        let object = self.object(schema, 0);
        let fields = match object {
            Some(object) if depth < DEEPEST => self.fields(object, depth + 1),
            _ => Vec::new(),
        };
        // For a list, use the fields of its elements.
        let of_elements = schema.get("items").map(|items| resolve_reference(self.root, items));
        let choices = std::iter::once(schema).chain(of_elements).map(|schema| {
            let listed: Vec<Value> = list(schema, "enum").cloned().collect();
            if listed.is_empty() { self.constants(schema) } else { listed }
        });
        let choices = choices.into_iter().find(|choices| !choices.is_empty()).unwrap_or_default();
        ToolParameter {
            name: name.to_owned(),
            required,
            kind: self.type_name(schema, 0),
            description: text("description").and_then(Value::as_str).map(ToOwned::to_owned),
            default: text("default").cloned(),
            choices,
            limits: limits(schema),
            fields,
        }
    }

    /// Finds the object whose fields should be shown: the value itself, one of its alternatives, or
    /// an element of it.
    fn object(&self, schema: &'a Value, depth: usize) -> Option<&'a Value> {
        let schema = resolve_reference(self.root, schema);
        if schema.get("properties").is_some() || depth > 2 {
            return schema.get("properties").is_some().then_some(schema);
        }
        let inner = schema.get("items").into_iter();
        let inner =
            inner.chain(list(schema, "allOf")).chain(list(schema, "anyOf")).chain(list(schema, "oneOf"));
        inner.filter_map(|inner| self.object(inner, depth + 1)).next()
    }

    fn type_name(&self, schema: &Value, depth: usize) -> String {
        let schema = resolve_reference(self.root, schema);
        if depth > 3 {
            return "any".to_owned();
        }
        let of = |word: &str| match (word, schema.get("items")) {
            ("array", Some(items)) if items.is_object() => {
                format!("array of {}", self.type_name(items, depth + 1))
            }
            _ => word.to_owned(),
        };
        match schema.get("type") {
            Some(Value::String(word)) => return of(word),
            Some(Value::Array(words)) => {
                return join_distinct(words.iter().filter_map(Value::as_str).map(of));
            }
            _ => {}
        }
        let kinds: Vec<&Value> = list(schema, "anyOf").chain(list(schema, "oneOf")).collect();
        if !kinds.is_empty() {
            return join_distinct(kinds.into_iter().map(|kind| self.type_name(kind, depth + 1)));
        }
        if let Some(part) = list(schema, "allOf").next() {
            return self.type_name(part, depth + 1);
        }
        let values: Vec<&Value> = list(schema, "enum").chain(schema.get("const")).collect();
        match values.is_empty() {
            false => join_distinct(values.into_iter().map(|value| json_type_name(value).to_owned())),
            true if schema.get("properties").is_some() => "object".to_owned(),
            true => "any".to_owned(),
        }
    }

    /// Returns the values of a schema that lists them as constants.
    fn constants(&self, schema: &Value) -> Vec<Value> {
        if let Some(only) = schema.get("const") {
            return vec![only.clone()];
        }
        let kinds: Vec<&Value> = list(schema, "oneOf").chain(list(schema, "anyOf")).collect();
        let values: Option<Vec<Value>> =
            kinds.iter().map(|kind| resolve_reference(self.root, kind).get("const").cloned()).collect();
        values.unwrap_or_default()
    }
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the distinct types.
fn join_distinct(kinds: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for kind in kinds {
        if !all.contains(&kind) {
            all.push(kind);
        }
    }
    if all.is_empty() { "any".to_owned() } else { all.join(" or ") }
}

fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn limits(schema: &Value) -> Vec<String> {
    let empty = Map::new();
    let keys = schema.as_object().unwrap_or(&empty);
    let number = |key: &str| keys.get(key).filter(|value| value.is_number()).map(ToString::to_string);
    let mut limits = Vec::new();
    limits.extend(format_range(number("minimum"), number("maximum"), ""));
    limits.extend(number("exclusiveMinimum").map(|least| format!("more than {least}")));
    limits.extend(number("exclusiveMaximum").map(|most| format!("less than {most}")));
    limits.extend(number("multipleOf").map(|step| format!("a multiple of {step}")));
    limits.extend(format_range(number("minLength"), number("maxLength"), " characters"));
    limits.extend(format_range(number("minItems"), number("maxItems"), " elements"));
    let text = |key: &str| keys.get(key).and_then(Value::as_str);
    limits.extend(text("format").map(|format| format!("format {format}")));
    limits.extend(text("pattern").map(|pattern| format!("pattern {pattern}")));
    limits
}

fn format_range(least: Option<String>, most: Option<String>, unit: &str) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
        (Some(least), None) => Some(format!("at least {least}{unit}")),
        (None, Some(most)) => Some(format!("at most {most}{unit}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ToolParameter, parameters};
    use crate::json::to_raw;

    fn lines(schema: &Value) -> Vec<String> {
        fn add(lines: &mut Vec<String>, fields: &[ToolParameter], indent: usize) {
            for field in fields {
                let ToolParameter { name, required, kind, default, choices, limits, .. } = field;
                let more = format!("{default:?} {choices:?} {limits:?}").replace("None [] []", "");
                lines.push(
                    format!("{}{name} {required} {kind} {more}", " ".repeat(indent)).trim_end().to_owned(),
                );
                add(lines, &field.fields, indent + 1);
            }
        }
        let mut all = Vec::new();
        add(&mut all, &parameters(&to_raw(schema)), 0);
        all
    }

    #[test]
    fn required_ones_come_first_and_the_rest_as_advertised() {
        let schema = json!({
            "properties": {"z": {"type": "string"}, "b": {"type": "integer"}, "a": {}},
            "required": ["a", "b"],
        });
        assert_eq!(lines(&schema), ["b true integer", "a true any", "z false string"]);
    }

    #[test]
    fn fields_of_objects_and_of_objects_in_arrays_are_shown() {
        let schema = json!({
            "properties": {
                "one": {"$ref": "#/$defs/Point", "description": "here"},
                "many": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
                "maybe": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]},
            },
            "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
        });
        let expected = [
            "one false object",
            " x true number",
            "many false array of object",
            " x true number",
            "maybe false object or null",
            " x true number",
        ];
        assert_eq!(lines(&schema), expected);
    }

    #[test]
    fn limits_defaults_and_choices_are_described() {
        let schema = json!({"properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
            "s": {"type": "string", "maxLength": 9, "format": "uri"},
            "e": {"enum": ["a", "b"]},
            "c": {"oneOf": [{"const": 1}, {"const": 2}]},
        }});
        let expected = [
            r#"n false integer Some(Number(2)) [] ["1 to 5"]"#,
            r#"s false string None [] ["at most 9 characters", "format uri"]"#,
            r#"e false string None [String("a"), String("b")] []"#,
            r#"c false integer None [Number(1), Number(2)] []"#,
        ];
        assert_eq!(lines(&schema), expected);
    }

    #[test]
    fn remarks_say_what_a_value_must_be() {
        let many: Vec<u32> = (0..60).collect();
        let schema = json!({"properties": {
            "n": {"type": "integer", "minimum": 1, "default": 2, "const": 2},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
            "many": {"enum": many},
        }});
        let remarks: Vec<Vec<String>> =
            parameters(&to_raw(&schema)).iter().map(ToolParameter::remarks).collect();
        assert_eq!(remarks[0], ["[default: 2]", "[always: 2]", "[at least 1]"]);
        assert_eq!(remarks[1], [r#"[one of: "a", "b"]"#]);
        assert!(remarks[2][0].ends_with(", 49, and 10 more]"), "{remarks:?}");
    }

    #[test]
    fn a_schema_that_contains_itself_has_an_end() {
        let schema = json!({"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object", "properties": {
            "left": {"$ref": "#/$defs/Node"}, "right": {"$ref": "#/$defs/Node"},
        }}}});
        assert!(lines(&schema).len() < 300);
        assert_eq!(lines(&json!({"$ref": "#"})), [""; 0]);
    }

    #[test]
    fn nonsense_has_no_parameters() {
        for schema in
            [json!(null), json!(7), json!({"properties": 5}), json!({"properties": {}, "required": "a"})]
        {
            assert_eq!(lines(&schema), [""; 0], "{schema}");
        }
        assert_eq!(lines(&json!({"properties": {"a": 5, "b": true}})), ["a false any", "b false any"]);
    }
}
