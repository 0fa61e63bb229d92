//! Protocol violations of a server: how many there were, and descriptions of the most recent ones.
//! They have no effect on the connection; they inform you when you test a server.

use std::collections::VecDeque;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

/// How many descriptions are kept.
const KEPT: usize = 100;
/// The maximum number of characters of a description.
const LONGEST: usize = 600;

/// The protocol violations of one connection.
#[derive(Debug, Default)]
pub struct Violations {
    buffer: Mutex<ViolationBuffer>,
    /// The last response that matches no request.
    stray: watch::Sender<Option<String>>,
}

#[derive(Debug, Default)]
struct ViolationBuffer {
    total: u64,
    last: VecDeque<String>,
    /// How many violations have been taken.
    taken: u64,
}

impl Violations {
    /// Records a violation of this rule.
    pub fn add(&self, rule: &str) {
        let rule = shortened(rule);
        let mut inner = self.lock();
        inner.total += 1;
        inner.last.push_back(rule);
        if inner.last.len() > KEPT {
            inner.last.pop_front();
        }
    }

    /// Records a response that matches no request. A waiting request may be waiting for this
    /// response.
    pub(crate) fn add_stray_response(&self, rule: &str) {
        self.add(rule);
        self.stray.send_replace(Some(shortened(rule)));
    }

    pub fn total(&self) -> u64 {
        self.lock().total
    }

    /// Returns the most recent violations, oldest first.
    pub fn last(&self) -> Vec<String> {
        self.lock().last.iter().cloned().collect()
    }

    /// Returns the kept violations that were not taken before, and how many older ones were
    /// dropped.
    pub fn take(&self) -> (Vec<String>, u64) {
        let mut inner = self.lock();
        let new = inner.total - inner.taken;
        inner.taken = inner.total;
        let count = usize::try_from(new).map_or(inner.last.len(), |new| new.min(inner.last.len()));
        let first = inner.last.len() - count;
        (inner.last.range(first..).cloned().collect(), new - count as u64)
    }

    /// Completes with the next response that matches no request.
    pub fn next_stray_response(&self) -> impl Future<Output = String> + Send + use<> {
        let mut strays = self.stray.subscribe();
        async move {
            match strays.changed().await {
                Ok(()) => strays.borrow().clone().unwrap_or_default(),
                Err(_) => std::future::pending().await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ViolationBuffer> {
        self.buffer.lock()
    }
}

fn shortened(rule: &str) -> String {
    rule.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Violations};

    #[test]
    fn violations_are_counted_all_kept_in_part_and_taken_once() {
        let violations = Violations::default();
        violations.add("one");
        violations.add("two");
        assert_eq!(violations.take(), (vec!["one".to_owned(), "two".to_owned()], 0));
        assert_eq!(violations.take(), (Vec::new(), 0));
        for number in 0..KEPT + 5 {
            violations.add(&number.to_string());
        }
        let (taken, more) = violations.take();
        assert_eq!((taken.len(), taken[0].as_str(), more), (KEPT, "5", 5));
        assert_eq!((violations.total(), violations.last().len()), (KEPT as u64 + 7, KEPT));
    }

    #[tokio::test]
    async fn an_unmatched_response_is_reported_to_waiting_requests() {
        let violations = Violations::default();
        violations.add_stray_response("before");
        let stray = violations.next_stray_response();
        violations.add_stray_response("the response ID 7 matches no request");
        assert_eq!(stray.await, "the response ID 7 matches no request");
    }
}
