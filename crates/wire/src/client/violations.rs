//! What a server has done against the rules of the protocol: how often, and the last of it in words. Nothing is decided
//! by it; whoever tests a server wants to know.

use std::collections::VecDeque;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

/// How many are kept in words.
const KEPT: usize = 100;
/// How long one of them is.
const LONGEST: usize = 600;

/// Broken rules of one connection.
#[derive(Debug, Default)]
pub struct Violations {
    buffer: Mutex<ViolationBuffer>,
    /// The last answer that belongs to no request.
    stray: watch::Sender<Option<String>>,
}

#[derive(Debug, Default)]
struct ViolationBuffer {
    total: u64,
    last: VecDeque<String>,
    /// How many were taken.
    taken: u64,
}

impl Violations {
    /// The server has broken this rule.
    pub fn add(&self, rule: &str) {
        let rule = shortened(rule);
        let mut kept = self.lock();
        kept.total += 1;
        kept.last.push_back(rule);
        if kept.last.len() > KEPT {
            kept.last.pop_front();
        }
    }

    /// The server has answered what nobody asked: whoever waits for an answer may be waiting for this one.
    pub(crate) fn add_stray_response(&self, rule: &str) {
        self.add(rule);
        self.stray.send_replace(Some(shortened(rule)));
    }

    pub fn total(&self) -> u64 {
        self.lock().total
    }

    /// The last of them, oldest first.
    pub fn last(&self) -> Vec<String> {
        self.lock().last.iter().cloned().collect()
    }

    /// Those that were not taken before, as far as they are kept, and how many more there were.
    pub fn take(&self) -> (Vec<String>, u64) {
        let mut kept = self.lock();
        let new = kept.total - kept.taken;
        kept.taken = kept.total;
        let told = usize::try_from(new).map_or(kept.last.len(), |new| new.min(kept.last.len()));
        let first = kept.last.len() - told;
        (kept.last.range(first..).cloned().collect(), new - told as u64)
    }

    /// Completes with the next answer that belongs to no request.
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
        let (told, more) = violations.take();
        assert_eq!((told.len(), told[0].as_str(), more), (KEPT, "5", 5));
        assert_eq!((violations.total(), violations.last().len()), (KEPT as u64 + 7, KEPT));
    }

    #[tokio::test]
    async fn an_answer_to_nothing_is_told_to_whoever_waits() {
        let violations = Violations::default();
        violations.add_stray_response("before");
        let stray = violations.next_stray_response();
        violations.add_stray_response("it answered with the id 7, which no request has");
        assert_eq!(stray.await, "it answered with the id 7, which no request has");
    }
}
