//! Reading files: pitfalls of YAML, limits, references to other files.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{DocumentLimits, DocumentLocation, LoadError, LoadSettings, SpecDocument, load};

fn text(text: &str) -> Result<SpecDocument, LoadError> {
    load(&DocumentLocation::Text { text: text.to_owned(), folder: None }, &LoadSettings::default())
}

/// The value of `x:` in an otherwise valid document.
#[track_caller]
fn yaml(source: &str) -> Value {
    read(source).0
}

#[track_caller]
fn read(source: &str) -> (Value, Vec<String>) {
    let document = text(&format!("openapi: 3.1.0\npaths: {{}}\n{source}\n")).unwrap();
    let found =
        document.diagnostics.iter().map(|found| format!("{} {}", found.code, found.pointer)).collect();
    (document.value().get("x").cloned().unwrap_or(Value::Null), found)
}

#[test]
fn words_that_older_yaml_took_for_booleans_stay_strings() {
    assert_eq!(
        yaml("x: {name: y, list: [on, off, yes, No, n, Y], real: [true, False, TRUE]}"),
        json!({"name": "y", "list": ["on", "off", "yes", "No", "n", "Y"], "real": [true, false, true]})
    );
}

#[test]
fn keys_are_always_strings() {
    assert_eq!(
        yaml("x: {404: a, true: b, null: c, 1.10: d, ~: e, on: f}"),
        json!({"404": "a", "true": "b", "null": "c", "1.10": "d", "~": "e", "on": "f"})
    );
}

#[test]
fn numbers_keep_their_value() {
    assert_eq!(yaml("x: 9223372036854775808"), json!(9_223_372_036_854_775_808_u64));
    assert_eq!(yaml("x: -9223372036854775808"), json!(i64::MIN));
    assert_eq!(yaml("x: 18446744073709551616"), json!(18_446_744_073_709_551_616_f64));
    assert_eq!(
        yaml("x: [012, +5, 0o14, 0xff, 1e3, .5, 5., -0.5]"),
        json!([12, 5, 12, 255, 1e3, 0.5, 5.0, -0.5])
    );
    assert_eq!(yaml("x: [1e400, -1e400]"), json!([f64::MAX, f64::MIN]));
}

#[test]
fn what_only_looks_like_a_number_is_a_string() {
    assert_eq!(
        yaml("x: [10_003, 1:30, 0b1, 1.2.3, '5', \"6\", e5, ., .inf, .nan, 0x, 1e]"),
        json!(["10_003", "1:30", "0b1", "1.2.3", "5", "6", "e5", ".", ".inf", ".nan", "0x", "1e"])
    );
}

#[test]
fn dates_are_strings() {
    assert_eq!(yaml("x: [2024-01-31, 2024-01-31T12:00:00Z]"), json!(["2024-01-31", "2024-01-31T12:00:00Z"]));
}

#[test]
fn a_tab_inside_a_block_is_kept() {
    assert_eq!(yaml("x: |\n  a\tb\n  \tc\n"), json!("a\tb\n\tc\n"));
    assert_eq!(yaml("x: >-\n  a\tb\n  c"), json!("a\tb c"));
}

#[test]
fn anchors_aliases_and_merges_mean_what_they_stand_for() {
    assert_eq!(
        yaml("y: &base {a: 1, b: 2}\nz: &more {c: 3, a: 9}\nx: {<<: [*base, *more], b: 5, again: *base}"),
        json!({"b": 5, "again": {"a": 1, "b": 2}, "a": 1, "c": 3})
    );
    assert_eq!(yaml("x: [&name hello, {*name : 1}]"), json!(["hello", {"hello": 1}]));
    assert_eq!(read("x: {<<: 5, a: 1}"), (json!({"a": 1}), vec!["odd-merge /x".to_owned()]));
}

#[test]
fn tags_say_what_a_scalar_is() {
    assert_eq!(yaml("x: [!!str 404, !!int '12', !odd thing]"), json!(["404", 12, "thing"]));
}

