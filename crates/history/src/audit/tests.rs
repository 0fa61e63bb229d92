//! The audit log in real files, including damaged, foreign and unwritable ones.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use toolyard_hub::{ErrorKind, ExecutionId};

use super::{AuditArguments, AuditFailurePolicy, AuditFlush, AuditLog, AuditSettings};
use crate::audit_line::tests::{SampleCall, sample};
use crate::scratch::Scratch;

fn settings(file: PathBuf) -> AuditSettings {
    AuditSettings {
        file,
        arguments: AuditArguments::Omit,
        flush: AuditFlush::Kernel,
        rotate_bytes: 1 << 30,
        keep_files: 3,
        keep_for: None,
        on_failure: AuditFailurePolicy::Continue,
    }
}

fn numbered(number: u64) -> SampleCall {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    sample("work").with(|call| {
        call.id = ExecutionId::from_bytes(bytes);
        call.accepted_at = SystemTime::now();
    })
}

/// Returns the numbers of the lines of a file. Every line must be complete.
fn numbers(file: &Path) -> Vec<u64> {
    let text = fs::read_to_string(file).unwrap_or_default();
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    let number = |line: &str| {
        let read: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        u64::from_str_radix(&read["id"].as_str().unwrap()[..16], 16).unwrap()
    };
    text.lines().map(number).collect()
}

fn rotated(file: &Path, number: usize) -> PathBuf {
    format!("{}.{number}", file.display()).into()
}

#[tokio::test]
async fn a_line_is_written_before_its_call_is_answered() {
    for flush in [AuditFlush::Kernel, AuditFlush::Disk] {
        let scratch = Scratch::new();
        let file = scratch.path("audit.jsonl");
        let audit = AuditLog::open(&AuditSettings { flush, ..settings(file.clone()) }).unwrap();
        for number in 0..3 {
            audit.record(&numbered(number).finished()).await.unwrap();
            assert_eq!(numbers(&file).last(), Some(&number));
        }
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(audit.lost_records(), 0);
    }
}

