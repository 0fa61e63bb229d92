//! Malicious documents, documents that are broken in every place, and a fuzzer that runs for a
//! bounded time.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolyard_openapi::{ConvertSettings, DocumentLocation, LoadSettings, convert, load};

use super::{converted, soundness};

fn try_it(text: &str) -> Result<usize, String> {
    let location = DocumentLocation::Text { text: text.to_owned(), folder: None };
    let Ok(document) = load(&location, &LoadSettings::default()) else { return Ok(0) };
    let conversion = convert(&document, &ConvertSettings::default());
    soundness::check(&conversion).map(|()| conversion.operations.len())
}

#[test]
fn schemas_ten_thousand_deep_leave_the_other_operations_alone() {
    let deep = |open: &str, close: &str| format!("{}{{}}{}", open.repeat(10_000), close.repeat(10_000));
    for (open, close) in [
        (r#"{"items":"#, "}"),
        (r#"{"allOf":["#, "]}"),
        (r#"{"properties":{"a":"#, "}}"),
        (r#"{"not":"#, "}"),
    ] {
        let text = format!(
            r#"{{"openapi":"3.0.0","paths":{{"/deep":{{"post":{{"requestBody":{{"content":{{"application/json":
            {{"schema":{}}}}}}}}}}},"/fine":{{"get":{{"operationId":"fine"}}}}}}}}"#,
            deep(open, close)
        );
        let conversion = converted(&text);
        assert_eq!(conversion.operations.len(), 2);
        assert!(conversion.diagnostics.iter().any(|found| found.code == "too-deep"));
    }
}

#[test]
fn chains_of_references_are_followed_without_a_stack() {
    let mut schemas = Map::new();
    for n in 0..20_000 {
        let next = format!("#/components/schemas/S{}", n + 1);
        schemas.insert(format!("S{n}"), json!({"type": "object", "properties": {"a": {"$ref": next}}}));
    }
    let document = json!({
        "openapi": "3.0.0",
        "paths": {"/": {"post": {"requestBody": {"content": {"application/json": {"schema": {
            "$ref": "#/components/schemas/S0"
        }}}}}}},
        "components": {"schemas": schemas}
    });
    let conversion = converted(&document.to_string());
    assert!(conversion.weight < 70_000);
}

#[test]
fn references_that_multiply_do_not() {
    let mut schemas = Map::new();
    for n in 0..40 {
        let next = json!({"$ref": format!("#/components/schemas/S{}", n + 1)});
        let properties: Map<String, Value> = (0..20).map(|name| (format!("p{name}"), next.clone())).collect();
        schemas.insert(
            format!("S{n}"),
            json!({"allOf": [next.clone(), next.clone()], "properties": properties}),
        );
    }
    schemas.insert("S40".to_owned(), json!({"type": "object"}));
    let schema = json!({"$ref": "#/components/schemas/S0"});
    let document = json!({
        "openapi": "3.0.0",
        "paths": {"/": {"post": {
            "requestBody": {"content": {"application/json": {"schema": schema}}},
            "responses": {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}
        }}},
        "components": {"schemas": schemas}
    });
    let text = document.to_string();
    let location = DocumentLocation::Text { text, folder: None };
    let began = Instant::now();
    let conversion =
        convert(&load(&location, &LoadSettings::default()).unwrap(), &ConvertSettings::default());
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(conversion.weight < 100_000, "{}", conversion.weight);
}

#[test]
fn three_thousand_operations_have_three_thousand_names() {
    let operation = json!({
        "operationId": "doIt",
        "parameters": [{"$ref": "#/components/parameters/P"}],
        "responses": {"200": {"description": "", "content": {"application/json": {"schema": {
            "$ref": "#/components/schemas/S"
        }}}}}
    });
    let paths: Map<String, Value> =
        (0..3_000).map(|n| (format!("/things/{n}"), json!({"get": operation}))).collect();
    let document = json!({
        "openapi": "3.1.0",
        "paths": paths,
        "components": {
            "parameters": {"P": {"name": "p", "in": "query", "schema": {"$ref": "#/components/schemas/S"}}},
            "schemas": {"S": {"type": "object", "properties": {"s": {"$ref": "#/components/schemas/S"}}}}
        }
    });
    let location = DocumentLocation::Text { text: document.to_string(), folder: None };
    let conversion =
        convert(&load(&location, &LoadSettings::default()).unwrap(), &ConvertSettings::default());
    let names: std::collections::HashSet<&str> =
        conversion.operations.iter().map(|operation| operation.name.as_str()).collect();
    assert_eq!((conversion.operations.len(), names.len()), (3_000, 3_000));
}

