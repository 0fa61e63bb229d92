//! The history in real files: storage, queries, retention, and files that must stay unchanged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use toolyard_hub::{
    CallEndReason, CallStatus, EntryKind, ErrorKind, ExecutionId, History, HistoryQuery, HubError, PastCall,
    Permissions, Principal, SourceName,
};

use super::damage::move_aside;
use super::open::STEPS;
use super::{HistoryDamagePolicy, HistoryStore, HistoryStoreError, HistoryStoreSettings};
use crate::audit_line::tests::{SampleCall, sample};
use crate::scratch::Scratch;

fn settings(file: &Path) -> HistoryStoreSettings {
    HistoryStoreSettings {
        file: file.to_owned(),
        keep_rows: 1_000,
        keep_for: None,
        on_damage: HistoryDamagePolicy::Fail,
    }
}

fn id(number: u64) -> ExecutionId {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    ExecutionId::from_bytes(bytes)
}

/// Returns the call with this number, accepted that many seconds after a fixed time.
fn numbered(number: u64) -> SampleCall {
    sample("work").with(|call| {
        call.id = id(number);
        call.accepted_at += Duration::from_secs(number);
    })
}

fn all() -> HistoryQuery {
    HistoryQuery { limit: 10_000, ..HistoryQuery::default() }
}

/// Returns the numbers of the calls that match, in order.
async fn query_numbers(store: &HistoryStore, query: HistoryQuery) -> Vec<u64> {
    let calls = store.recent(query).await.unwrap();
    calls.iter().map(|call| u64::from_be_bytes(call.id.as_bytes()[8..].try_into().unwrap())).collect()
}

/// Returns the numbers of all calls in the file, read by a separate store.
async fn stored_numbers(file: &Path) -> Vec<u64> {
    let store = HistoryStore::open(HistoryStoreSettings { keep_rows: u64::MAX, ..settings(file) }).unwrap();
    let numbers = query_numbers(&store, all()).await;
    store.close().await;
    numbers
}

#[tokio::test]
async fn a_call_is_found_as_soon_as_it_is_recorded() {
    let scratch = Scratch::new();
    let store = HistoryStore::open(settings(&scratch.path("history.db"))).unwrap();
    for number in 1..=20 {
        store.record(&numbered(number).finished());
        assert_eq!(query_numbers(&store, all()).await.len() as u64, number);
        assert!(store.find(id(number)).await.unwrap().is_some());
    }
    store.close().await;
    assert_eq!(query_numbers(&store, all()).await.len(), 20, "calls are readable after the writer has ended");
}

