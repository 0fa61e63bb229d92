//! `[audit]` and `[history]`: which records of calls are kept, where, and for how long.

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_history::{
    AuditArguments, AuditFailurePolicy, AuditFlush, AuditSettings, HistoryDamagePolicy, HistoryStoreSettings,
};
use toolyard_hub::Redaction;

use super::environment::Environment;
use super::limits::SettingProblem;

const DAY: Duration = Duration::from_secs(86_400);
/// One hundred years. A larger value is most likely a typo.
const MOST_DAYS: u32 = 36_500;
/// With less, a file would hold only a handful of lines.
const LEAST_BYTES: u64 = 4_096;
/// With more files, rotation would take longer than writing.
const MOST_FILES: usize = 10_000;

/// Audit log: one line of JSON for each call.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct AuditKeys {
    /// File that lines are appended to. Relative to the directory of this file; `~` is the home
    /// directory. Required.
    file: Option<String>,
    /// Whether lines contain the arguments of calls, with secrets redacted. Default: false.
    arguments: Option<bool>,
    /// Words in key names whose values are redacted, in addition to the built-in ones. Applies to
    /// the audit log, the history, transcripts and the log. Default: none.
    redact: Option<Vec<String>>,
    /// Whether each line is synced to disk before the call is answered, so that it survives a power
    /// failure. Default: false.
    sync: Option<bool>,
    /// File size, in bytes, at which the file is rotated. At least 4096. Default: 104857600.
    rotate_bytes: Option<u64>,
    /// Number of rotated files to keep. From 1 to 10000. Default: 10.
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

/// Call history in a SQLite database. The presence of this table enables it.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct HistoryKeys {
    /// Path of the database. Relative to the directory of this file; `~` is the home directory.
    /// Default: `toolyard/history.db` in `$XDG_DATA_HOME` (`~/.local/share`).
    file: Option<String>,
    /// Approximate number of calls to keep. At least 1. Default: 100000.
    keep_rows: Option<u64>,
    /// Number of days to keep calls. 0 means forever. At most 36500. Default: 30.
    keep_days: Option<u32>,
    /// Whether the history is disabled despite the presence of this table. Default: false.
    off: Option<bool>,
    /// What happens if the database is damaged at startup. Default: "fail".
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

/// Builds the audit settings and appends invalid settings to `wrong`.
pub(super) fn build_audit(
    keys: AuditKeys,
    around: &Environment,
    folder: &Path,
    wrong: &mut Vec<SettingProblem>,
) -> Option<AuditSettings> {
    let mut check = |fine: bool, key: &[&str], why: &str| {
        if !fine {
            wrong.push(SettingProblem::new(&[&["audit"], key].concat(), why));
        }
    };
    let rotate_bytes = keys.rotate_bytes.unwrap_or(100 << 20);
    let keep_files = keys.keep_files.unwrap_or(10);
    check(keys.file.as_deref().is_some_and(|file| !file.is_empty()), &[], "requires the key `file`");
    check(rotate_bytes >= LEAST_BYTES, &["rotate_bytes"], "must be at least 4096");
    check((1..=MOST_FILES).contains(&keep_files), &["keep_files"], "must be from 1 to 10000");
    check(keys.keep_days.is_none_or(|days| days <= MOST_DAYS), &["keep_days"], "must be at most 36500");
    Some(AuditSettings {
        file: around.resolve(&keys.file?, folder),
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
    })
}

/// Builds the history settings and appends invalid settings to `wrong`.
pub(super) fn build_history(
    keys: HistoryKeys,
    around: &Environment,
    folder: &Path,
    wrong: &mut Vec<SettingProblem>,
) -> Option<HistoryStoreSettings> {
    if keys.off == Some(true) {
        return None;
    }
    let mut check = |fine: bool, key: &[&str], why: &str| {
        if !fine {
            wrong.push(SettingProblem::new(&[&["history"], key].concat(), why));
        }
    };
    let keep_rows = keys.keep_rows.unwrap_or(100_000);
    check(keep_rows > 0, &["keep_rows"], "must be at least 1");
    check(keys.keep_days.is_none_or(|days| days <= MOST_DAYS), &["keep_days"], "must be at most 36500");
    let file: Option<PathBuf> = match keys.file.filter(|file| !file.is_empty()) {
        Some(file) => Some(around.resolve(&file, folder)),
        None => around.data_home().map(|data| data.join("toolyard").join("history.db")),
    };
    check(file.is_some(), &[], "requires the key `file` because there is no home directory");
    Some(HistoryStoreSettings {
        file: file?,
        keep_rows,
        keep_for: days(keys.keep_days.unwrap_or(30)),
        on_damage: match keys.on_damage {
            Some(OnDamageKey::MoveAside) => HistoryDamagePolicy::MoveAside,
            Some(OnDamageKey::Fail) | None => HistoryDamagePolicy::Fail,
        },
    })
}

fn days(number: u32) -> Option<Duration> {
    (number > 0).then(|| DAY * number)
}
