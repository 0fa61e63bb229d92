//! Tests of the limit on repeated log lines.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::{Admission, BURST, EVERY, FloodLimit, MOST_KEYS, SuppressedLines};

/// Counts the lines that pass the limit.
struct Count(Arc<Mutex<usize>>);

impl<S: Subscriber> Layer<S> for Count {
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        *self.0.lock() += 1;
    }
}

/// Logs through a separate limit. Returns the limit and the number of lines that passed it.
fn limited(log: impl FnOnce()) -> (&'static FloodLimit, usize) {
    let limit: &'static FloodLimit = Box::leak(Box::default());
    // Prevents the start of a reporting thread.
    limit.lock().reporting = true;
    let count = Arc::new(Mutex::new(0));
    let subscriber = tracing_subscriber::registry().with(limit).with(Count(Arc::clone(&count)));
    tracing::subscriber::with_default(subscriber, log);
    let count = *count.lock();
    (limit, count)
}

#[test]
fn a_flood_of_one_kind_about_one_source_hides_no_other() {
    let (limit, count) = limited(|| {
        for number in 0..10_000 {
            for server in ["one", "two"] {
                tracing::warn!(server, number, "flood");
            }
            if number % 1_000 == 0 {
                tracing::warn!(server = %"one", "another kind");
            }
        }
        tracing::warn!("about no source");
    });
    assert_eq!(count, 2 * 20 + 10 + 1);
    let reports = limit.take_suppressed();
    let [one, two] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!(
        (one.source.as_str(), one.lines, two.source.as_str(), two.lines),
        ("one", 9_980, "two", 9_980)
    );
    assert!(one.kind.contains("flood/tests.rs"), "{}", one.kind);
    assert_eq!(limit.take_suppressed(), Vec::<SuppressedLines>::new());
}

#[test]
fn one_more_line_is_logged_from_time_to_time_and_a_burst_after_a_long_silence() {
    let limit = FloodLimit::default();
    let kind = metadata();
    let admitted = |at: Instant| {
        (0..1_000).filter(|_| matches!(limit.admit(kind, "s".to_owned(), at), Admission::Allowed)).count()
    };
    let start = Instant::now();
    assert_eq!(admitted(start), 20);
    assert_eq!(admitted(start + EVERY / 2), 0);
    assert_eq!(admitted(start + EVERY), 1);
    assert_eq!(admitted(start + 4 * EVERY), 3);
    assert_eq!(admitted(start + Duration::from_secs(100_000)), BURST as usize);
}

#[test]
fn names_without_end_do_not_fill_the_memory() {
    let (limit, _) = limited(|| {
        for number in 0..3 * MOST_KEYS {
            tracing::warn!(server = format!("{number}{}", "x".repeat(1_000)), "flood");
        }
    });
    let seen = limit.lock();
    assert!(seen.buckets.len() <= MOST_KEYS + 1, "{}", seen.buckets.len());
    assert!(seen.buckets.keys().all(|(_, name)| name.len() <= 100));
}

/// Returns the metadata of a log line.
fn metadata() -> &'static tracing::Metadata<'static> {
    static FOUND: Mutex<Option<&'static tracing::Metadata<'static>>> = Mutex::new(None);
    struct Find;
    impl<S: Subscriber> Layer<S> for Find {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            *FOUND.lock() = Some(event.metadata());
        }
    }
    tracing::subscriber::with_default(tracing_subscriber::registry().with(Find), || tracing::warn!("found"));
    FOUND.lock().unwrap()
}
