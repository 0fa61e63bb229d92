//! Hostile and extreme input from servers: none of it breaks the screen or blocks the UI.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolyard_hub::json::{from_text, to_raw};
use toolyard_hub::{PromptOffer, ResourceOffer, SourceOffer};

use super::stage::{Stage, tool};
use crate::log::UiLogKind;
use crate::{KeyPress, UiMessage};

fn offering(definitions: &[Value]) -> Stage {
    let mut stage = Stage::empty();
    let tools = definitions.iter().map(tool).collect();
    stage.add("odd", SourceOffer { tools, ..SourceOffer::default() }, |status| status);
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
    stage.key(KeyPress::Enter);
    let screen = stage.screen(80, 24);
    assert!(!screen.chars().any(|c| c.is_control() && c != '\n'), "{screen:?}");
    insta::assert_snapshot!("odd_names", screen);
    stage.key(KeyPress::Enter);
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
        stage.keys(&[KeyPress::Enter, KeyPress::Char('c')]);
        let screen = stage.screen(80, 24);
        assert!(screen.contains("No form available") || screen.contains("No parameters"), "{name}: {screen}");
    }
    let mut stage = with_schema(&json!({"anyOf": [{"properties": {"a": {}}}]}));
    stage.keys(&[KeyPress::Enter, KeyPress::Char('c')]);
    insta::assert_snapshot!("form_that_cannot_be", stage.screen(80, 24));
}

#[test]
fn a_schema_that_contains_itself_has_a_form_that_ends() {
    let mut stage = with_schema(&json!({
        "type": "object",
        "properties": {"value": {"type": "integer"}, "left": {"$ref": "#"}, "right": {"$ref": "#"}},
    }));
    stage
        .keys(&[KeyPress::Enter, KeyPress::Char('c'), KeyPress::Down, KeyPress::Char(' '), KeyPress::Down])
        .types("3");
    insta::assert_snapshot!("form_of_a_recursive_schema", stage.screen(80, 24));
    stage.key(KeyPress::Ctrl('s'));
    assert_eq!(stage.call().2, r#"{"left":{"value":3}}"#);
}

#[test]
fn a_schema_with_very_many_fields_is_filled_in_as_json() {
    let properties: serde_json::Map<String, Value> =
        (0..5_000).map(|at| (format!("field{at}"), json!({"type": "string"}))).collect();
    let mut stage = with_schema(&json!({"type": "object", "properties": properties}));
    stage.keys(&[KeyPress::Enter, KeyPress::Char('c')]);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("more than 400 fields"), "{screen}");
}

#[test]
fn a_tool_that_disappears_while_it_is_selected_leaves_the_cursor_where_it_was() {
    let named = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let mut stage = offering(&["a", "b", "c", "d"].map(named));
    stage.keys(&[KeyPress::Enter, KeyPress::Down, KeyPress::Down]);
    let offer = |names: &[&str]| SourceOffer {
        tools: names.iter().map(|name| tool(&named(name))).collect(),
        ..SourceOffer::default()
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
    stage.offers("odd", SourceOffer::default());
    assert_eq!(selected(&mut stage), None);
    stage.keys(&[KeyPress::Enter, KeyPress::Char('c'), KeyPress::Down]);
    assert!(stage.effects.is_empty());
}

#[test]
fn ten_thousand_tools_are_drawn_and_filtered_in_no_time() {
    let definitions: Vec<Value> = (0..10_000)
        .map(|at| json!({"name": format!("tool_{at}"), "description": format!("Does thing number {at} in some way"), "inputSchema": {"type": "object"}}))
        .collect();
    let mut stage = offering(&definitions);
    stage.key(KeyPress::Enter);
    stage.screen(120, 40);
    let began = Instant::now();
    for _ in 0..100 {
        stage.key(KeyPress::PageDown);
        stage.screen(120, 40);
    }
    let scrolled = began.elapsed() / 100;
    let began = Instant::now();
    stage.key(KeyPress::Char('/')).types("number 999");
    let typed = began.elapsed() / 10;
    let screen = stage.screen(120, 40);
    assert!(screen.contains("Tools 19/10000"), "{screen}");
    // A frame is 33 ms; this is an unoptimized build on a shared machine.
    assert!(scrolled < Duration::from_millis(60), "a page takes {scrolled:?}");
    assert!(typed < Duration::from_millis(120), "a letter takes {typed:?}");
}

#[test]
fn a_result_of_fifty_megabytes_is_folded_and_found_through() {
    let mut stage = with_schema(&json!({"type": "object"}));
    stage.keys(&[KeyPress::Enter, KeyPress::Char('c'), KeyPress::Ctrl('s')]);
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
    stage.keys(&[KeyPress::Down, KeyPress::Down, KeyPress::Enter, KeyPress::Down, KeyPress::Enter]);
    insta::assert_snapshot!("result_of_fifty_megabytes_unfolded", stage.screen(80, 24));
    stage.keys(&[KeyPress::Char('/')]).types("row number 30000\"").key(KeyPress::Enter);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("row number 30000"), "{screen}");
    stage.keys(&[KeyPress::Char('/')]).types("words").key(KeyPress::Enter).key(KeyPress::Enter);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("words words"), "{screen}");
    stage.keys(&[KeyPress::PageDown; 20]);
    stage.screen(80, 24);
    // Generous limits for an unoptimized build; laying out everything would take minutes.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn a_flood_of_log_lines_is_bounded() {
    let mut stage = Stage::usual();
    for _ in 0..100 {
        stage.logs(&[(UiLogKind::Stderr, Some("files"), "again and again"); 500]);
    }
    stage.key(KeyPress::Char('L'));
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
    let screens: [&[KeyPress]; 6] = [
        &[KeyPress::Enter],
        &[KeyPress::Enter],
        &[KeyPress::Char('c')],
        &[KeyPress::Ctrl('s')],
        &[KeyPress::Esc, KeyPress::Char('?')],
        &[KeyPress::Esc, KeyPress::Esc, KeyPress::Char('L')],
    ];
    for keys in screens {
        stage.keys(keys);
        for (columns, lines) in [(40, 10), (41, 12), (60, 15), (300, 100), (40, 100), (300, 10)] {
            stage.screen(columns, lines);
        }
    }
}

