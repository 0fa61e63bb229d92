//! `[audit]` and `[history]`.

use std::time::Duration;

use toolyard_history::{
    AuditArguments, AuditDestination, AuditFailurePolicy, AuditFlush, AuditSettings, HistoryDamagePolicy,
    HistoryDestination, HistoryStoreSettings,
};

use super::Place;
use crate::Config;

const DAY: Duration = Duration::from_secs(86_400);

fn audit_file(config: &Config) -> AuditSettings {
    let Some(AuditDestination::File(settings)) = &config.audit else { panic!("{:?}", config.audit) };
    settings.clone()
}

fn history_file(config: &Config) -> HistoryStoreSettings {
    let Some(HistoryDestination::File(settings)) = &config.history else { panic!("{:?}", config.history) };
    settings.clone()
}

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
        audit_file(&config);
    assert_eq!(file, place.folder().join("conf/logs/audit.jsonl"));
    assert!(arguments == AuditArguments::Record && config.redaction.is_secret_key("user_ssn"));
    assert_eq!((flush, on_failure, keep_for), (AuditFlush::Disk, AuditFailurePolicy::Refuse, None));
    assert_eq!((rotate_bytes, keep_files), (5_000, 2));
    let HistoryStoreSettings { file, keep_rows, keep_for, on_damage } = history_file(&config);
    assert_eq!(on_damage, HistoryDamagePolicy::MoveAside);
    assert_eq!((file, keep_rows, keep_for), (place.folder().join("past.db"), 7, Some(3 * DAY)));
}

#[test]
fn what_is_not_said_is_as_the_documentation_says() {
    let place = Place::new(&[("toolyard.toml", "[audit]\nfile = \"a\"\n[history]\n")]);
    let config = place.load(&[]);
    let audit = audit_file(&config);
    assert!(matches!(audit.arguments, AuditArguments::Omit));
    assert_eq!((audit.flush, audit.on_failure), (AuditFlush::Kernel, AuditFailurePolicy::Continue));
    assert_eq!((audit.rotate_bytes, audit.keep_files, audit.keep_for), (104_857_600, 10, Some(90 * DAY)));
    let history = history_file(&config);
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

const CLUSTER: &str = r#"
[cluster]
redis = "redis://127.0.0.1"
postgres = "postgres://yard:hush@127.0.0.1/toolyard"
keys = ["0123456789abcdef0123456789abcdef"]
name = "one"
"#;

#[test]
fn records_are_in_the_database_of_the_cluster() {
    let text = r#"
        [audit]
        arguments = true
        keep_days = 1
        on_failure = "refuse"
        [history]
        keep_rows = 7
        keep_days = 3
    "#;
    // The order of the files does not matter.
    for order in [["records.toml", "cluster.toml"], ["cluster.toml", "records.toml"]] {
        let place = Place::new(&[("records.toml", text), ("cluster.toml", CLUSTER)]);
        let config = place.load(&order);
        assert_eq!(config.problems(), []);
        let Some(AuditDestination::Postgres(audit)) = &config.audit else { panic!("{:?}", config.audit) };
        assert_eq!((audit.arguments, audit.keep_for), (AuditArguments::Record, Some(DAY)));
        assert_eq!(audit.on_failure, AuditFailurePolicy::Refuse);
        let Some(HistoryDestination::Postgres(history)) = &config.history else {
            panic!("{:?}", config.history)
        };
        assert_eq!((history.keep_rows, history.keep_for), (7, Some(3 * DAY)));
        let shown = format!("{audit:?} {history:?}");
        let database =
            r#"PostgresSettings { database: "127.0.0.1:5432/toolyard", replica: Some("one"), .. }"#;
        assert_eq!(shown.matches(database).count(), 2, "{shown}");
        assert!(!shown.contains("hush"), "{shown}");
    }
    let config = Place::new(&[("toolyard.toml", CLUSTER)]).load(&[]);
    assert!(config.audit.is_none() && config.history.is_none());
}

#[test]
fn an_audit_log_with_a_file_stays_there_and_a_file_of_the_history_has_no_effect() {
    let text = format!("{CLUSTER}[audit]\nfile = \"a\"\n[history]\nfile = \"h\"\n");
    let place = Place::new(&[("toolyard.toml", &text)]);
    let config = place.load(&[]);
    assert_eq!(audit_file(&config).file, place.folder().join("a"));
    assert!(matches!(config.history, Some(HistoryDestination::Postgres(_))));
    insta::assert_snapshot!(place.problems_text(&[]));
}

#[test]
fn an_unusable_database_is_the_only_problem_of_the_records() {
    let text = CLUSTER.replace("/toolyard", "/toolyard?sslmode=maybe") + "[audit]\n[history]\n";
    let problems = Place::new(&[("toolyard.toml", &text)]).problems_text(&[]);
    assert!(problems.contains("`cluster.postgres` is not a valid PostgreSQL URL"), "{problems}");
    assert!(!problems.contains("hush") && !problems.contains("`audit`"), "{problems}");
}
