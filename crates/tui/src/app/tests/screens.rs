//! Snapshots of every view in every state.

use serde_json::json;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    ErrorKind, HubError, LogLevel, LogLine, Outcome, Progress, Question, QuestionKind, SourceState,
};

use super::stage::Stage;
use crate::log::UiLogKind::{Event, Own, Received, Sent, Stderr};
use crate::{KeyPress, QuestionId, UiCallUpdate};

/// Compares the screen at 80x24 with the snapshot of this name.
macro_rules! shows {
    ($stage:expr, $name:literal) => {
        insta::assert_snapshot!($name, $stage.screen(80, 24))
    };
    (large $stage:expr, $name:literal) => {
        insta::assert_snapshot!($name, $stage.screen(120, 40))
    };
}

#[test]
fn servers() {
    let mut stage = Stage::usual();
    shows!(stage, "servers");
    shows!(large stage, "servers_large");
    stage.keys(&[KeyPress::Down; 6]);
    shows!(stage, "servers_one_that_retries");
    stage.key(KeyPress::Up);
    shows!(stage, "servers_one_that_wants_a_login");
    stage.key(KeyPress::Char('/')).types("o");
    shows!(stage, "servers_filtered");
    stage.types("xyz");
    shows!(stage, "servers_filtered_to_none");
    shows!(Stage::empty(), "servers_none");
}

#[test]
fn lists() {
    let mut stage = Stage::usual();
    stage.keys(&[KeyPress::Down, KeyPress::Enter]);
    shows!(stage, "tools");
    shows!(large stage, "tools_large");
    stage.key(KeyPress::Char('/')).types("file");
    shows!(stage, "tools_filtered");
    stage.types("zzz");
    shows!(stage, "tools_filtered_to_none");
    stage.keys(&[KeyPress::Esc, KeyPress::Tab]);
    shows!(stage, "resources");
    stage.key(KeyPress::Tab);
    shows!(stage, "templates");
    stage.key(KeyPress::Tab);
    shows!(stage, "prompts");
    shows!(large stage, "prompts_large");
}

#[test]
fn lists_of_all_servers_and_of_one_that_is_not_there() {
    let mut stage = Stage::usual();
    stage.key(KeyPress::Enter);
    shows!(stage, "tools_of_all");
    let mut stage = Stage::usual();
    stage.keys(&[KeyPress::Down; 6]).key(KeyPress::Enter);
    shows!(stage, "tools_of_a_server_that_is_not_there");
}

#[test]
fn details_of_a_tool() {
    let mut stage = Stage::usual();
    stage.at_tool("write_file");
    shows!(stage, "details");
    shows!(large stage, "details_large");
    stage.key(KeyPress::Tab);
    shows!(stage, "details_schema");
    stage.key(KeyPress::Tab);
    shows!(stage, "details_definition");
}

#[test]
fn the_details_of_the_example_are_those_of_the_example() {
    let mut stage = Stage::empty();
    stage.add("claude-in-chrome", chrome(), |status| status);
    stage.keys(&[KeyPress::Enter, KeyPress::Enter]);
    let screen = stage.screen(120, 40);
    let expected = "\
Tool name: javascript_tool
Full name: mcp__claude-in-chrome__javascript_tool

Description:
Execute JavaScript code in the context of the current page...

Parameters:
• action (required): string - Must be set to 'javascript_exec'
• text (required): string - The JavaScript code to execute...
• tabId (required): number - Tab ID to execute the code in...";
    let shown: Vec<&str> = screen.lines().skip(3).take(10).map(|line| line.trim_start_matches(' ')).collect();
    assert_eq!(shown.join("\n"), expected);
    shows!(stage, "details_of_the_example");
}

fn chrome() -> toolyard_hub::SourceOffer {
    let definition = json!({
        "name": "javascript_tool",
        "description": "Execute JavaScript code in the context of the current page...",
        "inputSchema": {
            "type": "object",
            "properties": {
                "action": {"type": "string", "description": "Must be set to 'javascript_exec'"},
                "text": {"type": "string", "description": "The JavaScript code to execute..."},
                "tabId": {"type": "number", "description": "Tab ID to execute the code in..."},
            },
            "required": ["action", "text", "tabId"],
        },
    });
    toolyard_hub::SourceOffer { tools: vec![super::stage::tool(&definition)], ..Default::default() }
}

