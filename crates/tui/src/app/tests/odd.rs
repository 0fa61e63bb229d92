//! What strangers can send: none of it breaks the screen, and none of it takes for ever.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolyard_hub::Offer;
use toolyard_hub::json::from_text;

use super::stage::{Stage, tool};
use crate::log::EntryKind;
use crate::{Key, Message};

fn offering(definitions: &[Value]) -> Stage {
    let mut stage = Stage::empty();
    let tools = definitions.iter().map(tool).collect();
    stage.add("odd", Offer { tools, ..Offer::default() }, |status| status);
    stage
}

fn with_schema(schema: &Value) -> Stage {
    offering(&[json!({"name": "t", "inputSchema": schema, "annotations": {"readOnlyHint": true}})])
}

#[test]
fn names_with_emoji_other_scripts_and_escapes_do_not_break_the_screen() {
    let mut stage = offering(&[
        json!({"name": "👩‍👩‍👧 family 🇨🇭", "description": "emoji 🎉 and 日本語 wide", "inputSchema": {"type": "object"}}),
        json!({"name": "שלום עולם", "description": "right to left", "inputSchema": {"type": "object"}}),
        json!({"name": "\u{1b}[2J\u{1b}[Hgone", "description": "clears\u{7} the screen", "inputSchema": {"type": "object"}}),
        json!({"name": "gpj.\u{202e}exe", "description": "turned\u{2066} round", "inputSchema": {"type": "object"}}),
        json!({"name": "tab\tand\nbreak", "description": "a\nb", "inputSchema": {"type": "object"}}),
        json!({"name": "x".repeat(300), "description": "y".repeat(5000), "inputSchema": {"type": "object"}}),
    ]);
    stage.key(Key::Enter);
    let screen = stage.screen(80, 24);
    assert!(!screen.chars().any(|c| c.is_control() && c != '\n'), "{screen:?}");
    insta::assert_snapshot!("odd_names", screen);
    stage.key(Key::Enter);
    insta::assert_snapshot!("odd_details", stage.screen(80, 24));
}

