//! `[audit]` and `[history]`: which records of calls are kept, where, and for how long.

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_history::{
    AuditArguments, AuditDestination, AuditFailurePolicy, AuditFlush, AuditSettings, HistoryDamagePolicy,
    HistoryDestination, HistoryStoreSettings, PostgresAuditSettings, PostgresHistorySettings,
};
use toolyard_hub::Redaction;
use toolyard_postgres::PostgresSettings;

use super::environment::Environment;
use super::limits::SettingProblem;
use super::problem::{ConfigProblem, ProblemSeverity};

const DAY: Duration = Duration::from_secs(86_400);
/// One hundred years. A larger value is most likely a typo.
const MOST_DAYS: u32 = 36_500;
/// With less, a file would hold only a handful of lines.
const LEAST_BYTES: u64 = 4_096;
/// With more files, rotation would take longer than writing.
const MOST_FILES: usize = 10_000;

/// Audit log: one line of JSON for each call, in a file or in the database `cluster.postgres`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct AuditKeys {
    /// File that lines are appended to. Relative to the directory of this file; `~` is the home
    /// directory. Without a file, the audit log is in the database `cluster.postgres`. Required
    /// without `cluster.postgres`.
    file: Option<String>,
    /// Whether lines contain the arguments of calls, with secrets redacted. Default: false.
    arguments: Option<bool>,
    /// Words in key names whose values are redacted, in addition to the built-in ones. Applies to
    /// the audit log, the history, transcripts and the log. Default: none.
    redact: Option<Vec<String>>,
    /// Whether each line is synced to disk before the call is answered, so that it survives a power
    /// failure. Only for a file. PostgreSQL does so unless its `synchronous_commit` is off.
    /// Default: false.
    sync: Option<bool>,
    /// File size, in bytes, at which the file is rotated. Only for a file. At least 4096. Default:
    /// 104857600.
    rotate_bytes: Option<u64>,
    /// Number of rotated files to keep. Only for a file. From 1 to 10000. Default: 10.
    keep_files: Option<usize>,
    /// Number of days to keep lines. 0 means forever. At most 36500. Default: 90.
    keep_days: Option<u32>,
    /// What happens to calls while lines cannot be written. Default: "continue".
    on_failure: Option<OnFailureKey>,
}

/// `continue`: calls proceed without a record. `refuse`: calls that cannot be recorded are neither
/// made nor answered.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnFailureKey {
    Continue,
    Refuse,
}

/// Call history, in a SQLite database or in the database `cluster.postgres`. The presence of this
/// table enables it.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct HistoryKeys {
    /// Path of the SQLite database. Relative to the directory of this file; `~` is the home
    /// directory. Ignored if there is `cluster.postgres`. Default: `toolyard/history.db` in `$XDG_DATA_HOME` (`~/.local/share`).
    file: Option<String>,
    /// Approximate number of calls to keep. At least 1. Default: 100000.
    keep_rows: Option<u64>,
    /// Number of days to keep calls. 0 means forever. At most 36500. Default: 30.
    keep_days: Option<u32>,
    /// Whether the history is disabled despite the presence of this table. Default: false.
    off: Option<bool>,
    /// What happens if the SQLite database is damaged at startup. Default: "fail".
    on_damage: Option<OnDamageKey>,
}

/// `fail`: startup fails, and the error explains how to move the file. `move-aside`: the file is
/// renamed to `FILE.damaged-TIME` and a new database is created.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OnDamageKey {
    Fail,
    MoveAside,
}

impl AuditKeys {
    /// Returns what is redacted in records and logs.
    pub(super) fn redaction(&self) -> Redaction {
        Redaction::with_extra_words(self.redact.iter().flatten().map(String::as_str))
    }
}

/// An audit log or a history, until it is known whether there is a database for it.
#[derive(Debug)]
pub(super) struct RecordPlan<S> {
    settings: S,
    /// Relative paths have been resolved.
    file: Option<PathBuf>,
    /// Reported if there is no database.
    without_database: Option<ConfigProblem>,
    /// Reported if there is one.
    with_database: Option<ConfigProblem>,
}

/// The settings that do not depend on the destination.
#[derive(Debug)]
pub(super) struct AuditPlan {
    arguments: AuditArguments,
    flush: AuditFlush,
    rotate_bytes: u64,
    keep_files: usize,
    keep_for: Option<Duration>,
    on_failure: AuditFailurePolicy,
}

/// The settings that do not depend on the destination.
#[derive(Debug)]
pub(super) struct HistoryPlan {
    keep_rows: u64,
    keep_for: Option<Duration>,
    on_damage: HistoryDamagePolicy,
}

