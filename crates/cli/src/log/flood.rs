//! Limits how often the same line is logged about the same source, so that a server that fails a
//! million times does not fill a disk. The first lines of each kind are logged, then one every ten
//! seconds. The number of suppressed lines is logged too. The limit applies to every line, so that
//! no call site has to implement it.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// How many lines of one kind about one source are logged in a burst.
const BURST: f64 = 20.0;
/// How often one more line is logged after that, and the number of suppressed lines reported.
const EVERY: Duration = Duration::from_secs(10);
/// How many combinations of kind and source are tracked separately.
const MOST_KEYS: usize = 1_000;
/// How much of the name of a source is kept, in characters.
const LONGEST_NAME: usize = 100;
/// The target of reports about suppressed lines, which are not limited themselves.
const TARGET: &str = "toolyard::log";

/// The call site of a line, and the source that the line is about.
type BucketKey = (Identifier, String);

#[derive(Default)]
pub(super) struct FloodLimit {
    state: Mutex<FloodState>,
}

#[derive(Default)]
struct FloodState {
    buckets: HashMap<BucketKey, Bucket>,
    /// Whether a thread is running that periodically reports suppressed lines.
    reporting: bool,
}

struct Bucket {
    /// How many lines may be logged now.
    left: f64,
    at: Instant,
    suppressed: u64,
    kind: &'static Metadata<'static>,
}

/// A report about suppressed lines.
#[derive(Debug, PartialEq, Eq)]
struct SuppressedLines {
    source: String,
    kind: &'static str,
    lines: u64,
}

impl FloodLimit {
    /// Decides whether a line is logged.
    fn admit(&self, kind: &'static Metadata<'static>, source: String, now: Instant) -> Admission {
        let mut seen = self.lock();
        let mut key = (kind.callsite(), source);
        if !seen.buckets.contains_key(&key) && seen.buckets.len() >= MOST_KEYS {
            seen.buckets.retain(|_, bucket| bucket.suppressed > 0 || bucket.available(now) < BURST);
            if seen.buckets.len() >= MOST_KEYS {
                key.1.clear();
            }
        }
        let fresh = || Bucket { left: BURST, at: now, suppressed: 0, kind };
        let bucket = seen.buckets.entry(key).or_insert_with(fresh);
        (bucket.left, bucket.at) = (bucket.available(now), now);
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Admission::Allowed;
        }
        bucket.suppressed += 1;
        match std::mem::replace(&mut seen.reporting, true) {
            true => Admission::Denied,
            false => Admission::FirstDenied,
        }
    }

    /// Returns the lines suppressed since the last call. If there are none, reporting stops.
    fn take_suppressed(&self) -> Vec<SuppressedLines> {
        let mut seen = self.lock();
        let flooded = seen.buckets.iter_mut().filter(|(_, bucket)| bucket.suppressed > 0);
        let mut reports: Vec<SuppressedLines> = flooded
            .map(|((_, source), bucket)| SuppressedLines {
                source: source.clone(),
                kind: bucket.kind.name(),
                lines: std::mem::take(&mut bucket.suppressed),
            })
            .collect();
        seen.reporting = !reports.is_empty();
        reports.sort_by(|one, other| (&one.source, one.kind).cmp(&(&other.source, other.kind)));
        reports
    }

    /// Logs the number of suppressed lines. Returns false if there were none.
    pub(super) fn report_all(&self) -> bool {
        let reports = self.take_suppressed();
        for SuppressedLines { source, kind, lines } in &reports {
            tracing::warn!(target: TARGET, source, lines, at = kind, "similar log lines were suppressed");
        }
        !reports.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, FloodState> {
        self.state.lock()
    }
}

enum Admission {
    Allowed,
    Denied,
    /// Denied, and the caller must start the reporting thread.
    FirstDenied,
}

impl Bucket {
    fn available(&self, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.at);
        (self.left + since.as_secs_f64() / EVERY.as_secs_f64()).min(BURST)
    }
}

impl<S: Subscriber> Layer<S> for &'static FloodLimit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let kind = event.metadata();
        if kind.target() == TARGET {
            return true;
        }
        let mut about = SourceField::default();
        event.record(&mut about);
        match self.admit(kind, about.0, Instant::now()) {
            Admission::Allowed => true,
            Admission::Denied => false,
            Admission::FirstDenied => {
                let limit = *self;
                let reporting = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
                    // The process does not wait for this thread when it exits.
                    loop {
                        std::thread::park_timeout(EVERY);
                        if !limit.report_all() {
                            return;
                        }
                    }
                });
                if reporting.is_err() {
                    limit.lock().reporting = false;
                }
                false
            }
        }
    }
}

/// The source that a line is about, or an empty string.
#[derive(Default)]
struct SourceField(String);

impl Visit for SourceField {
    fn record_str(&mut self, field: &Field, value: &str) {
        if matches!(field.name(), "server" | "source") {
            self.0 = value.chars().take(LONGEST_NAME).collect();
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if matches!(field.name(), "server" | "source") {
            self.record_str(field, &format!("{value:?}"));
        }
    }
}

#[cfg(test)]
mod tests;
