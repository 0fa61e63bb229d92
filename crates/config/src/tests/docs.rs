//! The schema and the list of keys in `docs/` are what the code says.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::keys::ConfigKeys;
use super::Place;

/// With this variable the schema is written instead of compared.
const WRITE: &str = "TOOLYARD_WRITE_SCHEMA";

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn schema() -> Value {
    let mut schema = schemars::schema_for!(ConfigKeys).into();
    forget_null(&mut schema);
    schema
}

/// A key that is optional may be left out; there is no null in TOML.
fn forget_null(schema: &mut Value) {
    if let Value::Object(keys) = schema {
        if keys.get("default").is_some_and(Value::is_null) {
            keys.remove("default");
        }
        if let Some(Value::Array(types)) = keys.get_mut("type") {
            types.retain(|kind| kind != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                keys.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(branches)) = keys.get_mut("anyOf") {
            branches.retain(|branch| branch["type"] != "null");
            if let [Value::Object(only)] = branches.as_slice() {
                let only = only.clone();
                keys.remove("anyOf");
                keys.extend(only);
            }
        }
    }
    match schema {
        Value::Object(keys) => keys.values_mut().for_each(forget_null),
        Value::Array(items) => items.iter_mut().for_each(forget_null),
        _ => {}
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "who runs this test says with a variable that it should write")]
fn the_schema_is_the_one_of_the_keys() {
    let made = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    let path = docs("toolyard.schema.json");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(kept, made, "run this test with {WRITE}=1 to write docs/toolyard.schema.json anew");
}

#[test]
fn every_key_is_explained_and_no_other() {
    let schema = schema();
    let mut keys = Vec::new();
    gather(&schema, &schema, "", &mut keys);
    keys.sort();
    let text = std::fs::read_to_string(docs("config.md")).unwrap();
    let mut explained: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .filter(|(_, rest)| rest.contains("| default:"))
        .map(|(key, _)| key.to_owned())
        .collect();
    explained.sort();
    assert_eq!(explained, keys);
}

#[test]
fn the_example_works() {
    let text = std::fs::read_to_string(docs("config.md")).unwrap();
    let example = text.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let json = r#"{"mcpServers": {}}"#;
    let place = Place::new(&[("toolyard.toml", example), (".mcp.json", json), (".claude.json", json)]);
    let config = place.with("GITHUB_TOKEN", "t0ken").load(&[]);
    assert_eq!(config.problems(), []);
    assert_eq!(config.servers().len(), 3);
}

/// The keys of every table, as they are written in the documentation.
fn gather(root: &Value, schema: &Value, prefix: &str, keys: &mut Vec<String>) {
    if let Some(target) = schema["$ref"].as_str() {
        let target = root.pointer(target.trim_start_matches('#')).unwrap();
        return gather(root, target, prefix, keys);
    }
    for branch in schema["anyOf"].as_array().into_iter().flatten() {
        gather(root, branch, prefix, keys);
    }
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        let key = format!("{prefix}{name}");
        if key == "servers" {
            gather(root, &below["additionalProperties"], "servers.NAME.", keys);
            continue;
        }
        let before = keys.len();
        if below["additionalProperties"]["$ref"].is_string() {
            let any = if key.ends_with(".auth") { "SCHEME" } else { "GLOB" };
            gather(root, &below["additionalProperties"], &format!("{key}.{any}."), keys);
        }
        gather(root, &below["items"], &format!("{key}."), keys);
        gather(root, below, &format!("{key}."), keys);
        if keys.len() == before {
            keys.push(key);
        }
    }
}
