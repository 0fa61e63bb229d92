//! `[audit]` and `[history]`: what is kept of calls, where, and for how long.

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
/// A hundred years: what is longer is a slip.
const MOST_DAYS: u32 = 36_500;
/// Below this a file would hold a handful of lines.
const LEAST_BYTES: u64 = 4_096;
/// More than this, and moving them aside would take longer than writing.
const MOST_FILES: usize = 10_000;

/// One line of JSON for every call.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct AuditKeys {
    /// The file that lines are appended to; `~` is the home folder. Seen from the folder of this file.
    file: Option<String>,
    /// Whether lines carry the arguments of calls.
    arguments: Option<bool>,
    /// Words in keys whose values are hidden, beside the usual ones: here, in transcripts and in the log.
    redact: Option<Vec<String>>,
    /// Whether a line is on the disk, and not only with the kernel, before its call is answered.
    sync: Option<bool>,
    /// The size, in bytes, from which on a file is put aside and a new one begun.
    rotate_bytes: Option<u64>,
    /// How many files that were put aside are kept.
    keep_files: Option<usize>,
    /// For how many days lines are kept. 0 means for ever.
    keep_days: Option<u32>,
    /// What becomes of calls while lines cannot be written.
    on_failure: Option<OnFailureKey>,
}

/// `continue`: calls go on; `refuse`: calls that cannot be put on record are neither answered nor made.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnFailureKey {
    Continue,
    Refuse,
}

/// Past calls in a database, for those who ask.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct HistoryKeys {
    /// The database; `~` is the home folder. Seen from the folder of this file.
    file: Option<String>,
    /// About how many calls are kept.
    keep_rows: Option<u64>,
    /// For how many days calls are kept. 0 means for ever.
    keep_days: Option<u32>,
    /// Whether nothing is kept after all.
    off: Option<bool>,
    /// What happens to a damaged database at start.
    on_damage: Option<OnDamageKey>,
}

/// `fail`: the start fails, and the error says how to move the file; `move-aside`: the file is renamed to
/// `FILE.damaged-TIME` and a new one is started.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OnDamageKey {
    Fail,
    MoveAside,
}

impl AuditKeys {
    /// What is hidden in all that is kept and shown.
    pub(super) fn redaction(&self) -> Redaction {
        Redaction::with_extra_words(self.redact.iter().flatten().map(String::as_str))
    }
}

/// What the audit is to be, and what is wrong with it.
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
    check(keys.file.as_deref().is_some_and(|file| !file.is_empty()), &[], "needs a file");
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

/// What the history is to be, and what is wrong with it.
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
    check(file.is_some(), &[], "needs a file, because there is no home folder to put it in");
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