/// Builds the audit settings and appends invalid settings to `wrong`. `problem` makes a problem at
/// a place.
pub(super) fn plan_audit(
    keys: AuditKeys,
    around: &Environment,
    folder: &Path,
    wrong: &mut Vec<SettingProblem>,
    problem: impl Fn(&[&str], ProblemSeverity, &str) -> ConfigProblem,
) -> RecordPlan<AuditPlan> {
    let mut check = |fine: bool, key: &str, why: &str| {
        if !fine {
            wrong.push(SettingProblem::new(&["audit", key], why));
        }
    };
    let rotate_bytes = keys.rotate_bytes.unwrap_or(100 << 20);
    let keep_files = keys.keep_files.unwrap_or(10);
    check(rotate_bytes >= LEAST_BYTES, "rotate_bytes", "must be at least 4096");
    check((1..=MOST_FILES).contains(&keep_files), "keep_files", "must be from 1 to 10000");
    check(keys.keep_days.is_none_or(|days| days <= MOST_DAYS), "keep_days", "must be at most 36500");
    let file = keys.file.filter(|file| !file.is_empty()).map(|file| around.resolve(&file, folder));
    let settings = AuditPlan {
        arguments: match keys.arguments {
            Some(true) => AuditArguments::Record,
            Some(false) | None => AuditArguments::Omit,
        },
        flush: if keys.sync == Some(true) { AuditFlush::Disk } else { AuditFlush::Kernel },
        rotate_bytes,
        keep_files,
        keep_for: days(keys.keep_days.unwrap_or(90)),
        on_failure: match keys.on_failure {
            Some(OnFailureKey::Refuse) => AuditFailurePolicy::Refuse,
            Some(OnFailureKey::Continue) | None => AuditFailurePolicy::Continue,
        },
    };
    let homeless = "`audit` requires the key `file`";
    let without_database = file.is_none().then(|| problem(&["audit"], ProblemSeverity::Error, homeless));
    RecordPlan { settings, file, without_database, with_database: None }
}

/// Builds the history settings and appends invalid settings to `wrong`. `problem` makes a problem
/// at a place.
pub(super) fn plan_history(
    keys: HistoryKeys,
    around: &Environment,
    folder: &Path,
    wrong: &mut Vec<SettingProblem>,
    problem: impl Fn(&[&str], ProblemSeverity, &str) -> ConfigProblem,
) -> Option<RecordPlan<HistoryPlan>> {
    if keys.off == Some(true) {
        return None;
    }
    let mut check = |fine: bool, key: &str, why: &str| {
        if !fine {
            wrong.push(SettingProblem::new(&["history", key], why));
        }
    };
    let keep_rows = keys.keep_rows.unwrap_or(100_000);
    check(keep_rows > 0, "keep_rows", "must be at least 1");
    check(keys.keep_days.is_none_or(|days| days <= MOST_DAYS), "keep_days", "must be at most 36500");
    let named = keys.file.filter(|file| !file.is_empty());
    let unused = "`history.file` has no effect, because the history is in the database `cluster.postgres`";
    let with_database =
        named.as_ref().map(|_| problem(&["history", "file"], ProblemSeverity::Warning, unused));
    let file: Option<PathBuf> = match named {
        Some(file) => Some(around.resolve(&file, folder)),
        None => around.data_home().map(|data| data.join("toolyard").join("history.db")),
    };
    let homeless = "`history` requires the key `file` because there is no home directory";
    let without_database = file.is_none().then(|| problem(&["history"], ProblemSeverity::Error, homeless));
    let settings = HistoryPlan {
        keep_rows,
        keep_for: days(keys.keep_days.unwrap_or(30)),
        on_damage: match keys.on_damage {
            Some(OnDamageKey::MoveAside) => HistoryDamagePolicy::MoveAside,
            Some(OnDamageKey::Fail) | None => HistoryDamagePolicy::Fail,
        },
    };
    Some(RecordPlan { settings, file, without_database, with_database })
}

impl RecordPlan<AuditPlan> {
    /// Returns the destination: the file, or else the database.
    pub(super) fn resolve(
        self,
        database: Option<&PostgresSettings>,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<AuditDestination> {
        let AuditPlan { arguments, flush, rotate_bytes, keep_files, keep_for, on_failure } = self.settings;
        let Some(file) = self.file else {
            let Some(database) = database.cloned() else {
                problems.extend(self.without_database);
                return None;
            };
            let settings = PostgresAuditSettings { database, arguments, keep_for, on_failure };
            return Some(AuditDestination::Postgres(settings));
        };
        Some(AuditDestination::File(AuditSettings {
            file,
            arguments,
            flush,
            rotate_bytes,
            keep_files,
            keep_for,
            on_failure,
        }))
    }
}

impl RecordPlan<HistoryPlan> {
    /// Returns the destination: the database, or else the file.
    pub(super) fn resolve(
        self,
        database: Option<&PostgresSettings>,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<HistoryDestination> {
        let HistoryPlan { keep_rows, keep_for, on_damage } = self.settings;
        if let Some(database) = database.cloned() {
            problems.extend(self.with_database);
            let settings = PostgresHistorySettings { database, keep_rows, keep_for };
            return Some(HistoryDestination::Postgres(settings));
        }
        problems.extend(self.without_database);
        let settings = HistoryStoreSettings { file: self.file?, keep_rows, keep_for, on_damage };
        Some(HistoryDestination::File(settings))
    }
}

fn days(number: u32) -> Option<Duration> {
    (number > 0).then(|| DAY * number)
}