#[test]
fn details_of_other_items() {
    let mut stage = Stage::usual();
    stage.keys(&[KeyPress::Down, KeyPress::Enter, KeyPress::Tab, KeyPress::Enter]);
    shows!(stage, "details_of_a_resource");
    stage.keys(&[KeyPress::Esc, KeyPress::Tab, KeyPress::Enter]);
    shows!(stage, "details_of_a_template");
    stage.keys(&[KeyPress::Esc, KeyPress::Tab, KeyPress::Enter]);
    shows!(stage, "details_of_a_prompt");
}

#[test]
fn forms() {
    let mut stage = Stage::usual();
    stage.at_tool("forecast").key(KeyPress::Char('c'));
    shows!(stage, "form");
    shows!(large stage, "form_large");
    stage.types("30");
    shows!(stage, "form_with_a_wrong_number");
    stage.keys(&[KeyPress::Ctrl('s')]);
    shows!(stage, "form_handed_in_unfinished");
    stage.keys(&[KeyPress::Down; 4]).key(KeyPress::Enter);
    shows!(stage, "form_choices");
    stage.types("k");
    shows!(stage, "form_choices_filtered");
}

#[test]
fn forms_with_lists_and_objects() {
    let mut stage = Stage::usual();
    stage.at_tool("write_file").key(KeyPress::Char('c'));
    stage.types("/tmp/a.txt").key(KeyPress::Down).types("héllo 日本").keys(&[
        KeyPress::Down,
        KeyPress::Enter,
        KeyPress::Down,
        KeyPress::Down,
    ]);
    stage
        .key(KeyPress::Char(' '))
        .key(KeyPress::Down)
        .key(KeyPress::Enter)
        .types("first")
        .key(KeyPress::Ctrl('n'))
        .types("second");
    shows!(stage, "form_with_lists_and_objects");
    stage.key(KeyPress::Ctrl('r'));
    shows!(stage, "form_as_json");
    stage.keys(&[KeyPress::End, KeyPress::Backspace]);
    shows!(stage, "form_as_json_that_is_none");
}

#[test]
fn forms_of_other_items() {
    let mut stage = Stage::usual();
    stage.at_tool("list_roots").key(KeyPress::Char('c'));
    shows!(stage, "form_without_fields");
    let mut stage = Stage::usual();
    stage
        .keys(&[KeyPress::Down, KeyPress::Enter, KeyPress::Tab, KeyPress::Tab, KeyPress::Char('c')])
        .types("a b/c.txt");
    shows!(stage, "form_of_a_template");
    stage.keys(&[KeyPress::Esc, KeyPress::Tab, KeyPress::Char('c')]);
    shows!(stage, "form_of_a_prompt");
}

#[test]
fn questions_before_a_call() {
    let mut stage = Stage::usual();
    stage
        .at_tool("write_file")
        .key(KeyPress::Char('c'))
        .types("/tmp/a")
        .key(KeyPress::Down)
        .types("x")
        .key(KeyPress::Ctrl('s'));
    shows!(stage, "confirm_what_is_hinted_to_be_destructive");
    let mut stage = Stage::usual();
    stage
        .at_tool("javascript")
        .key(KeyPress::Char('c'))
        .types("a")
        .key(KeyPress::Down)
        .types("b")
        .key(KeyPress::Down)
        .types("1");
    stage.key(KeyPress::Ctrl('s'));
    shows!(stage, "confirm_without_hints");
}

#[test]
fn a_call_that_runs() {
    let mut stage = Stage::usual();
    stage.at_tool("read_file").key(KeyPress::Char('c')).types("/a").key(KeyPress::Ctrl('s'));
    shows!(stage, "running");
    stage.news(UiCallUpdate::Progress(Progress {
        progress: 3.0,
        total: Some(4.0),
        message: Some("three quarters".to_owned()),
    }));
    let line = LogLine { level: LogLevel::Warning, logger: None, data: json!("the disk is \u{1b}[2Jslow") };
    stage.news(UiCallUpdate::Log(line));
    stage.news(UiCallUpdate::Chunk(json!({"type": "text", "text": "a piece"})));
    stage.later(7);
    shows!(stage, "running_with_progress");
    stage.key(KeyPress::Char('x'));
    shows!(stage, "running_and_being_cancelled");
    stage.key(KeyPress::Char('q'));
    shows!(stage, "quit_while_a_call_runs");
}

