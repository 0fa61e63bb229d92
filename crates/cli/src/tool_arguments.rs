//! Converts command line arguments to the arguments of a tool: `key=value` is converted by the
//! schema, `key:=json` is taken literally. The yard validates the result against the schema.

use serde_json::{Map, Number, Value};
use toolyard_hub::json::{self, Object};
use toolyard_hub::parameters::resolve_reference;
use toolyard_hub::{Raw, nearest};

use crate::error::CommandError;
use crate::terminal::{print_hint, print_warning};

/// Maximum depth of `a.b.c`.
const DEEPEST: usize = 32;
/// How many parameters are listed in the hint for an unknown one.
const MOST_NAMES: usize = 10;

/// Reads a file named by an argument. `-` is standard input.
pub(crate) type FileReader<'a> = &'a dyn Fn(&str) -> Result<String, CommandError>;

/// Builds the arguments: `whole` as one JSON object, then single arguments, which override it. If
/// there are no single arguments, the JSON is sent unchanged.
pub(crate) fn parse_arguments(
    whole: Option<&str>,
    words: &[String],
    schema: &Value,
    read: FileReader<'_>,
) -> Result<Raw, CommandError> {
    let mut all = Object::default();
    let mut whole_members = Map::new();
    if let Some(whole) = whole {
        let text = match whole {
            "-" => read("-")?,
            file if file.starts_with('@') => read(&file[1..])?,
            text => text.to_owned(),
        };
        let parsed: Value = serde_json::from_str(&text)
            .map_err(|error| CommandError::usage(format!("--args is not valid JSON: {error}")))?;
        let Value::Object(members) = parsed else {
            return Err(CommandError::usage("--args is not a JSON object such as {\"key\": 1}"));
        };
        members.keys().for_each(|name| warn_if_unknown(schema, resolve_reference(schema, schema), name));
        let raw = json::from_text(text.trim().to_owned());
        if words.is_empty() {
            return Ok(raw);
        }
        all = Object::parse(&raw).unwrap_or_default();
        whole_members = members;
    }
    let mut typing = ArgumentBuilder { root: schema, read, started: Vec::new(), verbatim: Vec::new() };
    let mut single = Map::new();
    for word in words {
        let key = split_argument(word)?.key;
        let first = key.split('.').next().unwrap_or(key);
        // Single fields of an object are added to those in `whole`.
        if first != key
            && !single.contains_key(first)
            && let Some(members) = whole_members.get(first)
        {
            single.insert(first.to_owned(), members.clone());
        }
        typing.add(&mut single, word)?;
    }
    // Untouched members and JSON values are sent unchanged, including whitespace and numbers of any
    // size.
    for (key, value) in &single {
        let verbatim = typing.verbatim.iter().find(|(name, _)| name == key).map(|(_, raw)| raw.clone());
        all.set(key, verbatim.unwrap_or_else(|| json::to_raw(value)));
    }
    Ok(all.to_raw())
}

/// Builds the arguments of a prompt, which are always text.
pub(crate) fn parse_text_arguments(
    words: &[String],
    read: FileReader<'_>,
) -> Result<Map<String, Value>, CommandError> {
    let mut all = Map::new();
    for word in words {
        let ArgumentWord { key, value, .. } = split_argument(word)?;
        if all.insert(key.to_owned(), Value::String(resolve_text(value, read)?)).is_some() {
            return Err(CommandError::usage(format!("argument `{key}` is given twice")));
        }
    }
    Ok(all)
}

struct ArgumentWord<'a> {
    key: &'a str,
    value: &'a str,
    raw: bool,
}

fn split_argument(word: &str) -> Result<ArgumentWord<'_>, CommandError> {
    let wrong = || {
        CommandError::usage(format!("invalid argument {word:?}"))
            .suggest("write arguments as key=value or key:=json; see `toolyard call --help`")
    };
    let (key, value) = word.split_once('=').ok_or_else(wrong)?;
    let (key, raw) = key.strip_suffix(':').map_or((key, false), |key| (key, true));
    if key.is_empty() { Err(wrong()) } else { Ok(ArgumentWord { key, value, raw }) }
}

