//! Tests of everything around schemas: servers, prompts, resources, renames, hostile input and the
//! reports.

use std::time::{Duration, Instant};

use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::{collection, option};
use serde_json::{Value, json};

use super::{
    ChangeClass, OfferChange, compare_named_offers, compare_offers, render_changes_as_markdown,
    render_changes_as_text,
};
use crate::offer::ServerOffer;
use crate::saved_list::parse_saved_definitions;

fn offer(value: &Value) -> ServerOffer {
    parse_saved_definitions(&value.to_string(), "s").unwrap().remove(0)
}

fn compare(old: &Value, new: &Value) -> Vec<OfferChange> {
    compare_offers(&[offer(old)], &[offer(new)])
}

/// One line per change.
fn lines(changes: &[OfferChange]) -> Vec<String> {
    let line = |change: &OfferChange| {
        format!("{} {} {}: {}", change.class.as_str(), change.item.name, change.path, change.reason)
    };
    changes.iter().map(line).collect()
}

#[allow(clippy::needless_pass_by_value, reason = "the callers build the value in place")]
fn tool(name: &str, schema: Value) -> Value {
    json!({"name": name, "description": "A tool for tests.", "inputSchema": schema})
}

#[test]
fn tools_that_come_and_go_are_reported() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let old = json!({"tools": [tool("read", schema.clone()), tool("stat", json!({"type": "object"}))]});
    let new = json!({"tools": [tool("read_file", schema), tool("list", json!({"type": "object", "properties": {"a": {}}}))]});
    assert_eq!(
        lines(&compare(&old, &new)),
        [
            "compatible list : the tool was added",
            "breaking read : the tool was removed; `read_file` has the same definition, so it may be a rename",
            "compatible read_file : the tool was added; it has the definition of `read`, which was removed",
            "breaking stat : the tool was removed",
        ]
    );
}

#[test]
fn a_list_that_is_not_known_is_not_compared() {
    let old = json!({"tools": [], "prompts": [{"name": "p"}]});
    let new = json!({"tools": [tool("a", json!({}))]});
    assert_eq!(lines(&compare(&old, &new)), ["compatible a : the tool was added"]);
}

#[test]
fn arguments_of_prompts_are_inputs() {
    let prompt = |arguments: Value| json!({"prompts": [{"name": "p", "arguments": arguments}]});
    let old = prompt(
        json!([{"name": "a"}, {"name": "b", "required": true}, {"name": "c"}, {"name": "d", "description": "x"}]),
    );
    let new = prompt(
        json!([{"name": "d", "description": "y"}, {"name": "a", "required": true}, {"name": "b"}, {"name": "e", "required": true}, {"name": "f"}]),
    );
    assert_eq!(
        lines(&compare(&old, &new)),
        [
            "breaking p /arguments/1/required: argument `a` is now required: requests without it fail",
            "breaking p /arguments/2: argument `c` was removed: clients that send it are ignored or refused",
            "breaking p /arguments/3: required argument `e` was added: requests without it fail",
            "compatible p /arguments/2/required: argument `b` is no longer required",
            "compatible p /arguments/4: optional argument `f` was added",
            "wording p /arguments/0: the description of argument `d` changed",
        ]
    );
}

#[test]
fn resources_and_templates_are_known_by_their_address() {
    let old = json!({
        "resources": [{"uri": "a:1", "name": "one", "mimeType": "text/plain"}, {"uri": "a:2", "name": "two"}],
        "resourceTemplates": [{"uriTemplate": "a:{id}", "name": "any"}],
    });
    let new = json!({
        "resources": [{"uri": "a:1", "name": "One", "mimeType": "text/html"}],
        "resourceTemplates": [{"uriTemplate": "a:{id}", "name": "any", "mimeType": "text/plain"}],
    });
    assert_eq!(
        lines(&compare(&old, &new)),
        [
            "breaking a:1 /mimeType: `mimeType` changed: clients that read the old type get another one",
            "wording a:1 /name: `name` changed",
            "breaking a:2 : the resource was removed",
            "compatible a:{id} /mimeType: `mimeType` was added",
        ]
    );
}