#[test]
fn malformed_results_are_shown() {
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
        stage.keys(&[KeyPress::Enter, KeyPress::Char('c'), KeyPress::Ctrl('s')]);
        stage.answers_text(body.to_owned());
        let screen = stage.screen(80, 24);
        assert!(screen.contains("succeeded"), "{body}: {screen}");
        stage.keys(&[
            KeyPress::Tab,
            KeyPress::Enter,
            KeyPress::Down,
            KeyPress::Char('s'),
            KeyPress::Char('/'),
            KeyPress::Char('x'),
            KeyPress::Enter,
        ]);
        stage.screen(80, 24);
    }
}

#[test]
fn messages_about_unknown_calls_change_nothing() {
    let mut stage = Stage::usual();
    let before = stage.screen(80, 24);
    let id = crate::CallId(99);
    let question = toolyard_hub::Question {
        key: "q".to_owned(),
        kind: toolyard_hub::QuestionKind::ElicitUrl,
        params: from_text("[]".to_owned()),
    };
    stage.tell(UiMessage::Call(id, crate::UiCallUpdate::Questions(crate::QuestionId(1), Vec::new())));
    stage.tell(UiMessage::Call(id, crate::UiCallUpdate::Questions(crate::QuestionId(2), vec![question])));
    stage.tell(UiMessage::Call(id, crate::UiCallUpdate::QuestionsWithdrawn(crate::QuestionId(2))));
    let outcome = toolyard_hub::Outcome::success(from_text("{}".to_owned()));
    stage.tell(UiMessage::Call(id, crate::UiCallUpdate::Ended(Ok(outcome), Duration::ZERO)));
    assert_eq!(stage.screen(80, 24), before);
}

#[test]
fn the_filter_finds_titles() {
    let mut stage = Stage::empty();
    let offer = SourceOffer {
        tools: vec![
            tool(&json!({"name": "wx_01", "title": "Weather map", "inputSchema": {"type": "object"}})),
            tool(
                &json!({"name": "wx_02", "annotations": {"title": "Tide table"}, "inputSchema": {"type": "object"}}),
            ),
            tool(
                &json!({"name": "wx_03", "description": "Weather in words", "inputSchema": {"type": "object"}}),
            ),
        ],
        prompts: vec![PromptOffer {
            definition: to_raw(&json!({"name": "p1", "title": "Weather report"})),
            permissions: Vec::new(),
        }],
        resources: vec![ResourceOffer {
            definition: to_raw(&json!({"uri": "wx://1", "name": "r1", "title": "Weather station"})),
            permissions: Vec::new(),
        }],
        ..SourceOffer::default()
    };
    stage.add("wx", offer, |status| status);
    stage.key(KeyPress::Enter).key(KeyPress::Char('/')).types("weather map");
    let screen = stage.screen(80, 24);
    assert!(screen.contains("Tools 1/3") && screen.contains("wx_01"), "{screen}");
    assert!(!screen.contains("wx_03"), "{screen}");
    stage.key(KeyPress::Esc).key(KeyPress::Char('/')).types("weather");
    let screen = stage.screen(80, 24);
    // A match in a title ranks before one in a description. The title is shown, so that the match
    // is visible.
    let (first, second) = (screen.find("wx_01").unwrap(), screen.find("wx_03").unwrap());
    assert!(first < second && screen.contains("Weather map"), "{screen}");
    assert!(screen.contains("Resources 1/1") && screen.contains("Prompts 1/1"), "{screen}");
    stage.key(KeyPress::Esc).key(KeyPress::Char('/')).types("tide");
    assert!(stage.screen(80, 24).contains("wx_02"));
}

#[test]
fn columns_keep_eight_letters_of_a_servers_name() {
    let mut stage = Stage::empty();
    let long = json!({"name": "t".repeat(64), "title": "T", "description": "d".repeat(300), "inputSchema": {"type": "object"}});
    for name in ["warehouse-berlin", "warehouse-zurich", "files"] {
        stage.add(name, SourceOffer { tools: vec![tool(&long)], ..SourceOffer::default() }, |status| status);
    }
    for columns in [50, 60, 80, 100, 109, 110, 120, 160, 240] {
        let screen = stage.screen(columns, 24);
        assert_eq!(screen.matches("warehous").count(), 2, "servers at {columns}:\n{screen}");
    }
    stage.key(KeyPress::Enter);
    for columns in [40, 60, 80, 100, 109, 110, 120, 160, 240] {
        let screen = stage.screen(columns, 24);
        // The area beside the list describes one of them.
        let list: Vec<&str> = screen.lines().map(|line| line.split('│').next().unwrap()).collect();
        let of = |name: &str| list.iter().filter(|line| line.contains(name)).count();
        assert_eq!((of("warehous"), of("files")), (2, 1), "tools at {columns}:\n{screen}");
    }
}