#[test]
fn wrong_types_in_every_place_are_reported_and_what_is_sound_is_served() {
    let sound = super::tools_document();
    let document: Value = serde_json::from_str(&sound).unwrap();
    let mut pointers = Vec::new();
    places(&document, &mut String::new(), &mut pointers);
    assert!(pointers.len() > 60);
    for pointer in pointers {
        for wrong in [json!(null), json!("x"), json!([1]), json!({"a": {"$ref": 1}})] {
            let mut document = document.clone();
            *document.pointer_mut(&pointer).unwrap() = wrong.clone();
            let tools =
                try_it(&document.to_string()).unwrap_or_else(|fault| panic!("{pointer} is {wrong}: {fault}"));
            let kept = pointer.starts_with("/paths/~1broken") || pointer.starts_with("/components");
            assert!(!kept || tools >= 1, "{pointer} is {wrong}: {tools} tools");
        }
    }
}

fn places(value: &Value, pointer: &mut String, found: &mut Vec<String>) {
    let mut visit = |key: &str, value: &Value| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
        found.push(pointer.clone());
        places(value, pointer, found);
        pointer.truncate(length);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| visit(key, value)),
        Value::Array(values) => values.iter().enumerate().for_each(|(n, value)| visit(&n.to_string(), value)),
        _ => {}
    }
}

/// Pseudo-random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

#[allow(clippy::disallowed_methods, reason = "the environment sets the duration")]
/// Swaps, copies and breaks parts of valid documents, as values and as text. TOOLYARD_FUZZ_SECONDS
/// sets the duration.
#[test]
fn mutated_documents_never_break_the_converter() {
    let seconds = std::env::var("TOOLYARD_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let seed = std::env::var("TOOLYARD_FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/openapi");
    let mut seeds = vec![super::tools_document()];
    for name in ["learn-v2-uber.json", "learn-v3.0-link.json", "learn-v3.1-webhook.json"] {
        seeds.push(std::fs::read_to_string(folder.join(name)).unwrap());
    }
    let yaml: Vec<String> = ["learn-v3.2-tags.yaml", "learn-v3.1-tictactoe.yaml", "learn-v3.0-callback.yaml"]
        .iter()
        .map(|name| std::fs::read_to_string(folder.join(name)).unwrap())
        .collect();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (seed * 2_654_435_761));
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut tried = 0_u64;
    while Instant::now() < until {
        tried += 1;
        let text = if dice.roll(4) == 0 {
            scrambled(&yaml[dice.roll(yaml.len())], &mut dice)
        } else {
            let mut document: Value = serde_json::from_str(&seeds[dice.roll(seeds.len())]).unwrap();
            for _ in 0..=dice.roll(6) {
                mutate(&mut document, &mut dice);
            }
            if dice.roll(5) == 0 { scrambled(&document.to_string(), &mut dice) } else { document.to_string() }
        };
        if let Err(fault) = try_it(&text) {
            panic!("{fault}\nof:\n{text}");
        }
    }
    println!("{tried} documents");
    assert!(tried > 0);
}

fn mutate(document: &mut Value, dice: &mut Dice) {
    let mut pointers = Vec::new();
    places(document, &mut String::new(), &mut pointers);
    let Some(target) = pointers.get(dice.roll(pointers.len().max(1))).cloned() else { return };
    let other = pointers[dice.roll(pointers.len())].clone();
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("#"),
        json!([]),
        json!({}),
        json!({"$ref": "#"}),
        json!({"$ref": "#/paths"}),
        json!({"type": "object", "properties": {"a": {}}}),
        json!("{{}"),
        json!([null, {}]),
        json!({"allOf": [{"$ref": format!("#{target}")}]}),
        json!({"nullable": true, "oneOf": [{}, {}]}),
    ];
    let value = match dice.roll(4) {
        0 => document.pointer(&other).cloned().unwrap_or_default(),
        1 => json!({"$ref": format!("#{other}")}),
        _ => values[dice.roll(values.len())].clone(),
    };
    if value.to_string().len() < 200_000
        && let Some(place) = document.pointer_mut(&target)
    {
        *place = value;
    }
}

fn scrambled(text: &str, dice: &mut Dice) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=dice.roll(8) {
        let at = dice.roll(bytes.len());
        match dice.roll(4) {
            0 => bytes[at] = b"{}[]:,\"'&*!|>-#%@`\n\t 0\\"[dice.roll(23)],
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, b"{}[]:,&*<- "[dice.roll(11)]),
            _ => {
                let end = (at + dice.roll(200)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = dice.roll(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