#[test]
fn a_key_that_is_there_twice_is_reported() {
    let twice = (json!({"a": 2}), vec!["duplicate-key /x/a".to_owned()]);
    assert_eq!(read("x: {a: 1, a: 2}"), twice);
    let document = text(r#"{"openapi": "3.0.0", "paths": {}, "x": {"a": 1, "a": 2}}"#).unwrap();
    assert_eq!(document.diagnostics[0].pointer, "/x/a");
    assert_eq!(document.value()["x"], json!({"a": 2}));
}

#[test]
fn a_key_that_is_a_list_or_a_map_is_left_out_and_reported() {
    assert_eq!(read("x: {a: 1, [b, c]: 2}"), (json!({"a": 1}), vec!["odd-key /x".to_owned()]));
}

#[test]
fn a_closing_bracket_may_stand_below_its_key() {
    assert_eq!(
        read("x:\n  a: [\n    'b'\n  ]\n  c: {\n    d: 1\n  }"),
        (json!({"a": ["b"], "c": {"d": 1}}), vec!["odd-indentation ".to_owned()])
    );
}

#[test]
fn a_closing_bracket_that_closes_nothing_is_refused() {
    for source in ["x: b\n]\n", "x: [b]\n]\n", "x:\n  a: {c: [d]}\n  e: f\n]\n", "x: '['\n]\n"] {
        let refused = text(&format!("openapi: 3.0.0\npaths: {{}}\n{source}"));
        assert!(matches!(refused, Err(LoadError::NotReadAsJsonOrYaml { .. })), "{source}");
    }
    // An open collection is read, however far it is indented.
    assert_eq!(
        yaml("x:\n  a: {c: [d, '[', e: {\n    f: g\n  }]\n  }"),
        json!({"a": {"c": ["d", "[", {"e": {"f": "g"}}]}})
    );
}

#[test]
fn further_lines_of_a_quoted_text_may_stand_left_of_its_key() {
    assert_eq!(
        yaml("x:\n  - a: 'one\n  it''s two\n\n three '\n    b: \"four\n\\\"five\\\"\"\n    c: 1"),
        json!([{"a": "one it's two\nthree ", "b": "four \"five\"", "c": 1}])
    );
    // As in a list of lists, which has several levels on one line.
    assert_eq!(yaml("x:\n  - - - a: 'one\n  two'\n        b: 2"), json!([[[{"a": "one two", "b": 2}]]]));
}

#[test]
fn a_hundred_quoted_texts_that_are_not_indented_are_read() {
    let items: String = (0..100).map(|n| format!("  - k: 'one\n {n}'\n")).collect();
    let expected: Vec<Value> = (0..100).map(|n| json!({"k": format!("one {n}")})).collect();
    assert_eq!(yaml(&format!("x:\n{items}")), Value::from(expected));
}

#[test]
fn a_quoted_text_whose_indentation_would_fill_the_memory_is_refused() {
    let far = " ".repeat(100_000);
    let error = text(&format!("openapi: 3.0.0\npaths: {{}}\nx:\n{far}a: 'one{}'\n", "\n ".repeat(1_000)));
    assert_eq!(
        error.unwrap_err().to_string(),
        "the document is neither JSON nor YAML: invalid indentation in quoted scalar at line 4 column 100004"
    );
}

#[test]
fn only_the_first_document_of_a_stream_is_read() {
    let (value, found) = read("x: 1\n---\nx: 2");
    assert_eq!((value, found), (json!(1), vec!["second-document ".to_owned()]));
}

#[test]
fn an_alias_inside_what_it_repeats_is_left_out() {
    assert_eq!(read("x: &x [1, *x]"), (json!([1, null]), vec!["alias-cycle /x/1".to_owned()]));
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = "openapi: 3.0.0\npaths: {}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    let error = text(&bomb).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the document exceeds the limit of 6000000 values (each use of an alias counts)"
    );
}

#[test]
fn deep_nesting_is_left_out_and_the_rest_is_read() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let document =
        text(&format!(r#"{{"openapi": "3.0.0", "paths": {{}}, "deep": {deep}, "x": 1}}"#)).unwrap();
    assert_eq!(document.value()["x"], json!(1));
    let codes: Vec<&str> = document.diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, ["too-deep"]);
    assert!(document.diagnostics[0].pointer.starts_with("/deep/0/0/"));
    let block: String = (0..400).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let document =
        text(&format!("openapi: 3.0.0\npaths: {{}}\ndeep:\n {}", block.replace('\n', "\n "))).unwrap();
    assert_eq!(document.diagnostics.iter().map(|found| found.code).collect::<Vec<_>>(), ["too-deep"]);
}

