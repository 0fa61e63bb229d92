//! A limit on how often the same line is logged about the same source: a server that does something wrong a million
//! times must not fill a disk. The first lines of each kind are logged, then one every ten seconds, and how many were
//! left out is told. Every line goes through here, so that none can be forgotten.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// How many lines of one kind about one source are logged at once.
const BURST: f64 = 20.0;
/// How often one more is logged after that, and how many were left out is told.
const EVERY: Duration = Duration::from_secs(10);
/// How many kinds of lines about how many sources are told apart.
const MOST_KEYS: usize = 1_000;
/// The longest name of a source that is kept, in characters.
const LONGEST_NAME: usize = 100;
/// The target of lines about lines, which are not limited.
const TARGET: &str = "toolyard::log";

/// Where a line is written in the code, and the source that it is about.
type BucketKey = (Identifier, String);

#[derive(Default)]
pub(super) struct FloodLimit {
    state: Mutex<FloodState>,
}

#[derive(Default)]
struct FloodState {
    buckets: HashMap<BucketKey, Bucket>,
    /// A thread tells from time to time how many lines were left out.
    reporting: bool,
}

struct Bucket {
    /// How many lines may be logged now.
    left: f64,
    at: Instant,
    suppressed: u64,
    kind: &'static Metadata<'static>,
}

/// Lines that were left out.
#[derive(Debug, PartialEq, Eq)]
struct SuppressedLines {
    source: String,
    kind: &'static str,
    lines: u64,
}

impl FloodLimit {
    /// Whether a line is logged.
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

    /// What was left out since the last time; nobody reports any more if that is nothing.
    fn take_suppressed(&self) -> Vec<SuppressedLines> {
        let mut seen = self.lock();
        let flooded = seen.buckets.iter_mut().filter(|(_, bucket)| bucket.suppressed > 0);
        let mut told: Vec<SuppressedLines> = flooded
            .map(|((_, source), bucket)| SuppressedLines {
                source: source.clone(),
                kind: bucket.kind.name(),
                lines: std::mem::take(&mut bucket.suppressed),
            })
            .collect();
        seen.reporting = !told.is_empty();
        told.sort_by(|one, other| (&one.source, one.kind).cmp(&(&other.source, other.kind)));
        told
    }

    /// Tells what was left out; false if nothing was.
    pub(super) fn report_all(&self) -> bool {
        let told = self.take_suppressed();
        for SuppressedLines { source, kind, lines } in &told {
            tracing::warn!(target: TARGET, source, lines, at = kind, "similar log lines were suppressed");
        }
        !told.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, FloodState> {
        self.state.lock()
    }
}

enum Admission {
    Allowed,
    Denied,
    /// Somebody has to report from now on.
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
                    // Nothing wakes it: the end of the process does not wait for it.
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

/// The source that a line is about; empty if it is about none.
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
