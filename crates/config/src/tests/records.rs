//! `[audit]` and `[history]`.

use std::time::Duration;

use toolyard_history::{
    AuditArguments, AuditFailurePolicy, AuditFlush, AuditSettings, HistoryDamagePolicy, HistoryStoreSettings,
};

use super::Place;

const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn nothing_is_recorded_by_default() {
    let config = Place::new(&[("toolyard.toml", "demo = true")]).load(&[]);
    assert!(config.audit.is_none() && config.history.is_none());
    let config = Place::new(&[("toolyard.toml", "[history]\noff = true")]).load(&[]);
    assert!(config.history.is_none());
}

#[test]
fn every_key_is_read_and_paths_are_seen_from_the_file() {
    let text = r#"
        [audit]
        file = "logs/audit.jsonl"
        arguments = true
        redact = ["ssn"]
        sync = true
        rotate_bytes = 5000
        keep_files = 2
        keep_days = 0
        on_failure = "refuse"
        [history]
        file = "~/past.db"
        keep_rows = 7
        keep_days = 3
        on_damage = "move-aside"
    "#;
    let place = Place::new(&[("conf/toolyard.toml", text)]);
    let config = place.load(&["conf/toolyard.toml"]);
    assert_eq!(config.problems(), []);
    let AuditSettings { file, arguments, flush, rotate_bytes, keep_files, keep_for, on_failure } =
        config.audit.clone().unwrap();
    assert_eq!(file, place.folder().join("conf/logs/audit.jsonl"));
    assert!(arguments == AuditArguments::Record && config.redaction.is_secret_key("user_ssn"));
    assert_eq!((flush, on_failure, keep_for), (AuditFlush::Disk, AuditFailurePolicy::Refuse, None));
    assert_eq!((rotate_bytes, keep_files), (5_000, 2));
    let HistoryStoreSettings { file, keep_rows, keep_for, on_damage } = config.history.unwrap();
    assert_eq!(on_damage, HistoryDamagePolicy::MoveAside);
    assert_eq!((file, keep_rows, keep_for), (place.folder().join("past.db"), 7, Some(3 * DAY)));
}

#[test]
fn what_is_not_said_is_as_the_documentation_says() {
    let place = Place::new(&[("toolyard.toml", "[audit]\nfile = \"a\"\n[history]\n")]);
    let config = place.load(&[]);
    let audit = config.audit.unwrap();
    assert!(matches!(audit.arguments, AuditArguments::Omit));
    assert_eq!((audit.flush, audit.on_failure), (AuditFlush::Kernel, AuditFailurePolicy::Continue));
    assert_eq!((audit.rotate_bytes, audit.keep_files, audit.keep_for), (104_857_600, 10, Some(90 * DAY)));
    let history = config.history.unwrap();
    assert_eq!(history.file, place.folder().join(".local/share/toolyard/history.db"));
    assert_eq!((history.keep_rows, history.keep_for), (100_000, Some(30 * DAY)));
    assert_eq!(history.on_damage, HistoryDamagePolicy::Fail);
}

#[test]
fn what_makes_no_sense_is_told_at_its_place() {
    let text = r#"[audit]
rotate_bytes = 1
keep_files = 0
keep_days = 99999
on_failure = "panic"
[history]
keep_rows = 0
keep_day = 3
"#;
    insta::assert_snapshot!(Place::new(&[("toolyard.toml", text)]).problems_text(&[]));
}