/// JSON that is pasted below a comment or below a YAML key.
#[test]
fn brackets_in_yaml_that_are_too_deep_are_left_out_and_the_rest_is_read() {
    let deep = |text: &str| format!("{}{text}{}", "[\n{\"a]\": ".repeat(400), "}]".repeat(400));
    for inside in ["1", r#""]\"}]""#, "it's # ]\n", "'it''s ['", "[], {}, [[]]"] {
        let (first, second) = (deep(inside), deep("null"));
        let source = format!(
            "# pasted\n{{\"openapi\": \"3.0.0\", \"paths\": {{}}, \"one\": {first}, \"two\": {second}, \"x\": 1}}"
        );
        let document = text(&source).unwrap();
        assert_eq!(document.value()["x"], json!(1), "{inside}");
        let codes: Vec<&str> = document.diagnostics.iter().map(|found| found.code).collect();
        assert_eq!(codes, ["too-deep", "too-deep"], "{inside}");
    }
    let below = format!("openapi: 3.0.0\npaths: {{}}\none: {}\ntwo: {}\nx: 1\n", deep("1"), deep("2"));
    let document = text(&below.replace("[\n", "[\n ")).unwrap();
    assert_eq!(document.value()["x"], json!(1));
    let many: String = (0..20).map(|n| format!("\nk{n}: {}", deep("1").replace('\n', ""))).collect();
    assert_eq!(text(&format!("openapi: 3.0.0\npaths: {{}}{many}\nx: 1\n")).unwrap().value()["x"], json!(1));
}

#[test]
fn flow_collections_of_yaml_that_never_end_are_refused() {
    let error = text(&format!("openapi: 3.0.0\npaths: {{}}\nx: {}", "[".repeat(100_000))).unwrap_err();
    assert!(matches!(error, LoadError::NotReadAsJsonOrYaml { .. }), "{error}");
}

#[test]
fn json_that_is_not_quite_json_is_read_as_yaml() {
    let document = text("{\"openapi\": \"3.0.0\", \"paths\": {}, # why\n \"x\": 1e400,}").unwrap();
    assert_eq!(document.value()["x"], json!(f64::MAX));
}

#[test]
fn other_encodings_are_read() {
    let source = "\u{feff}{\"openapi\": \"3.0.0\", \"paths\": {}, \"x\": \"ä\"}";
    let wide: Vec<u8> = source.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let folder = tempdir("encodings");
    std::fs::write(folder.join("wide.json"), wide).unwrap();
    std::fs::write(folder.join("latin.yaml"), b"openapi: 3.0.0\npaths: {}\nx: \xe4\n").unwrap();
    assert_eq!(file(&folder.join("wide.json")).unwrap().value()["x"], json!("ä"));
    let latin = file(&folder.join("latin.yaml")).unwrap();
    assert_eq!(latin.value()["x"], json!("\u{fffd}"));
    assert_eq!(latin.diagnostics[0].code, "not-utf-8");
}

#[test]
fn what_is_not_openapi_is_refused_by_name() {
    for (source, ending) in [
        ("", "neither JSON nor YAML: it is empty"),
        ("# nothing\n", "neither JSON nor YAML: it has no content"),
        ("[1]", "is not an OpenAPI document: it is an array, not an object"),
        ("<html></html>", "is not an OpenAPI document: it is HTML or XML"),
        ("just words", "is not an OpenAPI document: it is a string, not an object"),
        ("{\"asyncapi\": \"3.0.0\"}", "is not an OpenAPI document: it is an AsyncAPI document"),
        (
            "{\"swaggerVersion\": \"1.2\"}",
            "is not an OpenAPI document: it is a Swagger 1 document; convert it to Swagger 2 or OpenAPI 3 first",
        ),
        (
            "{\"a\": 1, \"b\": 2}",
            "is not an OpenAPI document: it has neither `openapi` nor `swagger`; its keys are a, b",
        ),
        (
            "swagger: '1.2'",
            "is not an OpenAPI document: version 1.2 is not supported; expected 2.0 or 3.0 to 3.2",
        ),
    ] {
        let error = text(source).unwrap_err().to_string();
        assert!(error.ends_with(ending), "{source}: {error}");
    }
    let error = text("{\"openapi\": [}").unwrap_err().to_string();
    assert!(error.contains("as JSON: expected value at line 1 column 14"), "{error}");
}

