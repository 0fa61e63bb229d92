//! The JSON Schema and the reference page of test files, from the tables that the reader uses.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::keys::{self, KeyShape, Section, SectionKey};

/// Where the schema is published.
const SCHEMA_URL: &str =
    "https://raw.githubusercontent.com/toolyard/toolyard/main/docs/toolyard-test.schema.json";
const DURATION: &str = "^[0-9]+(\\.[0-9]+)? ?(ms|s|m|h)$";
const SIZE: &str = "^[0-9]+(\\.[0-9]+)? ?(B|kB|KB|MB|KiB|MiB)?$";

/// Returns the JSON Schema of test files.
pub fn test_file_schema() -> Value {
    let mut definitions = Map::new();
    for section in keys::SECTIONS {
        definitions.insert(section.name.to_owned(), section_schema(section));
    }
    // An inline step has the keys of both sections. Neither may exclude those of the other.
    let both = [&keys::TEST, &keys::STEP].into_iter().flat_map(|section| section.keys);
    let mut test = object_schema(keys::TEST.about, both);
    test["required"] = json!(["name"]);
    definitions.insert(keys::TEST.name.to_owned(), test);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_URL,
        "title": "Toolyard test file",
        "description": "Tests of an MCP server, run by `toolyard test`.",
        "$ref": format!("#/$defs/{}", keys::FILE.name),
        "$defs": definitions,
    })
}

fn section_schema(section: &Section) -> Value {
    let mut schema = object_schema(section.about, section.keys.iter());
    let required: Vec<&str> =
        section.keys.iter().filter(|key| is_required(key)).map(|key| key.name).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn object_schema(about: &str, keys: impl Iterator<Item = &'static SectionKey>) -> Value {
    let mut properties = Map::new();
    for key in keys {
        let mut schema = shape_schema(&key.shape);
        schema["description"] = json!(key.about);
        properties.insert(key.name.to_owned(), schema);
    }
    json!({
        "description": about,
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn is_required(key: &SectionKey) -> bool {
    key.about.ends_with("Required") || key.about.contains("Required, ")
}

fn shape_schema(shape: &KeyShape) -> Value {
    match shape {
        KeyShape::Text => json!({"type": ["string", "number", "boolean"]}),
        KeyShape::Flag => json!({"type": "boolean"}),
        KeyShape::Count => json!({"type": "integer", "minimum": 0}),
        KeyShape::Number => json!({"type": "number"}),
        KeyShape::Time => json!({"type": "string", "pattern": DURATION}),
        KeyShape::Size => json!({"type": ["string", "integer"], "pattern": SIZE}),
        KeyShape::Any => json!({}),
        KeyShape::Choice(choices) => json!({"enum": choices}),
        KeyShape::List(item) => json!({"type": "array", "items": shape_schema(item)}),
        KeyShape::Map(value) => {
            json!({"type": ["object", "null"], "additionalProperties": shape_schema(value)})
        }
        KeyShape::Section(section) => json!({"$ref": format!("#/$defs/{}", section.name)}),
        KeyShape::Either(shapes) => {
            json!({"anyOf": shapes.iter().map(shape_schema).collect::<Vec<_>>()})
        }
    }
}

/// Returns the generated part of the reference page: a section and a table for each map.
pub fn test_file_reference() -> String {
    let mut page = String::new();
    for section in keys::SECTIONS {
        let _ = write!(page, "## {}\n\n{}\n\n", section.name, section.about);
        let _ = write!(page, "| Key | Value | Meaning |\n|---|---|---|\n");
        for key in section.keys {
            let about = key.about.replace('|', "\\|").replace('<', "&lt;");
            let about = restore_code(&about);
            let _ = writeln!(page, "| `{}` | {} | {about} |", key.name, shape_words(&key.shape));
        }
        page.push('\n');
    }
    page
}

/// Undoes the escaping of `<` inside code, where it has no meaning.
fn restore_code(markdown: &str) -> String {
    let parts = markdown.split('`').enumerate();
    let parts =
        parts.map(|(index, part)| if index % 2 == 1 { part.replace("&lt;", "<") } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

fn shape_words(shape: &KeyShape) -> String {
    match shape {
        KeyShape::Text => "text".to_owned(),
        KeyShape::Flag => "`true` or `false`".to_owned(),
        KeyShape::Count => "whole number".to_owned(),
        KeyShape::Number => "number".to_owned(),
        KeyShape::Time => "duration".to_owned(),
        KeyShape::Size => "size".to_owned(),
        KeyShape::Any => "any value".to_owned(),
        KeyShape::Choice(choices) => {
            choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ")
        }
        KeyShape::List(item) => format!("list: {}", shape_words(item)),
        KeyShape::Map(value) => format!("map: {}", shape_words(value)),
        KeyShape::Section(section) => format!("[{}](#{})", section.name, section.name.to_lowercase()),
        KeyShape::Either(shapes) => shapes.iter().map(shape_words).collect::<Vec<_>>().join(", or "),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use toolyard_testkit::docs::{check_file, check_generated, code_blocks};

    use super::keys::{KeyShape, Section};
    use super::{keys, test_file_reference, test_file_schema};
    use crate::file::parse_test_file;
    use crate::file::yaml::parse_yaml;

    fn section_of(shape: &KeyShape) -> Option<&'static Section> {
        match shape {
            KeyShape::Section(section) => Some(section),
            KeyShape::List(inner) | KeyShape::Map(inner) => section_of(inner),
            KeyShape::Either(shapes) => shapes.iter().find_map(section_of),
            _ => None,
        }
    }

    #[test]
    fn the_reference_and_the_schema_are_current() {
        let mut schema = serde_json::to_string_pretty(&test_file_schema()).unwrap();
        schema.push('\n');
        check_file("docs/toolyard-test.schema.json", &schema);
        check_generated("reference/test-files.md", &test_file_reference());
    }

    #[test]
    fn the_examples_of_the_manual_are_valid() {
        let validator = jsonschema::validator_for(&test_file_schema()).unwrap();
        let blocks = code_blocks().into_iter().filter(|block| block.language == "yaml");
        let examples: Vec<_> = blocks.filter(|block| block.text.contains("tests:\n")).collect();
        assert!(!examples.is_empty());
        for block in examples {
            let problems = parse_test_file(Path::new("example.mcp.yaml"), &block.text).err();
            assert!(problems.is_none(), "{}: {problems:?}", block.location);
            let value = parse_yaml(&block.text).unwrap().to_json();
            assert!(validator.is_valid(&value), "{}", block.location);
        }
    }

    #[test]
    fn every_section_that_a_key_refers_to_is_in_the_reference() {
        let listed: HashSet<&str> = keys::SECTIONS.iter().map(|section| section.name).collect();
        for section in keys::SECTIONS {
            for key in section.keys {
                let referenced = section_of(&key.shape).map_or(section.name, |section| section.name);
                assert!(listed.contains(referenced), "{}.{}", section.name, key.name);
            }
        }
    }

    #[test]
    fn the_schema_is_valid_and_knows_inline_steps() {
        let schema = test_file_schema();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let file = |test: serde_json::Value| serde_json::json!({"server": "x", "tests": [test]});
        assert!(
            validator.is_valid(&file(serde_json::json!({"name": "a", "call": "b", "expect": {"text": "c"}})))
        );
        assert!(!validator.is_valid(&file(serde_json::json!({"name": "a", "cal": "b"}))));
        assert!(!validator.is_valid(&file(serde_json::json!({"call": "b"}))));
        assert!(!validator.is_valid(&file(serde_json::json!({"name": "a", "timeout": "5"}))));
    }
}
