//! The effects that key presses request.

use serde_json::json;
use toolyard_hub::json::to_raw;
use toolyard_hub::{Question, QuestionKind, SourceCommand, SourceState};

use super::stage::Stage;
use crate::{Effect, KeyPress, QuestionId, UiCallUpdate, UiMessage};

fn last(stage: &Stage) -> String {
    stage.effects.last().map(|effect| format!("{effect:?}")).unwrap_or_default()
}

#[test]
fn a_tool_is_called_with_what_the_form_holds() {
    let mut stage = Stage::usual();
    stage.at_tool("forecast").key(KeyPress::Char('c'));
    // Required fields come first; the city is nested below the place.
    stage.types("3").keys(&[KeyPress::Down, KeyPress::Down]).types("Zürich").keys(&[
        KeyPress::Down,
        KeyPress::Down,
        KeyPress::Right,
    ]);
    stage.key(KeyPress::Ctrl('s'));
    assert!(stage.effects.is_empty(), "a call without annotations is confirmed first: {:?}", stage.effects);
    stage.key(KeyPress::Char('y'));
    let (_, name, arguments) = stage.call();
    assert_eq!(name, "mcp__weather__forecast");
    assert_eq!(arguments, r#"{"days":3,"place":{"city":"Zürich"},"unit":"fahrenheit"}"#);
}

#[test]
fn a_tool_annotated_as_read_only_is_called_without_confirmation() {
    let mut stage = Stage::usual();
    stage.at_tool("read_file").key(KeyPress::Char('c')).types("/a").key(KeyPress::Ctrl('s'));
    let (_, name, arguments) = stage.call();
    assert_eq!((name.as_str(), arguments.as_str()), ("mcp__files__read_file", r#"{"path":"/a","head":20}"#));
}

#[test]
fn a_rejected_confirmation_calls_nothing() {
    let mut stage = Stage::usual();
    stage
        .at_tool("write_file")
        .key(KeyPress::Char('c'))
        .types("/a")
        .key(KeyPress::Down)
        .types("x")
        .key(KeyPress::Ctrl('s'));
    for no in [KeyPress::Char('n'), KeyPress::Esc] {
        stage.key(no);
        assert!(stage.effects.is_empty());
        stage.key(KeyPress::Ctrl('s'));
    }
    stage.key(KeyPress::Enter);
    assert_eq!(stage.call().1, "mcp__files__write_file");
}

#[test]
fn servers_are_reconnected_and_switched_off_and_on() {
    let mut stage = Stage::usual();
    stage.keys(&[KeyPress::Down, KeyPress::Char('r'), KeyPress::Char('e')]);
    stage.becomes("files", SourceState::Disabled, "");
    stage.key(KeyPress::Char('e'));
    let orders: Vec<(String, SourceCommand)> = stage
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Manage(name, order) => Some((name.to_string(), *order)),
            _ => None,
        })
        .collect();
    let files = |order| ("files".to_owned(), order);
    assert_eq!(
        orders,
        [files(SourceCommand::Reconnect), files(SourceCommand::Disable), files(SourceCommand::Enable)]
    );
}

#[test]
fn a_call_is_cancelled_repeated_and_edited() {
    let mut stage = Stage::usual();
    stage.at_tool("read_file").key(KeyPress::Char('c')).types("/a").key(KeyPress::Ctrl('s'));
    let (first, ..) = stage.call();
    stage.key(KeyPress::Char('x'));
    assert_eq!(last(&stage), format!("Cancel({first:?})"));
    stage.fails(toolyard_hub::HubError::new(toolyard_hub::ErrorKind::Cancelled, "you canceled the call"));
    stage.key(KeyPress::Char('r'));
    let (second, _, arguments) = stage.call();
    assert_ne!(first, second);
    assert_eq!(arguments, r#"{"path":"/a","head":20}"#);
    stage.answers(&json!({"content": []}));
    stage.key(KeyPress::Char('e')).types("b").key(KeyPress::Ctrl('s'));
    assert_eq!(stage.call().2, r#"{"path":"/ab","head":20}"#);
}

#[test]
fn resources_templates_and_prompts_are_used() {
    let mut stage = Stage::usual();
    stage.keys(&[KeyPress::Down, KeyPress::Enter, KeyPress::Tab, KeyPress::Char('c')]);
    assert_eq!(stage.call().1, "file:///notes.txt");
    stage.keys(&[KeyPress::Esc, KeyPress::Tab, KeyPress::Char('c')]).types("a b").key(KeyPress::Ctrl('s'));
    assert_eq!(stage.call().1, "file:///a%20b");
    stage
        .keys(&[KeyPress::Esc, KeyPress::Esc, KeyPress::Tab, KeyPress::Char('c')])
        .types("x.txt")
        .key(KeyPress::Ctrl('s'));
    let (_, name, arguments) = stage.call();
    assert_eq!((name.as_str(), arguments.as_str()), ("mcp__files__summarise", r#"{"path":"x.txt"}"#));
}

#[test]
fn a_call_and_its_result_are_copied() {
    let mut stage = Stage::usual();
    stage.at_tool("read_file").key(KeyPress::Char('c')).types("/a b").key(KeyPress::Ctrl('s'));
    stage.answers(&json!({"content": []}));
    stage.key(KeyPress::Char('y'));
    let mut copied = Vec::new();
    for _ in 0..6 {
        stage.keys(&[KeyPress::Enter, KeyPress::Down]);
        match stage.effects.last() {
            Some(Effect::Copy(text)) => copied.push(text.clone()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        copied,
        [
            "toolyard call mcp__files__read_file 'path=/a b' head:=20 --config yard.toml",
            "curl -H \"Authorization: Bearer $TOOLYARD_TOKEN\" -H 'Content-Type: application/json' -d '{\"params\":{\"path\":\"/a b\",\"head\":20}}' http://127.0.0.1:8080/mcp/tools/mcp__files__read_file/execute",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"/a b","head":20}}}"#,
            r#"{"path":"/a b","head":20}"#,
            r#"{"content":[]}"#,
            r#"test of files read_file: {"content":[]}"#,
        ]
    );
}

#[test]
fn pieces_of_a_result_are_saved() {
    let mut stage = Stage::usual();
    stage.at_tool("read_file").key(KeyPress::Char('c')).types("/a").key(KeyPress::Ctrl('s'));
    stage.answers(&json!({"content": [
        {"type": "text", "text": "words"},
        {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
    ]}));
    stage.key(KeyPress::Char('s'));
    assert_eq!(last(&stage), r#"Save("result.txt", Text("words"))"#);
    stage.keys(&[KeyPress::End, KeyPress::Char('s')]);
    assert_eq!(last(&stage), r#"Save("image.png", Base64("iVBORw0KGgo="))"#);
}

fn ask(stage: &mut Stage, kinds: &[QuestionKind]) {
    stage.at_tool("read_file").key(KeyPress::Char('c')).types("/a").key(KeyPress::Ctrl('s'));
    let question = |(at, kind): (usize, &QuestionKind)| Question {
        key: format!("q{at}"),
        kind: *kind,
        params: to_raw(
            &json!({"message": "?", "url": "https://a", "requestedSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}, "messages": []}),
        ),
    };
    stage.news(UiCallUpdate::Questions(QuestionId(7), kinds.iter().enumerate().map(question).collect()));
}

#[test]
fn questions_are_answered_one_after_the_other() {
    let mut stage = Stage::usual();
    ask(&mut stage, &[QuestionKind::ElicitForm, QuestionKind::ElicitUrl, QuestionKind::Sample]);
    stage.key(KeyPress::Ctrl('s'));
    assert!(!last(&stage).starts_with("Answer"), "an incomplete form is not submitted");
    stage.types("5").key(KeyPress::Ctrl('s')).key(KeyPress::Char('a')).types("four").key(KeyPress::Ctrl('s'));
    let Some(Effect::Answer(QuestionId(7), Ok(answers))) = stage.effects.last() else {
        panic!("{}", last(&stage))
    };
    let answers: Vec<(&str, &str)> = answers.iter().map(|(key, raw)| (key.as_str(), raw.get())).collect();
    assert_eq!(
        answers,
        [
            ("q0", r#"{"action":"accept","content":{"n":5}}"#),
            ("q1", r#"{"action":"accept"}"#),
            (
                "q2",
                r#"{"role":"assistant","content":{"type":"text","text":"four"},"model":"a person","stopReason":"endTurn"}"#
            ),
        ]
    );
}

#[test]
fn questions_are_declined_and_cancelled() {
    for (key, expected) in
        [(KeyPress::Ctrl('x'), r#"{"action":"decline"}"#), (KeyPress::Esc, r#"{"action":"cancel"}"#)]
    {
        for kind in [QuestionKind::ElicitForm, QuestionKind::ElicitUrl] {
            let mut stage = Stage::usual();
            ask(&mut stage, &[kind]);
            stage.key(key);
            let Some(Effect::Answer(_, Ok(answers))) = stage.effects.last() else {
                panic!("{}", last(&stage))
            };
            assert_eq!(answers[0].1.get(), expected);
        }
    }
    let mut stage = Stage::usual();
    ask(&mut stage, &[QuestionKind::Sample]);
    stage.key(KeyPress::Esc);
    let Some(Effect::Answer(_, Err(error))) = stage.effects.last() else { panic!("{}", last(&stage)) };
    assert_eq!(error.message(), "the user declined the request");
}

#[test]
fn a_question_goes_when_its_call_does() {
    let mut stage = Stage::usual();
    ask(&mut stage, &[QuestionKind::ElicitForm]);
    let before = stage.screen(80, 24);
    assert!(before.contains("Input requested by files"), "{before}");
    stage.fails(toolyard_hub::HubError::new(toolyard_hub::ErrorKind::ConnectionLost, "gone"));
    let after = stage.screen(80, 24);
    assert!(!after.contains("Input requested") && after.contains("connection lost"), "{after}");
}

#[test]
fn quitting_asks_only_while_a_call_runs() {
    let mut stage = Stage::usual();
    stage.key(KeyPress::Char('q'));
    assert_eq!(last(&stage), "Quit");
    let mut stage = Stage::usual();
    stage.at_tool("read_file").key(KeyPress::Char('c')).types("/a").key(KeyPress::Ctrl('s'));
    stage.key(KeyPress::Char('q'));
    assert_ne!(last(&stage), "Quit");
    stage.key(KeyPress::Char('n')).key(KeyPress::Char('q')).key(KeyPress::Char('y'));
    assert_eq!(last(&stage), "Quit");
}

#[test]
fn letters_are_text_in_input_fields() {
    let mut stage = Stage::usual();
    stage.at_tool("read_file").key(KeyPress::Char('c')).types("q?HLT");
    assert!(stage.effects.is_empty());
    stage.tell(UiMessage::Paste(" pas\nted".to_owned()));
    stage.key(KeyPress::Ctrl('s'));
    assert_eq!(stage.call().2, r#"{"path":"q?HLT pas ted","head":20}"#);
}

#[test]
fn keys_for_the_shell_reach_it_from_everywhere() {
    let mut stage = Stage::usual();
    stage.key(KeyPress::Ctrl('z'));
    assert_eq!(last(&stage), "Suspend");
    stage.at_tool("read_file").key(KeyPress::Char('c')).key(KeyPress::Ctrl('z'));
    assert_eq!(last(&stage), "Suspend");
    stage.key(KeyPress::Ctrl('c'));
    assert_eq!(last(&stage), "Quit");
}

#[test]
fn history_and_log_are_a_key_away_and_back() {
    let mut stage = Stage::usual();
    let first = stage.screen(80, 24);
    stage.keys(&[KeyPress::Char('H'), KeyPress::Char('L'), KeyPress::Char('H')]);
    let title = stage.screen(80, 24).lines().next().unwrap().to_owned();
    assert!(title.contains("Log › History"), "{title}");
    stage.keys(&[KeyPress::Char('H'), KeyPress::Char('L')]);
    assert_eq!(stage.screen(80, 24), first);
}