/// A value as text: itself, or the contents of the file that it names.
fn resolve_text(value: &str, read: FileReader<'_>) -> Result<String, CommandError> {
    match value.strip_prefix('@') {
        Some(rest) if rest.starts_with('@') => Ok(rest.to_owned()),
        Some(file) => read(file),
        None => Ok(value.to_owned()),
    }
}

struct ArgumentBuilder<'a> {
    root: &'a Value,
    read: FileReader<'a>,
    /// Lists started by an argument. Further arguments of the same name append to them.
    started: Vec<String>,
    /// Arguments given as JSON, unchanged.
    verbatim: Vec<(String, Raw)>,
}

impl<'a> ArgumentBuilder<'a> {
    fn add(&mut self, all: &mut Map<String, Value>, word: &str) -> Result<(), CommandError> {
        let ArgumentWord { key, value, raw } = split_argument(word)?;
        let root = resolve_reference(self.root, self.root);
        let steps: Vec<&str> =
            if property(root, root, key).is_some() { vec![key] } else { key.split('.').collect() };
        if steps.iter().any(|step| step.is_empty()) || steps.len() > DEEPEST {
            return Err(CommandError::usage(format!("invalid argument name {key:?}")));
        }
        let mut schema = Some(self.root);
        let mut object = all;
        let (last, above) = steps.split_last().unwrap_or((&key, &[]));
        for step in above {
            schema = self.property_schema(schema, step);
            let inner = object.entry((*step).to_owned()).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(inner) = inner else {
                return Err(CommandError::usage(format!("cannot set `{key}`: `{step}` is not an object")));
            };
            object = inner;
        }
        let schema = self.property_schema(schema, last);
        let text = resolve_text(value, self.read)?;
        let parsed = match raw {
            true => serde_json::from_str(&text).map_err(|error| {
                CommandError::usage(format!("the value of `{key}` is not valid JSON: {error}"))
            })?,
            false => self.parse_value(key, &text, schema)?,
        };
        if raw && above.is_empty() {
            self.verbatim.push(((*last).to_owned(), json::from_text(text.trim().to_owned())));
        }
        match parsed {
            // A repeated argument appends to a list. For other types it is an error.
            ArgumentValue::Element(element) => match object.get_mut(*last) {
                Some(Value::Array(elements)) if self.started.iter().any(|started| started == key) => {
                    elements.push(element);
                }
                Some(_) if self.started.iter().any(|started| started == key) => {
                    return Err(duplicate_argument(key));
                }
                _ => {
                    self.started.push(key.to_owned());
                    object.insert((*last).to_owned(), Value::Array(vec![element]));
                }
            },
            ArgumentValue::Whole(value) => {
                if self.started.iter().any(|started| started == key) {
                    return Err(duplicate_argument(key));
                }
                self.started.push(key.to_owned());
                object.insert((*last).to_owned(), value);
            }
        }
        Ok(())
    }

    /// The schema of a property. Warns if the name is unknown.
    fn property_schema(&self, schema: Option<&'a Value>, name: &str) -> Option<&'a Value> {
        let schema = resolve_reference(self.root, schema?);
        warn_if_unknown(self.root, schema, name);
        property(self.root, schema, name)
    }

    /// Converts a text to the type in the schema.
    fn parse_value(
        &self,
        key: &str,
        text: &str,
        schema: Option<&Value>,
    ) -> Result<ArgumentValue, CommandError> {
        let Some(schema) = schema.map(|schema| resolve_reference(self.root, schema)) else {
            return Ok(ArgumentValue::Whole(text.into()));
        };
        let mut kinds = Vec::new();
        collect_types(self.root, schema, &mut kinds, 0);
        let allows = |kind: &str| kinds.contains(&kind);
        let mut listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        let as_json = serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_string());
        if let Some(value) = listed.find(|value| as_json.as_ref() == Some(*value)) {
            return Ok(ArgumentValue::Whole(value.clone()));
        }
        if allows("array") {
            if text.trim_start().starts_with('[')
                && let Ok(whole @ Value::Array(_)) = serde_json::from_str(text)
            {
                return Ok(ArgumentValue::Whole(whole));
            }
            let items = schema.get("items").filter(|items| items.is_object());
            return match self.parse_value(key, text, items)? {
                ArgumentValue::Element(element) | ArgumentValue::Whole(element) => {
                    Ok(ArgumentValue::Element(element))
                }
            };
        }
        if (allows("integer") || allows("number"))
            && let Some(number) = number(text)
            && (allows("number") || !number.is_f64())
        {
            return Ok(ArgumentValue::Whole(Value::Number(number)));
        }
        if allows("boolean")
            && let Ok(flag) = text.parse::<bool>()
        {
            return Ok(ArgumentValue::Whole(flag.into()));
        }
        if allows("object")
            && let Ok(whole @ Value::Object(_)) = serde_json::from_str(text)
        {
            return Ok(ArgumentValue::Whole(whole));
        }
        if allows("string") || kinds.is_empty() {
            return Ok(ArgumentValue::Whole(text.into()));
        }
        if allows("null") && text == "null" {
            return Ok(ArgumentValue::Whole(Value::Null));
        }
        let expected: Vec<&str> = kinds.iter().map(|kind| with_article(kind)).collect();
        let fault = CommandError::usage(format!(
            "`{key}` must be {}, not {:?}",
            expected.join(" or "),
            json::truncate_for_message(text)
        ));
        Err(match kinds.as_slice() {
            ["object"] => {
                fault.suggest(format!("pass a JSON object, or its fields one by one, as in {key}.a=1"))
            }
            _ => fault,
        })
    }
}