#[test]
fn capabilities_are_promises_and_the_rest_is_wording() {
    let old = json!({"tools": [], "serverInfo": {"name": "s", "version": "1"}, "instructions": "Use it.",
        "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": false}, "logging": {}}});
    let new = json!({"tools": [], "serverInfo": {"name": "s", "version": "2"},
        "capabilities": {"tools": {}, "resources": {"subscribe": true}, "prompts": {}}});
    assert_eq!(
        lines(&compare(&old, &new)),
        [
            "breaking  /capabilities/logging: the capability `logging` was removed: clients that use it fail",
            "breaking  /capabilities/tools/listChanged: the capability was removed: clients that use it fail",
            "compatible  /capabilities/prompts: the capability `prompts` was added",
            "compatible  /capabilities/resources/subscribe: the capability was added",
            "wording  /instructions: the instructions changed",
            "wording  /serverInfo/version: the server reports another `version`",
        ]
    );
}

#[test]
fn servers_are_matched_by_name_unless_there_is_one_on_each_side() {
    let named =
        |name: &str| ServerOffer { name: name.to_owned(), tools: Some(Vec::new()), ..ServerOffer::default() };
    assert_eq!(compare_offers(&[named("a")], &[named("b")]), []);
    let changes = compare_offers(&[named("a"), named("b")], &[named("b"), named("c")]);
    let seen: Vec<_> = changes.iter().map(|change| (change.item.server.as_str(), change.class)).collect();
    assert_eq!(seen, [("a", ChangeClass::Breaking), ("c", ChangeClass::Compatible)]);
    assert_eq!(compare_named_offers(&[named("a")], &[named("b")]).len(), 2);
}

#[test]
fn tools_with_the_same_name_are_compared_by_position() {
    let old = json!({"tools": [tool("a", json!({"type": "object"})), tool("a", json!({"type": "object", "title": "x"}))]});
    let new = json!({"tools": [tool("a", json!({"type": "object"})), tool("a", json!({"type": "object", "title": "y"}))]});
    assert_eq!(lines(&compare(&old, &new)), ["wording a /inputSchema/title: `title` changed"]);
}

#[test]
fn what_cannot_be_read_is_undecided() {
    let old = r#"{"tools":[{"name":"a","inputSchema":{"maximum":1e400}}]}"#;
    let new = r#"{"tools":[{"name":"a","inputSchema":{"maximum":1e500}}]}"#;
    let read = |text: &str| parse_saved_definitions(text, "s").unwrap();
    let changes = compare_offers(&read(old), &read(new));
    assert!(
        matches!(changes.as_slice(), [change] if change.class == ChangeClass::Breaking && change.undecided)
    );
    assert_eq!(compare_offers(&read(old), &read(old)), []);
}

