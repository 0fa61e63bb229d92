//! Tests of folding and searching JSON.

use super::tree::ResultTree;
use super::{SearchDirection, SearchStart};

fn tree(text: &str) -> ResultTree {
    ResultTree::new(text.into())
}

#[test]
fn json_is_shown_in_lines_and_folds() {
    let mut tree = tree(r#" {"a": [1, "two", {}], "b": {"c": null}, "d": []} "#);
    assert_eq!(
        tree.dump(),
        [
            "{",
            "  a: [",
            "    1",
            "    \"two\"",
            "    {}",
            "  ]",
            "  b: {",
            "    c: null",
            "  }",
            "  d: []",
            "}"
        ]
    );
    assert_eq!(tree.close(2), 1);
    assert_eq!(tree.dump()[1], "  a: [ … ]  14 B");
    tree.toggle(1);
    tree.fold_all();
    assert_eq!(tree.dump(), ["{", "  a: [ … ]  14 B", "  b: { … }  11 B", "  d: []", "}"]);
}

#[test]
fn long_lists_are_looked_up_step_by_step() {
    let numbers: Vec<String> = (0..1200).map(|n| n.to_string()).collect();
    let mut tree = tree(&format!("[{}]", numbers.join(",")));
    assert_eq!(tree.len(), 503);
    assert!(tree.dump()[501].contains("more; press Enter to show the next 500"), "{:?}", tree.dump()[501]);
    tree.toggle(501);
    assert_eq!(tree.len(), 1003);
    tree.toggle(1001);
    assert_eq!((tree.len(), tree.dump()[1200].as_str()), (1202, "  1199"));
}

#[test]
fn what_is_found_is_opened() {
    let big: Vec<String> =
        (0..3000).map(|n| format!(r#"{{"id":{n},"deep":{{"name":"item {n}"}}}}"#)).collect();
    let mut tree = tree(&format!(r#"{{"items":[{}]}}"#, big.join(",")));
    let line = tree.find("item 2900", None, SearchDirection::Down, SearchStart::Here).unwrap();
    assert_eq!(tree.dump()[line].trim(), r#"name: "item 2900""#);
    let next = tree.find("item 290", Some(line), SearchDirection::Down, SearchStart::After).unwrap();
    assert_eq!(tree.dump()[next].trim(), r#"name: "item 2901""#);
    let before = tree.find("item 290", Some(next), SearchDirection::Up, SearchStart::After).unwrap();
    assert_eq!(tree.dump()[before].trim(), r#"name: "item 2900""#);
    assert_eq!(tree.find("nowhere", None, SearchDirection::Down, SearchStart::Here), None);
    // Names are searched too.
    assert_eq!(tree.find("items", None, SearchDirection::Down, SearchStart::Here), Some(1));
}

#[test]
fn text_that_is_not_json_is_one_line() {
    for odd in ["", "oops", "\"", "[1,", "{\"a\"", "{\"a\":", "]"] {
        let tree = tree(odd);
        assert!(tree.len() >= 1, "{odd}");
        let _ = tree.dump();
    }
}

#[test]
fn long_texts_open_by_themselves() {
    let tree = tree(r#"{"short":"x","long":"one\ntwo"}"#);
    assert_eq!(tree.long_text(1), None);
    let (name, text) = tree.long_text(2).unwrap();
    assert_eq!((name.as_str(), &*text), ("long", "one\ntwo"));
}