#[tokio::test]
async fn a_call_is_read_back_unchanged() {
    let scratch = Scratch::new();
    let file = scratch.path("new directory/history.db");
    let store = HistoryStore::open(settings(&file)).unwrap();
    let (source, error) =
        (SourceName::new("s"), HubError::new(ErrorKind::TimedOut, "too 'slow'; DROP TABLE calls"));
    let call = SampleCall {
        ended: CallEndReason::Error(ErrorKind::TimedOut),
        error: Some(error),
        ..numbered(1).with(|call| {
            call.kind = EntryKind::Prompt;
            call.source = Some(source);
            call.context.session_id = Some("s1\0".into());
            call.context.user_id = Some("u'1".into());
        })
    };
    store.record(&call.finished());
    store.close().await;
    let store = HistoryStore::open(settings(&file)).unwrap();
    let usual = numbered(1);
    let expected = PastCall {
        id: id(1),
        kind: EntryKind::Prompt,
        subject: "work".to_owned(),
        source: Some("s".to_owned()),
        principal: "ada".to_owned(),
        session_id: Some("s1\0".to_owned()),
        user_id: Some("u'1".to_owned()),
        at: usual.call.accepted_at,
        duration: Duration::from_micros(1_234),
        ended: CallEndReason::Error(ErrorKind::TimedOut),
        error: Some("too 'slow'; DROP TABLE calls".to_owned()),
        replica: None,
    };
    assert_eq!(store.find(id(1)).await.unwrap(), Some(expected.clone()));
    assert_eq!(store.find(id(2)).await.unwrap(), None);
    assert_eq!(store.recent(all()).await.unwrap(), [expected]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn calls_are_found_by_their_attributes_latest_first() {
    let scratch = Scratch::new();
    let file = scratch.path("history.db");
    let store = HistoryStore::open(settings(&file)).unwrap();
    let (source, error) = (SourceName::new("Depot"), HubError::new(ErrorKind::ToolFailed, "No 100% disk_"));
    for call in [
        numbered(1),
        numbered(2).with(|call| call.principal = Principal::new("bob", Permissions::All)),
        numbered(3).with(|call| {
            call.subject = "mcp__x__other".into();
            call.source = Some(source);
        }),
        SampleCall {
            ended: CallEndReason::Failed,
            ..numbered(4).with(|call| call.context.user_id = Some("u9".into()))
        },
        SampleCall { ended: CallEndReason::Error(ErrorKind::ToolFailed), error: Some(error), ..numbered(5) },
        SampleCall { ended: CallEndReason::Error(ErrorKind::Cancelled), ..numbered(6) },
        SampleCall {
            ended: CallEndReason::Abandoned,
            ..numbered(7).with(|call| call.kind = EntryKind::Resource)
        },
    ] {
        store.record(&call.finished());
    }
    store.close().await;
    let at = |number| Some(numbered(number).call.accepted_at);
    let text = |text: &str| HistoryQuery { text: Some(text.to_owned()), ..all() };
    for (query, numbers) in [
        (all(), vec![7, 6, 5, 4, 3, 2, 1]),
        (HistoryQuery { limit: 2, ..all() }, vec![7, 6]),
        (HistoryQuery { principal: Some("bob".to_owned()), ..all() }, vec![2]),
        (HistoryQuery { subject: Some("mcp__x__other".to_owned()), ..all() }, vec![3]),
        (HistoryQuery { status: Some(CallStatus::Succeeded), ..all() }, vec![3, 2, 1]),
        (HistoryQuery { status: Some(CallStatus::Failed), ..all() }, vec![5, 4]),
        (HistoryQuery { status: Some(CallStatus::Cancelled), ..all() }, vec![7, 6]),
        (HistoryQuery { kind: Some(EntryKind::Resource), ..all() }, vec![7]),
        (HistoryQuery { since: at(3), until: at(5), ..all() }, vec![4, 3]),
        (text("OTHER"), vec![3]),
        (text("depot"), vec![3]),
        (text("u9"), vec![4]),
        (text("100% disk_"), vec![5]),
        (text("%"), vec![5]),
        (text("'; DROP TABLE calls; --"), vec![]),
        (HistoryQuery { text: Some("work".to_owned()), principal: Some("bob".to_owned()), ..all() }, vec![2]),
    ] {
        assert_eq!(query_numbers(&store, query.clone()).await, numbers, "{query:?}");
    }
}

#[tokio::test]
async fn pages_have_no_gap_or_overlap_even_within_one_microsecond() {
    let scratch = Scratch::new();
    let store = HistoryStore::open(settings(&scratch.path("history.db"))).unwrap();
    for number in 0..25 {
        let accepted_at = numbered(number / 10).call.accepted_at;
        store.record(&numbered(number).with(|call| call.accepted_at = accepted_at).finished());
    }
    store.close().await;
    let mut seen = Vec::new();
    let mut query = HistoryQuery { limit: 4, ..all() };
    loop {
        let page = store.recent(query.clone()).await.unwrap();
        let Some(last) = page.last() else { break };
        query.after = Some(last.cursor());
        seen.extend(page.iter().map(|call| call.id));
    }
    assert_eq!(seen, (0..25).rev().map(id).collect::<Vec<_>>());
}

#[tokio::test]
async fn excess_and_expired_calls_are_deleted() {
    let scratch = Scratch::new();
    let file = scratch.path("history.db");
    let store = HistoryStore::open(HistoryStoreSettings { keep_rows: 100, ..settings(&file) }).unwrap();
    for number in 0..5_000 {
        store.record(&numbered(number).finished());
    }
    store.close().await;
    let left = stored_numbers(&file).await;
    // A few more may stay until the next pruning.
    assert!((100..=106).contains(&left.len()), "{}", left.len());
    assert_eq!(left, (0..5_000).rev().take(left.len()).collect::<Vec<_>>());

    let old = scratch.path("old.db");
    let store = HistoryStore::open(settings(&old)).unwrap();
    store.record(&numbered(1).finished());
    store.record(&numbered(2).with(|call| call.accepted_at = SystemTime::now()).finished());
    store.close().await;
    let day = HistoryStoreSettings { keep_for: Some(Duration::from_secs(86_400)), ..settings(&old) };
    HistoryStore::open(day).unwrap().close().await;
    assert_eq!(stored_numbers(&old).await, [2]);
}

#[tokio::test]
async fn two_processes_share_a_file() {
    let scratch = Scratch::new();
    let file = scratch.path("history.db");
    // Opened at the same time, so that both find no file.
    let opening = [0, 1].map(|_| {
        let settings = settings(&file);
        std::thread::spawn(move || HistoryStore::open(settings).unwrap())
    });
    let stores = opening.map(|thread| thread.join().unwrap());
    for number in 0..600 {
        stores[usize::from(number % 2 == 1)].record(&numbered(number).finished());
    }
    for store in &stores {
        store.close().await;
        assert_eq!(store.lost_records(), 0);
    }
    assert_eq!(stored_numbers(&file).await, (0..600).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_foreign_file_stays_unchanged() {
    let scratch = Scratch::new();
    let other = scratch.path("other.db");
    Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE calls (x); INSERT INTO calls VALUES (1)")
        .unwrap();
    let text = scratch.path("notes.txt");
    fs::write(&text, "unrelated notes").unwrap();
    let short = scratch.path("short.db");
    fs::write(&short, b"SQLite format 3\0").unwrap();
    for file in [other, text, short] {
        let before = fs::read(&file).unwrap();
        let error = HistoryStore::open(settings(&file)).unwrap_err();
        assert!(matches!(error, HistoryStoreError::Foreign { .. }), "{error}");
        let expected =
            format!("{} is not a Toolyard history database; it was left unchanged", file.display());
        assert_eq!(error.to_string(), expected);
        assert_eq!(fs::read(&file).unwrap(), before);
    }
    let directory = scratch.path("directory");
    fs::create_dir(&directory).unwrap();
    assert!(matches!(HistoryStore::open(settings(&directory)), Err(HistoryStoreError::Foreign { .. })));
    assert!(matches!(
        HistoryStore::open(settings(Path::new("/dev/full"))),
        Err(HistoryStoreError::Foreign { .. })
    ));
}

/// Creates a history with some calls.
async fn filled(scratch: &Scratch) -> PathBuf {
    let file = scratch.path("history.db");
    let store = HistoryStore::open(settings(&file)).unwrap();
    for number in 0..500 {
        store.record(&numbered(number).finished());
    }
    store.close().await;
    drop(store);
    file
}

#[tokio::test]
async fn a_damaged_file_is_reported_and_stays_unchanged() {
    let scratch = Scratch::new();
    let file = filled(&scratch).await;
    let whole = fs::read(&file).unwrap();
    let mut garbled = whole.clone();
    garbled[100..].fill(0x55);
    for damaged in [garbled, whole[..5_000].to_vec(), whole[..100].to_vec()] {
        fs::write(&file, &damaged).unwrap();
        let error = HistoryStore::open(settings(&file)).unwrap_err();
        assert!(matches!(error, HistoryStoreError::Damaged { .. }), "{error}");
        assert!(fs::read(&file).unwrap() == damaged, "{error}");
    }
}

/// Returns the sorted names of the files in the directory of the database.
fn names(scratch: &Scratch) -> Vec<String> {
    let directory = fs::read_dir(scratch.path("history.db").parent().unwrap()).unwrap();
    let mut names: Vec<String> =
        directory.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn the_error_for_a_damaged_file_includes_a_command_that_moves_it_aside() {
    let scratch = Scratch::new();
    let file = filled(&scratch).await;
    let damaged = fs::read(&file).unwrap()[..5_000].to_vec();
    fs::write(&file, &damaged).unwrap();
    let error = HistoryStore::open(settings(&file)).unwrap_err();
    let suggestion = error.suggestion().unwrap();
    assert!(suggestion.contains("on_damage = \"move-aside\""), "{suggestion}");
    let command = suggestion.lines().next().unwrap().split_once("run: ").unwrap().1;
    // Runs the command as a user would.
    let status = std::process::Command::new("sh").arg("-c").arg(command).status();
    status.unwrap();
    let moved = names(&scratch).into_iter().find(|name| name.contains(".damaged-")).unwrap();
    assert!(fs::read(scratch.path(&moved)).unwrap() == damaged);
    assert_eq!(stored_numbers(&file).await, Vec::<u64>::new());
}

#[tokio::test]
async fn a_damaged_file_is_moved_aside_if_configured_and_nothing_is_lost() {
    let scratch = Scratch::new();
    let file = filled(&scratch).await;
    let mut damaged = fs::read(&file).unwrap();
    damaged[100..].fill(0x55);
    fs::write(&file, &damaged).unwrap();
    let moving = HistoryStoreSettings { on_damage: HistoryDamagePolicy::MoveAside, ..settings(&file) };
    // Two stores start at the same time: the second must not move the new file of the first.
    let opening = [moving.clone(), moving.clone()]
        .map(|settings| std::thread::spawn(move || HistoryStore::open(settings).unwrap()));
    let stores = opening.map(|thread| thread.join().unwrap());
    for (number, store) in (0..).zip(&stores) {
        store.record(&numbered(number).finished());
        store.close().await;
    }
    drop(stores);
    let moved: Vec<String> = names(&scratch).into_iter().filter(|name| name.contains(".damaged-")).collect();
    let [database] = moved.as_slice() else { panic!("{moved:?}") };
    assert!(fs::read(scratch.path(database)).unwrap() == damaged);
    assert_eq!(stored_numbers(&file).await, [1, 0]);
    // A foreign file is never moved.
    let notes = scratch.path("notes.txt");
    fs::write(&notes, "unrelated notes").unwrap();
    let error = HistoryStore::open(HistoryStoreSettings { file: notes.clone(), ..moving }).unwrap_err();
    assert!(matches!(error, HistoryStoreError::Foreign { .. }), "{error}");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "unrelated notes");
}

#[test]
fn the_files_next_to_a_database_are_moved_with_it_and_an_older_one_stays() {
    let scratch = Scratch::new();
    let file = scratch.path("history.db");
    let mut moved = Vec::new();
    for round in ["first", "second"] {
        for suffix in ["", "-wal", "-shm"] {
            fs::write(scratch.path(&format!("history.db{suffix}")), format!("{round}{suffix}")).unwrap();
        }
        moved.push((round, move_aside(&file, SystemTime::UNIX_EPOCH).unwrap()));
    }
    for (round, target) in moved {
        for suffix in ["", "-wal", "-shm"] {
            let text = fs::read_to_string(format!("{}{suffix}", target.display())).unwrap();
            assert_eq!(text, format!("{round}{suffix}"));
        }
    }
    assert_eq!(names(&scratch).len(), 6);
    assert!(names(&scratch)[0].starts_with("history.db.damaged-19700101T000000Z"), "{:?}", names(&scratch));
}

#[tokio::test]
async fn an_earlier_version_is_migrated_and_a_later_one_stays_unchanged() {
    let scratch = Scratch::new();
    let file = scratch.path("history.db");
    let database = Connection::open(&file).unwrap();
    database.execute_batch(STEPS[0]).unwrap();
    database
        .execute_batch(
            "INSERT INTO calls (id, at, duration, thing, subject, principal, ended, standing)
             VALUES ('00000000000000000000000000000007', 1, 2, 'tool', 'work', 'ada', 'answered', 'succeeded');
             PRAGMA application_id = 0x54594849; PRAGMA user_version = 1",
        )
        .unwrap();
    drop(database);
    assert_eq!(stored_numbers(&file).await, [7]);
    let database = Connection::open(&file).unwrap();
    let version = |database: &Connection| {
        database.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(version(&database), 3);
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let error = HistoryStore::open(settings(&file)).unwrap_err().to_string();
    let expected = format!(
        "the history database {} was created by a newer Toolyard (schema version 99, supported up to 3)",
        file.display()
    );
    assert_eq!(error, expected);
    assert_eq!(version(&Connection::open(&file).unwrap()), 99);
}

#[tokio::test]
async fn calls_recorded_by_an_older_version_are_still_found() {
    let scratch = Scratch::new();
    let file = scratch.path("history.db");
    let database = Connection::open(&file).unwrap();
    database.execute_batch(STEPS[0]).unwrap();
    database.execute_batch(STEPS[1]).unwrap();
    database
        .execute_batch(
            "INSERT INTO calls (id, at, duration, thing, subject, principal, ended, kind, standing, error) VALUES
             ('00000000000000000000000000000001', 1, 2, 'tool', 'w', 'ada', 'answered', NULL, 'succeeded', NULL),
             ('00000000000000000000000000000002', 2, 2, 'tool', 'w', 'ada', 'failed', NULL, 'failed', NULL),
             ('00000000000000000000000000000003', 3, 2, 'tool', 'w', 'ada', 'error', 'timed out', 'failed', 'slow'),
             ('00000000000000000000000000000004', 4, 2, 'tool', 'w', 'ada', 'error', 'cancelled', 'cancelled', 'x'),
             ('00000000000000000000000000000005', 5, 2, 'tool', 'w', 'ada', 'dropped', NULL, 'cancelled', NULL);
             PRAGMA application_id = 0x54594849; PRAGMA user_version = 2",
        )
        .unwrap();
    drop(database);
    let store = HistoryStore::open(settings(&file)).unwrap();
    store.record(&SampleCall { ended: CallEndReason::Abandoned, ..numbered(6) }.finished());
    store.close().await;
    let store = HistoryStore::open(settings(&file)).unwrap();
    let ends: Vec<CallEndReason> =
        store.recent(all()).await.unwrap().into_iter().map(|call| call.ended).collect();
    let expected = [
        CallEndReason::Abandoned,
        CallEndReason::Abandoned,
        CallEndReason::Error(ErrorKind::Cancelled),
        CallEndReason::Error(ErrorKind::TimedOut),
        CallEndReason::Failed,
        CallEndReason::Succeeded,
    ];
    assert_eq!(ends, expected);
    for (status, numbers) in [
        (CallStatus::Succeeded, vec![1]),
        (CallStatus::Failed, vec![3, 2]),
        (CallStatus::Cancelled, vec![6, 5, 4]),
        (CallStatus::Running, vec![]),
    ] {
        assert_eq!(
            query_numbers(&store, HistoryQuery { status: Some(status), ..all() }).await,
            numbers,
            "{status:?}"
        );
    }
}

#[tokio::test]
async fn a_store_that_cannot_keep_up_loses_calls_and_delays_none() {
    let scratch = Scratch::new();
    let file = scratch.path("history.db");
    let store = HistoryStore::open(settings(&file)).unwrap();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let all: Vec<_> = (0..10_000).map(numbered).collect();
    let started = std::time::Instant::now();
    for call in &all {
        store.record(&call.finished());
    }
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    let lost = store.lost_records();
    assert!((1..=1_808).contains(&lost), "{lost}");
    other.execute_batch("ROLLBACK").unwrap();
    store.close().await;
    assert_eq!((stored_numbers(&file).await.len() > 900, store.lost_records()), (true, lost));
}