fn warn_if_unknown(root: &Value, schema: &Value, name: &str) {
    if let Some(warning) = unknown_parameter(root, schema, name) {
        print_warning(&warning.message);
        print_hint(&warning.suggestion);
    }
}

/// The warning for a name that the schema does not declare. If the schema allows other names in
/// some way, there is a warning only for a likely typing error.
fn unknown_parameter(root: &Value, schema: &Value, name: &str) -> Option<UnknownParameter> {
    let known = schema.get("properties")?.as_object()?;
    let expected = schema.get("patternProperties").is_some()
        || schema.get("additionalProperties").is_some_and(|others| *others != Value::Bool(false));
    if expected || property(root, schema, name).is_some() {
        return None;
    }
    let name = json::truncate_for_message(name);
    let warning =
        |suggestion| UnknownParameter { message: format!("unknown parameter `{name}`"), suggestion };
    if let Some(close) = nearest(&name, known.keys().map(String::as_str)) {
        return Some(warning(format!("did you mean `{close}`?")));
    }
    let more = ["allOf", "anyOf", "oneOf", "if", "dependentSchemas", "unevaluatedProperties"];
    // Validation rejects it anyway and reports it then.
    if known.is_empty()
        || more.iter().any(|key| schema.get(key).is_some())
        || schema.get("additionalProperties").is_some()
    {
        return None;
    }
    let mut names: Vec<&str> = known.keys().map(String::as_str).take(MOST_NAMES).collect();
    if known.len() > MOST_NAMES {
        names.push("…");
    }
    Some(warning(format!("parameters: {}", names.join(", "))))
}

#[derive(Debug, PartialEq, Eq)]
struct UnknownParameter {
    message: String,
    suggestion: String,
}

enum ArgumentValue {
    /// One element of a list.
    Element(Value),
    Whole(Value),
}

impl<'de> serde::Deserialize<'de> for ArgumentValue {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::Whole)
    }
}

fn with_article(kind: &str) -> &str {
    match kind {
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "true or false",
        "object" => "an object",
        "array" => "a list",
        other => other,
    }
}

fn duplicate_argument(key: &str) -> CommandError {
    CommandError::usage(format!("argument `{key}` is given twice but is not a list"))
}

/// A property of an object, or of one of the schemas that it is composed of.
fn property<'a>(root: &'a Value, schema: &'a Value, name: &str) -> Option<&'a Value> {
    let schema = resolve_reference(root, schema);
    if let Some(found) = schema.get("properties").and_then(|properties| properties.get(name)) {
        return Some(found);
    }
    let parts = ["allOf", "anyOf", "oneOf"];
    let parts = parts.iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    parts.map(|part| resolve_reference(root, part)).find_map(|part| part.get("properties")?.get(name))
}