fn called(stage: &mut Stage) {
    stage.at_tool("read_file").key(KeyPress::Char('c')).types("/a").key(KeyPress::Ctrl('s'));
}

#[test]
fn results() {
    let mut stage = Stage::usual();
    called(&mut stage);
    stage.answers(&json!({"content": [{"type": "text", "text": "one line\nand another, which is long enough that it must be broken somewhere near the right edge\n\n\u{1b}[31mred\u{1b}[0m"}]}));
    shows!(stage, "result_text");
    stage.key(KeyPress::Tab);
    shows!(stage, "result_json");

    let mut stage = Stage::usual();
    called(&mut stage);
    stage.answers(&json!({
        "content": [
            {"type": "text", "text": "{\"days\": [{\"t\": 20, \"sky\": \"clear\"}, {\"t\": 18, \"sky\": \"rain\"}]}"},
            {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "text/plain", "text": "inside"}},
            {"type": "hologram", "depth": 3},
        ],
        "structuredContent": {"days": [{"t": 20, "sky": "clear"}, {"t": 18, "sky": "rain"}]},
    }));
    shows!(stage, "result_of_many_kinds");
    shows!(large stage, "result_of_many_kinds_large");
    stage.keys(&[KeyPress::Down, KeyPress::Down, KeyPress::Char('h')]);
    shows!(stage, "result_folded");
    stage.key(KeyPress::Char('/')).types("insi");
    shows!(stage, "result_searched");
    stage.types("zzz").keys(&[KeyPress::Enter]);
    shows!(stage, "result_searched_in_vain");
}

#[test]
fn failed_and_empty_results() {
    let mut stage = Stage::usual();
    called(&mut stage);
    stage.news(UiCallUpdate::Ended(
        Ok(Outcome::failure(to_raw(
            &json!({"content": [{"type": "text", "text": "no such file"}], "isError": true}),
        ))),
        std::time::Duration::from_secs(2),
    ));
    shows!(stage, "result_of_a_tool_that_failed");
    let mut stage = Stage::usual();
    called(&mut stage);
    let error = HubError::new(ErrorKind::ConnectionLost, "files went away")
        .with_suggestion("look at its standard error");
    stage.fails(error.with_details(json!({"stderr": ["out of memory"]})));
    shows!(stage, "result_of_a_call_that_was_lost");
    let mut stage = Stage::usual();
    called(&mut stage);
    stage.answers(&json!({}));
    shows!(stage, "result_that_is_empty");
}

#[test]
fn results_of_prompts_and_resources() {
    let mut stage = Stage::usual();
    stage.keys(&[KeyPress::Down, KeyPress::Enter, KeyPress::Tab, KeyPress::Char('c')]);
    stage.answers(&json!({"contents": [{"uri": "file:///logo.png", "mimeType": "image/png", "blob": "AAAA"}, {"uri": "file:///n", "text": "notes"}]}));
    shows!(stage, "result_of_a_resource");
    stage.keys(&[KeyPress::Esc, KeyPress::Tab, KeyPress::Tab, KeyPress::Down, KeyPress::Char('c')]);
    stage.answers(&json!({"description": "x", "messages": [
        {"role": "user", "content": {"type": "text", "text": "Hello"}},
        {"role": "assistant", "content": {"type": "text", "text": "Hi!"}},
    ]}));
    shows!(stage, "result_of_a_prompt");
}