#[test]
fn schemas_that_no_form_can_show_are_filled_in_as_json() {
    for (name, schema) in [
        ("recursive", json!({"$ref": "#"})),
        ("a list", json!({"type": "array", "items": {"type": "string"}})),
        ("alternatives", json!({"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]})),
        ("true", json!(true)),
        ("no properties", json!({"type": "object", "properties": 7})),
    ] {
        let mut stage = with_schema(&schema);
        stage.keys(&[Key::Enter, Key::Char('c')]);
        let screen = stage.screen(80, 24);
        assert!(screen.contains("There is no form") || screen.contains("no parameters"), "{name}: {screen}");
    }
    let mut stage = with_schema(&json!({"anyOf": [{"properties": {"a": {}}}]}));
    stage.keys(&[Key::Enter, Key::Char('c')]);
    insta::assert_snapshot!("form_that_cannot_be", stage.screen(80, 24));
}

#[test]
fn a_schema_that_contains_itself_has_a_form_that_ends() {
    let mut stage = with_schema(&json!({
        "type": "object",
        "properties": {"value": {"type": "integer"}, "left": {"$ref": "#"}, "right": {"$ref": "#"}},
    }));
    stage.keys(&[Key::Enter, Key::Char('c'), Key::Down, Key::Char(' '), Key::Down]).types("3");
    insta::assert_snapshot!("form_of_a_recursive_schema", stage.screen(80, 24));
    stage.key(Key::Ctrl('s'));
    assert_eq!(stage.call().2, r#"{"left":{"value":3}}"#);
}

#[test]
fn a_schema_with_very_many_fields_is_filled_in_as_json() {
    let properties: serde_json::Map<String, Value> =
        (0..5_000).map(|at| (format!("field{at}"), json!({"type": "string"}))).collect();
    let mut stage = with_schema(&json!({"type": "object", "properties": properties}));
    stage.keys(&[Key::Enter, Key::Char('c')]);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("more than 400 fields"), "{screen}");
}

#[test]
fn a_tool_that_disappears_while_it_is_selected_leaves_the_cursor_where_it_was() {
    let named = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let mut stage = offering(&["a", "b", "c", "d"].map(named));
    stage.keys(&[Key::Enter, Key::Down, Key::Down]);
    let offer = |names: &[&str]| Offer {
        tools: names.iter().map(|name| tool(&named(name))).collect(),
        ..Offer::default()
    };
    let selected = |stage: &mut Stage| {
        let screen = stage.screen(80, 24);
        screen.lines().find(|line| line.contains('▌')).map(|line| line.trim_matches(['▌', ' ']).to_owned())
    };
    assert_eq!(selected(&mut stage).as_deref(), Some("c"));
    stage.offers("odd", offer(&["new", "a", "b", "c", "d"]));
    assert_eq!(selected(&mut stage).as_deref(), Some("c"));
    stage.offers("odd", offer(&["a", "b"]));
    assert_eq!(selected(&mut stage).as_deref(), Some("b"));
    stage.offers("odd", Offer::default());
    assert_eq!(selected(&mut stage), None);
    stage.keys(&[Key::Enter, Key::Char('c'), Key::Down]);
    assert!(stage.wanted.is_empty());
}

#[test]
fn ten_thousand_tools_are_drawn_and_filtered_in_no_time() {
    let definitions: Vec<Value> = (0..10_000)
        .map(|at| json!({"name": format!("tool_{at}"), "description": format!("Does thing number {at} in some way"), "inputSchema": {"type": "object"}}))
        .collect();
    let mut stage = offering(&definitions);
    stage.key(Key::Enter);
    stage.screen(120, 40);
    let began = Instant::now();
    for _ in 0..100 {
        stage.key(Key::PageDown);
        stage.screen(120, 40);
    }
    let scrolled = began.elapsed() / 100;
    let began = Instant::now();
    stage.key(Key::Char('/')).types("number 999");
    let typed = began.elapsed() / 10;
    let screen = stage.screen(120, 40);
    assert!(screen.contains("Tools 19/10000"), "{screen}");
    // A frame is 33 ms; this is an unoptimised build on a machine that does other things too.
    assert!(scrolled < Duration::from_millis(60), "a page takes {scrolled:?}");
    assert!(typed < Duration::from_millis(120), "a letter takes {typed:?}");
}

#[test]
fn a_result_of_fifty_megabytes_is_folded_and_found_through() {
    let mut stage = with_schema(&json!({"type": "object"}));
    stage.keys(&[Key::Enter, Key::Char('c'), Key::Ctrl('s')]);
    let row = |at: usize| format!(r#"{{"id":{at},"name":"row number {at}","more":"{}"}}"#, "x".repeat(960));
    let rows: Vec<String> = (0..40_000).map(row).collect();
    let text = "words ".repeat(2_000_000);
    let body = format!(
        r#"{{"structuredContent":{{"rows":[{}]}},"content":[{{"type":"text","text":"{text}"}}]}}"#,
        rows.join(",")
    );
    assert!(body.len() > 50_000_000, "{}", body.len());
    stage.answers_text(body);
    let began = Instant::now();
    insta::assert_snapshot!("result_of_fifty_megabytes", stage.screen(80, 24));
    stage.keys(&[Key::Down, Key::Down, Key::Enter, Key::Down, Key::Enter]);
    insta::assert_snapshot!("result_of_fifty_megabytes_unfolded", stage.screen(80, 24));
    stage.keys(&[Key::Char('/')]).types("row number 30000\"").key(Key::Enter);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("row number 30000"), "{screen}");
    stage.keys(&[Key::Char('/')]).types("words").key(Key::Enter).key(Key::Enter);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("words words"), "{screen}");
    stage.keys(&[Key::PageDown; 20]);
    stage.screen(80, 24);
    // Unoptimised, and without haste; laying all of it out would take minutes.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn a_flood_of_log_lines_is_bounded() {
    let mut stage = Stage::usual();
    for _ in 0..100 {
        stage.logs(&[(EntryKind::Stderr, Some("files"), "again and again"); 500]);
    }
    stage.key(Key::Char('L'));
    let began = Instant::now();
    let screen = stage.screen(80, 24);
    assert!(screen.contains("again and again"));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn every_size_of_terminal_can_be_drawn_on() {
    let mut stage = Stage::usual();
    for (columns, lines) in [(1, 1), (2, 50), (200, 1), (20, 5), (40, 10), (41, 11), (80, 24), (300, 100)] {
        stage.screen(columns, lines);
    }
    let screens: [&[Key]; 6] = [
        &[Key::Enter],
        &[Key::Enter],
        &[Key::Char('c')],
        &[Key::Ctrl('s')],
        &[Key::Esc, Key::Char('?')],
        &[Key::Esc, Key::Esc, Key::Char('L')],
    ];
    for keys in screens {
        stage.keys(keys);
        for (columns, lines) in [(40, 10), (41, 12), (60, 15), (300, 100), (40, 100), (300, 10)] {
            stage.screen(columns, lines);
        }
    }
}

#[test]
fn answers_that_are_no_answers_are_shown_all_the_same() {
    for body in [
        r#"null"#,
        r#"[1,2]"#,
        r#""text""#,
        r#"{"content":7}"#,
        r#"{"content":[7,null,{}]}"#,
        r#"{"messages":[{}]}"#,
        r#"{"contents":[{"uri":7}]}"#,
    ] {
        let mut stage = with_schema(&json!({"type": "object"}));
        stage.keys(&[Key::Enter, Key::Char('c'), Key::Ctrl('s')]);
        stage.answers_text(body.to_owned());
        let screen = stage.screen(80, 24);
        assert!(screen.contains("answered"), "{body}: {screen}");
        stage.keys(&[
            Key::Tab,
            Key::Enter,
            Key::Down,
            Key::Char('s'),
            Key::Char('/'),
            Key::Char('x'),
            Key::Enter,
        ]);
        stage.screen(80, 24);
    }
}

#[test]
fn messages_about_calls_that_nobody_made_change_nothing() {
    let mut stage = Stage::usual();
    let before = stage.screen(80, 24);
    let id = crate::CallId(99);
    let question = toolyard_hub::Question {
        key: "q".to_owned(),
        kind: toolyard_hub::QuestionKind::ElicitUrl,
        params: from_text("[]".to_owned()),
    };
    stage.tell(Message::Call(id, crate::News::Asked(crate::AskId(1), Vec::new())));
    stage.tell(Message::Call(id, crate::News::Asked(crate::AskId(2), vec![question])));
    stage.tell(Message::Call(id, crate::News::Unasked(crate::AskId(2))));
    let outcome = toolyard_hub::Outcome::success(from_text("{}".to_owned()));
    stage.tell(Message::Call(id, crate::News::Ended(Ok(outcome), Duration::ZERO)));
    assert_eq!(stage.screen(80, 24), before);
}