#[test]
fn a_document_without_a_version_is_taken_and_one_from_the_future_too() {
    assert_eq!(text("paths: {}").unwrap().diagnostics[0].code, "no-version");
    assert_eq!(text("openapi: 4.0.0\npaths: {}").unwrap().diagnostics[0].code, "unknown-version");
    assert_eq!(text("swagger: 2.0\npaths: {}").unwrap().dialect(), "2.0");
}

#[test]
fn too_large_a_file_is_refused() {
    let limits = DocumentLimits { bytes: 10, ..DocumentLimits::default() };
    let location = DocumentLocation::Text { text: "openapi: 3.0.0\npaths: {}".to_owned(), folder: None };
    let error = load(&location, &LoadSettings { limits, ..LoadSettings::default() }).unwrap_err();
    assert_eq!(error.to_string(), "the document exceeds the limit of 10 bytes");
}

fn tempdir(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("toolyard-openapi-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn file(path: &Path) -> Result<SpecDocument, LoadError> {
    load(&DocumentLocation::File(path.to_owned()), &LoadSettings::default())
}

#[test]
fn references_lead_to_files_below_the_folder_and_nowhere_else() {
    let root = tempdir("references");
    let folder = root.join("api");
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    std::fs::write(root.join("secret.yaml"), "a: 1").unwrap();
    std::os::unix::fs::symlink(root.join("secret.yaml"), folder.join("link.yaml")).unwrap();
    std::fs::write(folder.join("sub/pet name.yaml"), "Pet: {$ref: '../main.yaml#/x/deep'}").unwrap();
    let main = "openapi: 3.0.0\npaths: {}\nx: {deep: 1, refs: [{$ref: 'sub/pet%20name.yaml#/Pet'}, \
                {$ref: link.yaml}, {$ref: ../secret.yaml}, {$ref: none.yaml}, {$ref: 'http://127.0.0.1:1/x'}]}";
    std::fs::write(folder.join("main.yaml"), main).unwrap();
    let document = file(&folder.join("main.yaml")).unwrap();
    let find = |part, reference: &str| match document.index.find(&document.parts, part, reference) {
        Ok(target) => format!("{} {}", target.part, target.pointer),
        Err(reason) => reason,
    };
    assert_eq!(find(0, "sub/pet%20name.yaml#/Pet"), "1 /Pet");
    assert_eq!(find(1, "../main.yaml#/x/deep"), "0 /x/deep");
    assert_eq!(find(0, "link.yaml"), "the file is outside the document's folder");
    assert_eq!(find(0, "../secret.yaml"), "the file is outside the document's folder");
    assert_eq!(find(0, "none.yaml"), "No such file or directory (os error 2)");
    assert_eq!(find(0, "http://127.0.0.1:1/x"), "network references are disabled");
    assert_eq!(find(0, "#/x/none"), "the target does not exist");
}

#[test]
fn references_to_the_network_are_followed_when_that_is_switched_on() {
    let fetch = |url: &str| match url {
        "https://example.org/api/main.yaml" => {
            Ok(b"openapi: 3.0.0\npaths: {}\nx: {$ref: 'other.json#/a'}".to_vec())
        }
        "https://example.org/api/other.json" => Ok(b"{\"a\": 1}".to_vec()),
        _ => Err("not there".to_owned()),
    };
    let location = DocumentLocation::Url("https://example.org/api/main.yaml".to_owned());
    let settings = LoadSettings {
        fetch: Some(Arc::new(fetch)),
        follow_network_references: true,
        ..LoadSettings::default()
    };
    let document = load(&location, &settings).unwrap();
    assert_eq!(document.origin(), Some("https://example.org/api/main.yaml"));
    let target = document.index.find(&document.parts, 0, "other.json#/a").unwrap();
    assert_eq!((target.part, target.pointer.as_str()), (1, "/a"));
    let off = LoadSettings { follow_network_references: false, ..settings };
    let document = load(&location, &off).unwrap();
    assert_eq!(
        document.index.find(&document.parts, 0, "other.json#/a").unwrap_err(),
        "network references are disabled"
    );
    let error = load(&location, &LoadSettings::default()).unwrap_err().to_string();
    assert_eq!(error, "cannot read https://example.org/api/main.yaml: network access is not available");
}