#[test]
fn history() {
    let mut stage = Stage::usual();
    stage.key(KeyPress::Char('H'));
    shows!(stage, "history_empty");
    stage.key(KeyPress::Esc);
    called(&mut stage);
    stage.answers(&json!({"content": []}));
    stage.keys(&[KeyPress::Char('r')]);
    stage.fails(HubError::new(ErrorKind::TimedOut, "too slow"));
    stage.keys(&[KeyPress::Char('r')]);
    stage.later(75);
    stage.key(KeyPress::Char('H'));
    shows!(stage, "history");
    shows!(large stage, "history_large");
    stage.keys(&[KeyPress::Down, KeyPress::Char('y')]);
    shows!(stage, "copy");
    stage.key(KeyPress::Down);
    shows!(large stage, "copy_large");
}

#[test]
fn help() {
    let mut stage = Stage::usual();
    stage.key(KeyPress::Char('?'));
    shows!(stage, "help");
    shows!(large stage, "help_large");
}

#[test]
fn the_log() {
    let mut stage = Stage::usual();
    stage.key(KeyPress::Char('L'));
    shows!(stage, "log_empty");
    stage.logs(&[
        (Event, Some("files"), "tool mcp__files__read_file started"),
        (
            Sent,
            Some("files"),
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"read_file"}}"#,
        ),
        (Received, Some("files"), r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#),
        (Stderr, Some("broken"), "Error: \u{1b}]0;owned\u{7}Cannot find module"),
        (Own, None, "toolyard: yard.toml has changed"),
    ]);
    shows!(stage, "log");
    stage.keys(&[KeyPress::BackTab]);
    shows!(stage, "log_of_messages");
    stage.key(KeyPress::Enter);
    shows!(stage, "log_of_one_message");
    stage.keys(&[KeyPress::Esc, KeyPress::Esc, KeyPress::Char('T')]);
    shows!(stage, "log_below_the_servers");
}

fn asked(stage: &mut Stage, kind: QuestionKind, params: &serde_json::Value) {
    called(stage);
    let question = Question { key: "q".to_owned(), kind, params: to_raw(params) };
    stage.news(UiCallUpdate::Questions(QuestionId(1), vec![question]));
}

#[test]
fn questions_of_servers() {
    let mut stage = Stage::usual();
    asked(
        &mut stage,
        QuestionKind::ElicitForm,
        &json!({
            "message": "Which folder shall it be?",
            "requestedSchema": {"type": "object", "properties": {
                "folder": {"type": "string", "title": "Folder"},
                "again": {"type": "boolean", "default": false},
                "colour": {"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]},
            }, "required": ["folder"]},
        }),
    );
    shows!(stage, "asked_to_fill_in_a_form");
    shows!(large stage, "asked_to_fill_in_a_form_large");
    let mut stage = Stage::usual();
    asked(
        &mut stage,
        QuestionKind::ElicitUrl,
        &json!({"message": "Please pay", "url": "https://pay.example/\u{202e}moc", "elicitationId": "1"}),
    );
    shows!(stage, "asked_to_open_an_address");
    let mut stage = Stage::usual();
    asked(
        &mut stage,
        QuestionKind::Sample,
        &json!({
            "systemPrompt": "You are terse.",
            "messages": [{"role": "user", "content": {"type": "text", "text": "What is 2 + 2?"}}],
            "maxTokens": 100,
        }),
    );
    stage.types("4").key(KeyPress::Enter).types("or so");
    shows!(stage, "asked_in_place_of_a_model");
}

#[test]
fn a_server_that_goes_away() {
    let mut stage = Stage::usual();
    stage.at_tool("read_file").key(KeyPress::Char('c')).types("/a");
    stage.becomes("files", SourceState::Retrying, "it exited");
    stage.key(KeyPress::Ctrl('s'));
    shows!(stage, "form_of_a_server_that_died");
    stage.offers("files", toolyard_hub::SourceOffer::default());
    stage.key(KeyPress::Esc);
    shows!(stage, "details_of_a_tool_that_is_gone");
}

#[test]
fn small_terminals() {
    let mut stage = Stage::usual();
    insta::assert_snapshot!("too_small", stage.screen(20, 5));
    insta::assert_snapshot!("just_large_enough", stage.screen(40, 10));
    stage.at_tool("forecast").key(KeyPress::Char('c'));
    insta::assert_snapshot!("form_just_large_enough", stage.screen(40, 10));
}