#[tokio::test]
async fn a_record_is_written_even_if_its_caller_is_gone() {
    let scratch = Scratch::new();
    let file = scratch.path("audit.jsonl");
    let audit = AuditLog::open(&settings(file.clone())).unwrap();
    drop(audit.record(&numbered(1).finished()));
    audit.close().await;
    assert_eq!(numbers(&file), [1]);
    // Records after `close` are lost.
    audit.record(&numbered(2).finished()).await.unwrap();
    assert_eq!((numbers(&file), audit.lost_records()), (vec![1], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writes_of_two_processes_survive_rotation() {
    let scratch = Scratch::new();
    let file = scratch.path("audit.jsonl");
    let rotating = AuditSettings { rotate_bytes: 20_000, keep_files: 100, ..settings(file.clone()) };
    // Each opens the file separately, as two processes would.
    let audits = [rotating.clone(), rotating].map(|settings| Arc::new(AuditLog::open(&settings).unwrap()));
    let records = (0..2_000_u64).map(|number| {
        let audit = Arc::clone(&audits[usize::from(number % 2 == 1)]);
        tokio::spawn(async move { audit.record(&numbered(number).finished()).await })
    });
    for record in records.collect::<Vec<_>>() {
        record.await.unwrap().unwrap();
    }
    let files: Vec<PathBuf> =
        std::iter::once(file.clone()).chain((1..=100).map(|number| rotated(&file, number))).collect();
    let mut all: Vec<u64> = files.iter().flat_map(|file| numbers(file)).collect();
    all.sort_unstable();
    assert_eq!(all, (0..2_000).collect::<Vec<_>>());
    // A slow writer takes many records at once, and rotates once for all of them.
    let existing = files.iter().filter(|file| file.exists()).count();
    assert!((2..=100).contains(&existing), "{existing}");
}

#[tokio::test]
async fn excess_rotated_files_are_removed_and_foreign_files_stay() {
    let scratch = Scratch::new();
    let file = scratch.path("audit.jsonl");
    for name in ["audit.jsonl.9", "audit.jsonl.09", "audit.jsonl.x", "audit.jsonl.old"] {
        fs::write(scratch.path(name), "").unwrap();
    }
    let audit = AuditLog::open(&AuditSettings { rotate_bytes: 1, ..settings(file.clone()) }).unwrap();
    for number in 0..6 {
        audit.record(&numbered(number).finished()).await.unwrap();
    }
    let older: Vec<_> = (1..=3).map(|number| numbers(&rotated(&file, number))).collect();
    assert_eq!((numbers(&file), older), (vec![5], vec![vec![4], vec![3], vec![2]]));
    let mut names: Vec<_> =
        fs::read_dir(scratch.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        ["audit.jsonl", "audit.jsonl.09", "audit.jsonl.1", "audit.jsonl.2", "audit.jsonl.3"]
            .into_iter()
            .chain(["audit.jsonl.old", "audit.jsonl.x"])
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn expired_files_are_removed() {
    let scratch = Scratch::new();
    let file = scratch.path("audit.jsonl");
    let day = Duration::from_secs(86_400);
    let set_age = |path: &Path, age: Duration| {
        File::options().append(true).open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
    };
    let line = crate::audit_line::format_line(
        &numbered(1).with(|call| call.accepted_at = SystemTime::now() - 4 * day).finished(),
        AuditArguments::Omit,
    );
    fs::write(&file, line).unwrap();
    for (number, age) in [(1, 5 * day), (2, 10 * day), (3, 30 * day)] {
        fs::write(rotated(&file, number), "").unwrap();
        set_age(&rotated(&file, number), age);
    }
    // Three files cover nine days, so each is rotated after three.
    let audit = AuditLog::open(&AuditSettings { keep_for: Some(9 * day), ..settings(file.clone()) }).unwrap();
    audit.record(&numbered(2).finished()).await.unwrap();
    assert_eq!((numbers(&file), numbers(&rotated(&file, 1))), (vec![2], vec![1]));
    assert!(rotated(&file, 2).exists() && !rotated(&file, 3).exists());
}

#[tokio::test]
async fn a_torn_line_of_a_killed_process_is_removed_and_foreign_text_stays() {
    let whole = crate::audit_line::format_line(&numbered(1).finished(), AuditArguments::Omit);
    for (before, after) in [
        (format!("{whole}{}", &whole[..whole.len() - 1]), whole.clone()),
        (format!("{whole}{}", &whole[..30]), whole.clone()),
        (format!("{whole}{{\"ti"), whole.clone()),
        (whole[..50].to_owned(), String::new()),
        (whole.clone(), whole.clone()),
        ("unrelated notes".to_owned(), "unrelated notes\n".to_owned()),
        (format!("{whole}# a comment"), format!("{whole}# a comment\n")),
    ] {
        let scratch = Scratch::new();
        let file = scratch.path("audit.jsonl");
        fs::write(&file, &before).unwrap();
        let audit = AuditLog::open(&settings(file.clone())).unwrap();
        audit.record(&numbered(2).finished()).await.unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            text.starts_with(&after) && text[after.len()..].starts_with("{\"time\""),
            "{before:?}: {text:?}"
        );
        assert_eq!(text[after.len()..].lines().count(), 1);
        // The same applies if another process dies while the file is open.
        fs::write(&file, format!("{text}{{\"time\":\"2")).unwrap();
        audit.record(&numbered(3).finished()).await.unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), text.lines().count() + 1);
    }
}

#[tokio::test]
async fn a_file_that_was_moved_away_is_created_again() {
    let scratch = Scratch::new();
    let (file, moved) = (scratch.path("audit.jsonl"), scratch.path("moved"));
    let audit = AuditLog::open(&settings(file.clone())).unwrap();
    audit.record(&numbered(1).finished()).await.unwrap();
    fs::rename(&file, &moved).unwrap();
    audit.record(&numbered(2).finished()).await.unwrap();
    fs::remove_file(&file).unwrap();
    audit.record(&numbered(3).finished()).await.unwrap();
    assert_eq!((numbers(&moved), numbers(&file)), (vec![1], vec![3]));
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_an_error_at_the_start() {
    let scratch = Scratch::new();
    let missing = scratch.path("no/such/directory/audit.jsonl");
    let error = AuditLog::open(&settings(missing.clone())).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("cannot write the audit log {}: No such file or directory (os error 2)", missing.display())
    );
    assert!(AuditLog::open(&settings(scratch.path(""))).is_err());
}

#[tokio::test]
async fn a_full_disk_refuses_calls_only_if_configured() {
    let full = PathBuf::from("/dev/full");
    let audit = AuditLog::open(&settings(full.clone())).unwrap();
    audit.record(&numbered(1).finished()).await.unwrap();
    audit.admit().unwrap();
    audit.close().await;
    assert_eq!(audit.lost_records(), 1);

    let audit =
        AuditLog::open(&AuditSettings { on_failure: AuditFailurePolicy::Refuse, ..settings(full) }).unwrap();
    audit.admit().unwrap();
    assert_eq!(audit.record(&numbered(1).finished()).await.unwrap_err().kind(), ErrorKind::ConnectionLost);
    assert_eq!(audit.admit().unwrap_err().kind(), ErrorKind::CannotConnect);
    assert_eq!(audit.record(&numbered(2).finished()).await.unwrap_err().kind(), ErrorKind::ConnectionLost);
    audit.close().await;
    assert_eq!(audit.lost_records(), 2);
}

#[tokio::test]
async fn failed_writes_are_repeated_once_the_file_is_writable() {
    let scratch = Scratch::new();
    let directory = scratch.path("directory");
    fs::create_dir(&directory).unwrap();
    let file = directory.join("audit.jsonl");
    let audit =
        AuditLog::open(&AuditSettings { on_failure: AuditFailurePolicy::Refuse, ..settings(file.clone()) })
            .unwrap();
    audit.record(&numbered(1).finished()).await.unwrap();
    fs::rename(&directory, scratch.path("away")).unwrap();
    assert!(audit.record(&numbered(2).finished()).await.is_err());
    assert!(audit.record(&numbered(3).finished()).await.is_err());
    fs::rename(scratch.path("away"), &directory).unwrap();
    while audit.admit().is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    audit.record(&numbered(4).finished()).await.unwrap();
    assert_eq!((numbers(&file), audit.lost_records()), (vec![1, 2, 3, 4], 0));
}

#[tokio::test]
async fn waiting_for_the_lock_of_another_process_times_out() {
    let scratch = Scratch::new();
    let file = scratch.path("audit.jsonl");
    let audit = AuditLog::open(&settings(file.clone())).unwrap();
    let other = File::open(&file).unwrap();
    other.lock().unwrap();
    audit.record(&numbered(1).finished()).await.unwrap();
    assert_eq!(numbers(&file), [0_u64; 0]);
    other.unlock().unwrap();
    audit.close().await;
    assert_eq!((numbers(&file), audit.lost_records()), (vec![1], 0));
}

#[tokio::test]
async fn an_existing_file_keeps_its_mode() {
    let scratch = Scratch::new();
    let file = scratch.path("audit.jsonl");
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    AuditLog::open(&settings(file.clone())).unwrap().record(&numbered(1).finished()).await.unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
}
