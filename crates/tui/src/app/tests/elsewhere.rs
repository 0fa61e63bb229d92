//! A remote yard: its address, its history, and the screens while it cannot be reached.

use std::time::Duration;

use toolyard_hub::{CallEndReason, EntryKind, ErrorKind, ExecutionId, PastCall, SourceState, SourceStatus};

use super::stage::{Stage, wall};
use crate::{KeyPress, UiMessage, UiReplicas};

fn past(number: u8, subject: &str, ended: CallEndReason, error: Option<&str>) -> PastCall {
    PastCall {
        id: ExecutionId::from_bytes([number; 16]),
        kind: EntryKind::Tool,
        subject: subject.to_owned(),
        source: Some("files".to_owned()),
        principal: "ann\u{1b}[31m".to_owned(),
        session_id: Some("s-1".to_owned()),
        user_id: None,
        at: wall() - Duration::from_secs(u64::from(number)),
        duration: Duration::from_micros(1_234_567),
        ended,
        error: error.map(str::to_owned),
        replica: None,
    }
}

fn attached() -> Stage {
    let mut stage = Stage::elsewhere();
    stage.add("files", toolyard_hub::SourceOffer::default(), |status| SourceStatus {
        transport: Some("stdio"),
        ..status
    });
    stage.tell(UiMessage::History(Vec::new()));
    stage
}

#[test]
fn a_remote_yard_is_shown_with_its_address() {
    let mut stage = Stage::elsewhere();
    insta::assert_snapshot!("elsewhere_none", stage.screen(80, 24));
    let mut stage = attached();
    insta::assert_snapshot!("elsewhere_servers", stage.screen(80, 24));
}

#[test]
fn a_yard_that_cannot_be_reached_says_so_on_every_screen_until_it_can() {
    let mut stage = attached();
    stage.tell(UiMessage::Connectivity(Some("the yard closed the connection; retrying".to_owned())));
    stage.becomes("files", SourceState::Retrying, "the yard at http://127.0.0.1:8080/ cannot be reached");
    insta::assert_snapshot!("elsewhere_away", stage.screen(80, 24));
    stage.later(30);
    stage.key(KeyPress::Char('L'));
    let screen = stage.screen(80, 24);
    assert!(screen.contains("not connected") && !screen.contains("closed the connection"), "{screen}");
    stage.tell(UiMessage::Connectivity(None));
    let screen = stage.screen(80, 24);
    assert!(screen.contains("reconnected") && !screen.contains("not connected"), "{screen}");
}

#[test]
fn recorded_calls_are_beside_the_calls_of_this_session() {
    let mut stage = attached();
    assert!(!stage.app.shows_yard_history());
    stage.key(KeyPress::Char('H'));
    insta::assert_snapshot!("history_of_two_kinds", stage.screen(80, 24));
    stage.key(KeyPress::Tab);
    assert!(stage.app.shows_yard_history());
    insta::assert_snapshot!("history_of_the_yard_empty", stage.screen(80, 24));
    let lost = CallEndReason::Error(ErrorKind::ConnectionLost);
    stage.tell(UiMessage::History(vec![
        past(1, "mcp__files__read", CallEndReason::Succeeded, None),
        past(2, "mcp__files__write", lost, Some("files exited\nwith code 1")),
        past(3, "mcp__files__wait", CallEndReason::Abandoned, None),
    ]));
    stage.key(KeyPress::Down);
    insta::assert_snapshot!("history_of_the_yard", stage.screen(80, 24));
    insta::assert_snapshot!("history_of_the_yard_large", stage.screen(120, 40));
    stage.key(KeyPress::Tab);
    assert!(!stage.app.shows_yard_history());
    stage.keys(&[KeyPress::Tab, KeyPress::Esc]);
    assert!(!stage.app.shows_yard_history());
}

#[test]
fn a_yard_without_recorded_calls_has_one_history() {
    let mut stage = Stage::usual();
    stage.keys(&[KeyPress::Char('H'), KeyPress::Tab]);
    assert!(!stage.app.shows_yard_history());
}

#[test]
fn past_calls_keep_eight_letters_of_a_servers_name() {
    let mut stage = attached();
    stage.keys(&[KeyPress::Char('H'), KeyPress::Tab]);
    stage.tell(UiMessage::History(vec![past(
        1,
        "mcp__warehouse-berlin__read",
        CallEndReason::Succeeded,
        None,
    )]));
    for columns in [44, 60, 80, 120] {
        let screen = stage.screen(columns, 24);
        let row = screen.lines().find(|line| line.contains('✓')).unwrap_or_default();
        assert!(row.contains("mcp__warehous"), "at {columns}:\n{screen}");
    }
}

#[test]
fn several_replicas_are_counted_and_named() {
    let mut stage = attached();
    let header =
        |stage: &mut Stage| stage.screen(80, 24).lines().next().unwrap_or_default().trim_end().to_owned();
    assert!(!header(&mut stage).contains("replica"));
    stage.tell(UiMessage::Replicas(Some(UiReplicas { count: 3, problems: Vec::new() })));
    assert!(header(&mut stage).ends_with("3 replicas · 1/1 ready"), "{}", header(&mut stage));
    let problems = vec!["store unavailable\u{1b}".to_owned(), "b: not connected".to_owned()];
    stage.tell(UiMessage::Replicas(Some(UiReplicas { count: 3, problems })));
    assert!(header(&mut stage).contains("3 replicas, store unavailable"), "{}", header(&mut stage));
    stage.keys(&[KeyPress::Char('H'), KeyPress::Tab]);
    let call = past(1, "mcp__files__read", CallEndReason::Succeeded, None);
    stage.tell(UiMessage::History(vec![PastCall { replica: Some("b".to_owned()), ..call }]));
    let screen = stage.screen(120, 24);
    assert!(screen.contains(" at b") && screen.contains(", replica b, session s-1"), "{screen}");
}