/// Schemas that are made to keep a comparison busy.
fn hostile_schemas() -> Vec<(&'static str, Value, Value)> {
    let cycle = |length: usize, end: &str| {
        let mut definitions = serde_json::Map::new();
        for index in 0..length {
            let next = format!("#/$defs/d{}", (index + 1) % length);
            definitions
                .insert(format!("d{index}"), json!({"properties": {"a": {"$ref": next}}, "type": "object"}));
        }
        definitions.insert("end".to_owned(), json!({"type": end}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    };
    let tree = |kind: &str| {
        // Every level refers to the next one several times: 6^12 paths.
        let mut definitions = serde_json::Map::new();
        for level in 0..12 {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            let branches: Vec<Value> =
                (0..6).map(|at| json!({"properties": {format!("p{at}"): next}})).collect();
            definitions.insert(format!("l{level}"), json!({"anyOf": branches}));
        }
        definitions.insert("l12".to_owned(), json!({"type": kind}));
        json!({"$ref": "#/$defs/l0", "$defs": definitions})
    };
    let wide = |start: u64| {
        let branches: Vec<Value> =
            (start..start + 3000).map(|at| json!({"type": "object", "required": [format!("k{at}")], "properties": {format!("k{at}"): {"minimum": at}}})).collect();
        json!({"oneOf": branches})
    };
    let long_names = |kind: &str| {
        let name = "n".repeat(20_000);
        let inner: serde_json::Map<String, Value> =
            (0..20).map(|at| (format!("{name}{at}"), json!({"type": kind}))).collect();
        json!({"properties": {name: {"properties": inner}}})
    };
    let values = |start: u64| json!({"enum": (start..start + 60_000).collect::<Vec<_>>()});
    let all_of = |kind: &str| json!({"allOf": vec![json!({"properties": {"a": {"type": kind}}}); 5000]});
    vec![
        ("cycles of different lengths", cycle(97, "string"), cycle(89, "null")),
        ("a cycle without an end", json!({"$ref": "#"}), json!({"$ref": "#", "title": "x"})),
        ("a tree of references", tree("string"), tree("integer")),
        ("a wide union", wide(0), wide(5)),
        ("long names", long_names("string"), long_names("null")),
        ("many values", values(0), values(1)),
        ("many conjunctions", all_of("string"), all_of("integer")),
    ]
}

#[test]
fn hostile_schemas_are_compared_in_bounded_time() {
    for (name, old, new) in hostile_schemas() {
        let began = Instant::now();
        let changes = compare(&json!({"tools": [tool("t", old)]}), &json!({"tools": [tool("t", new)]}));
        // An unbounded comparison takes hours. This is far more than the slowest machine needs.
        assert!(began.elapsed() < Duration::from_secs(60), "{name} took {:?}", began.elapsed());
        assert!(!changes.is_empty(), "{name}");
    }
}

#[test]
fn the_reports_show_every_change_and_obey_no_server() {
    let old = json!({"tools": [{"name": "a", "description": "Old|\u{202e}<b>`x`</b>", "inputSchema": {"type": "object", "properties": {"x": {"type": "integer", "minimum": 1}}}}]});
    let new = json!({"tools": [{"name": "a", "description": "\u{1b}[31mNew", "inputSchema": {"type": "object", "properties": {"x": {"type": "integer", "minimum": 2}, "y|`[z](u)": {}}}}]});
    let changes = compare(&old, &new);
    insta::assert_snapshot!("text", render_changes_as_text(&changes, &|_, word| word.to_owned()));
    insta::assert_snapshot!("markdown", render_changes_as_markdown(&changes));
    let json = serde_json::to_string_pretty(&changes).unwrap();
    insta::assert_snapshot!("json", json.replace('\u{202e}', "(U+202E)"));
    assert_eq!(render_changes_as_text(&[], &|_, word| word.to_owned()), "no changes\n");
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        (option::of(-3_i64..3), option::of(0_u64..4), "[a-c]{0,2}").prop_map(|(least, length, word)| {
            json!({"type": ["integer", "string"], "minimum": least, "maxLength": length, "enum": [word, 1, null]})
        }),
        prop_oneof!["object", "array", "string", "null", "number"].prop_map(|kind| json!({"type": kind})),
        "#(/\\$defs/[ab])?".prop_map(|target| json!({"$ref": target})),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let key = prop_oneof!["anyOf", "oneOf", "allOf", "prefixItems"];
        prop_oneof![
            (key, collection::vec(inner.clone(), 0..4)).prop_map(|(key, list)| json!({key: list})),
            (
                prop_oneof!["items", "not", "if", "additionalProperties", "contains", "propertyNames"],
                inner.clone()
            )
                .prop_map(|(key, schema)| json!({key: schema})),
            (
                collection::btree_map("[a-d]", inner, 0..4),
                collection::vec("[a-d]", 0..3),
                option::of(any::<bool>())
            )
                .prop_map(|(properties, required, open)| {
                    json!({"properties": properties, "required": required, "additionalProperties": open})
                }),
        ]
    })
}

fn document() -> impl Strategy<Value = Value> {
    (schema(), schema(), schema()).prop_map(|(root, a, b)| match root {
        Value::Object(mut members) => {
            members.insert("$defs".to_owned(), json!({"a": a, "b": b}));
            Value::Object(members)
        }
        other => other,
    })
}

proptest! {
    #[test]
    fn a_definition_does_not_differ_from_itself(schema in document()) {
        let list = json!({"tools": [tool("t", schema.clone())]});
        assert_eq!(lines(&compare(&list, &list)), Vec::<String>::new());
        // The same as a new value, in which every address differs.
        let reordered: Value = serde_json::from_str(&schema.to_string()).unwrap();
        let found = super::schema::compare_schemas(&schema, &reordered, "/inputSchema");
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn every_pair_of_schemas_is_compared(old in document(), new in document()) {
        let changes = compare(&json!({"tools": [tool("t", old.clone())]}), &json!({"tools": [tool("t", new.clone())]}));
        assert_eq!(changes.is_empty(), old == new || changes.is_empty() && crate::canonical::canonical_text(&toolyard_hub::json::to_raw(&old)) == crate::canonical::canonical_text(&toolyard_hub::json::to_raw(&new)));
    }
}