/// Collects the types that a value may have. None if the schema does not restrict them.
fn collect_types<'a>(root: &'a Value, schema: &'a Value, kinds: &mut Vec<&'a str>, depth: usize) {
    let schema = resolve_reference(root, schema);
    match schema.get("type") {
        Some(Value::String(kind)) => kinds.push(kind),
        Some(Value::Array(several)) => kinds.extend(several.iter().filter_map(Value::as_str)),
        _ if depth < 4 => {
            for key in ["anyOf", "oneOf", "allOf"] {
                for part in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
                    collect_types(root, part, kinds, depth + 1);
                }
            }
        }
        _ => {}
    }
}

/// Parses a JSON number. Integers stay integers.
fn number(text: &str) -> Option<Number> {
    match serde_json::from_str::<Value>(text.trim()).ok()? {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{parse_arguments, parse_text_arguments, unknown_parameter};
    use crate::error::CommandError;

    fn schema() -> Value {
        json!({
            "properties": {
                "name": {"type": "string"},
                "count": {"type": "integer"},
                "ratio": {"type": "number"},
                "fast": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "sizes": {"type": "array", "items": {"type": "integer"}},
                "where": {"$ref": "#/$defs/Place"},
                "id": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "maybe": {"type": ["integer", "null"]},
                "mode": {"enum": [1, 2, "auto"]},
                "a.b": {"type": "integer"},
                "any": {},
            },
            "$defs": {"Place": {"type": "object", "properties": {
                "x": {"type": "number"}, "deep": {"type": "object", "properties": {"y": {"type": "boolean"}}},
            }}},
        })
    }

    fn read(file: &str) -> Result<String, CommandError> {
        match file {
            "number.txt" => Ok("7".to_owned()),
            "-" | "all.json" => {
                Ok("{\"name\":\"from file\", \"big\": 123456789012345678901234567890}".to_owned())
            }
            other => Err(CommandError::usage(format!("cannot read {other}"))),
        }
    }

    fn made(whole: Option<&str>, words: &[&str]) -> Result<String, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        match parse_arguments(whole, &words, &schema(), &read) {
            Ok(raw) => Ok(raw.get().to_owned()),
            Err(CommandError::Failure { message, .. }) => Err(message),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn a_value_becomes_what_the_schema_says() {
        for (word, expected) in [
            ("name=5", r#"{"name":"5"}"#),
            ("name=a=b", r#"{"name":"a=b"}"#),
            ("name=", r#"{"name":""}"#),
            ("count=5", r#"{"count":5}"#),
            ("count=-12345678901234567", r#"{"count":-12345678901234567}"#),
            ("ratio=5", r#"{"ratio":5}"#),
            ("ratio=0.5", r#"{"ratio":0.5}"#),
            ("fast=true", r#"{"fast":true}"#),
            ("tags=a", r#"{"tags":["a"]}"#),
            (r#"tags=["a","b"]"#, r#"{"tags":["a","b"]}"#),
            ("where.x=1.5", r#"{"where":{"x":1.5}}"#),
            (r#"where={"x":1}"#, r#"{"where":{"x":1}}"#),
            ("id=5", r#"{"id":5}"#),
            ("id=x5", r#"{"id":"x5"}"#),
            ("maybe=null", r#"{"maybe":null}"#),
            ("mode=2", r#"{"mode":2}"#),
            ("mode=auto", r#"{"mode":"auto"}"#),
            ("a.b=3", r#"{"a.b":3}"#),
            ("any=5", r#"{"any":"5"}"#),
            ("any:=5", r#"{"any":5}"#),
            ("any:=123456789012345678901234567890", r#"{"any":123456789012345678901234567890}"#),
            ("unheard=1", r#"{"unheard":"1"}"#),
            ("count=@number.txt", r#"{"count":7}"#),
            ("count:=@number.txt", r#"{"count":7}"#),
            ("name=@number.txt", r#"{"name":"7"}"#),
            ("name=@@home", r#"{"name":"@home"}"#),
        ] {
            assert_eq!(made(None, &[word]), Ok(expected.to_owned()), "{word}");
        }
    }

    #[test]
    fn several_words_make_lists_and_objects() {
        assert_eq!(made(None, &["sizes=1", "sizes=2"]), Ok(r#"{"sizes":[1,2]}"#.to_owned()));
        let nested = made(None, &["where.x=1", "where.deep.y=true", "name=n"]);
        assert_eq!(nested, Ok(r#"{"where":{"x":1,"deep":{"y":true}},"name":"n"}"#.to_owned()));
    }

    #[test]
    fn all_at_once_comes_first_and_alone_stays_as_it_is() {
        let big = r#"{"name":"from file", "big": 123456789012345678901234567890}"#;
        assert_eq!(made(Some("@all.json"), &[]), Ok(big.to_owned()));
        assert_eq!(made(Some("-"), &[]), Ok(big.to_owned()));
        let both = made(Some(r#"{"name":"a","tags":["x"]}"#), &["name=b", "tags=y"]);
        assert_eq!(both, Ok(r#"{"name":"b","tags":["y"]}"#.to_owned()));
        let untouched = made(Some("@all.json"), &["where.x=1"]);
        let expected = r#"{"name":"from file","big":123456789012345678901234567890,"where":{"x":1}}"#;
        assert_eq!(untouched, Ok(expected.to_owned()));
        let merged = made(Some(r#"{"where":{"x":1,"z":2}}"#), &["where.x=3"]);
        assert_eq!(merged, Ok(r#"{"where":{"x":3,"z":2}}"#.to_owned()));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_words() {
        for (words, expected) in [
            (&["count=five"][..], "`count` must be an integer, not \"five\""),
            (&["count=1.5"], "`count` must be an integer, not \"1.5\""),
            (&["fast=yes"], "`fast` must be true or false, not \"yes\""),
            (&["sizes=x"], "`sizes` must be an integer, not \"x\""),
            (&["where=here"], "`where` must be an object, not \"here\""),
            (&["name"], "invalid argument \"name\""),
            (&["=5"], "invalid argument \"=5\""),
            (&["a..c=5"], "invalid argument name \"a..c\""),
            (&["name=a", "name=b"], "argument `name` is given twice but is not a list"),
            (&["name=a", "name.x=b"], "cannot set `name.x`: `name` is not an object"),
            (
                &["any:={"],
                "the value of `any` is not valid JSON: EOF while parsing an object at line 1 column 1",
            ),
            (&["name=@nowhere"], "cannot read nowhere"),
        ] {
            assert_eq!(made(None, words), Err(expected.to_owned()), "{words:?}");
        }
        for (whole, expected) in [
            ("[1]", "--args is not a JSON object such as {\"key\": 1}"),
            ("{", "--args is not valid JSON: EOF while parsing an object at line 1 column 1"),
        ] {
            assert_eq!(made(Some(whole), &[]), Err(expected.to_owned()));
        }
    }

    #[test]
    fn warns_of_a_name_that_the_schema_does_not_know() {
        let words = |schema: Value, name: &str| {
            unknown_parameter(&schema, &schema, name)
                .map(|warning| format!("{}; {}", warning.message, warning.suggestion))
        };
        let two = || json!({"message": {}, "count": {}});
        assert_eq!(words(json!({"properties": two()}), "message"), None);
        let near = Some("unknown parameter `mesage`; did you mean `message`?".to_owned());
        assert_eq!(words(json!({"properties": two()}), "mesage"), near);
        assert_eq!(words(json!({"properties": two(), "additionalProperties": false}), "mesage"), near);
        let far = "unknown parameter `colour`; parameters: message, count";
        assert_eq!(words(json!({"properties": two()}), "colour").as_deref(), Some(far));
        for other in [
            json!({"properties": two(), "additionalProperties": true}),
            json!({"properties": two(), "additionalProperties": {"type": "string"}}),
            json!({"properties": two(), "patternProperties": {"^x": {}}}),
            json!({"properties": two(), "anyOf": [{"properties": {"colour": {}}}]}),
            json!({"properties": two(), "allOf": [{"required": ["count"]}]}),
            json!({"properties": two(), "additionalProperties": false}),
            json!({"properties": {}}),
            json!({"properties": [1]}),
            json!({"type": "object"}),
            json!(true),
        ] {
            assert_eq!(words(other.clone(), "colour"), None, "{other}");
        }
    }

    #[test]
    fn arguments_of_prompts_are_text() {
        let words = ["a=5".to_owned(), "b=@@x".to_owned()];
        assert_eq!(Value::Object(parse_text_arguments(&words, &read).unwrap()), json!({"a": "5", "b": "@x"}));
    }
}
