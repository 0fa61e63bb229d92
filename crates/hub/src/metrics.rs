//! Counters of calls: how many, of which tool, how they ended and how long they took. They are
//! updated on the call path itself, so that no call is missed.
//!
//! Names are untrusted, so only a limited number have counters of their own. Further calls are
//! counted under `other`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::events::CallEndReason;
use parking_lot::{Mutex, MutexGuard};

/// Maximum number of tools, and of sources, with counters of their own.
const MOST_TOOLS: usize = 1_000;
const MOST_SOURCES: usize = 200;
/// Stands for all names beyond the limit.
pub(crate) const OTHER: &str = "other";

/// The counters of a yard.
#[derive(Debug, Default)]
pub struct CallMetrics {
    counts: Mutex<MetricsTable>,
}

#[derive(Debug, Default)]
struct MetricsTable {
    /// The index of each source in the list.
    source_indices: HashMap<Arc<str>, usize>,
    sources: Vec<SourceMetrics>,
    tools: usize,
}

/// The calls of one source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceMetrics {
    /// Calls in progress.
    pub running: u64,
    /// Finished calls, by full tool name and how they ended. Resources, prompts and completions
    /// have no tool and are counted under the empty name.
    pub finished: BTreeMap<Arc<str>, Vec<(CallEndReason, u64)>>,
    pub durations: Histogram,
}

/// A histogram of call durations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    /// Number of calls that took at most as long as the bound of each bucket.
    pub buckets: [u64; Self::BOUNDS.len()],
    pub count: u64,
    pub seconds: f64,
}

impl Histogram {
    /// Upper bounds of the buckets, in seconds.
    pub const BOUNDS: [f64; 14] =
        [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0];

    fn add(&mut self, seconds: f64) {
        let fits = Self::BOUNDS.iter().zip(&mut self.buckets).filter(|(bound, _)| seconds <= **bound);
        fits.for_each(|(_, count)| *count += 1);
        self.count += 1;
        self.seconds += seconds;
    }
}

impl CallMetrics {
    /// Returns the counters by source. Calls of unknown names have no source and are counted under
    /// the empty name.
    pub fn snapshot(&self) -> BTreeMap<Arc<str>, SourceMetrics> {
        let counts = self.lock();
        let named =
            counts.source_indices.iter().filter_map(|(name, at)| Some((name, counts.sources.get(*at)?)));
        named.map(|(name, counted)| (Arc::clone(name), counted.clone())).collect()
    }

    pub(crate) fn record_start(&self, source: &str) {
        self.lock().source_mut(source).running += 1;
    }

    pub(crate) fn record_end(&self, source: &str, tool: &str, ended: CallEndReason, duration: Duration) {
        let mut counts = self.lock();
        let full = counts.tools >= MOST_TOOLS;
        let counted = counts.source_mut(source);
        counted.running = counted.running.saturating_sub(1);
        counted.durations.add(duration.as_secs_f64());
        let tool = if full && !counted.finished.contains_key(tool) { OTHER } else { tool };
        let before = counted.finished.len();
        let ends = match counted.finished.get_mut(tool) {
            Some(ends) => ends,
            None => counted.finished.entry(tool.into()).or_default(),
        };
        match ends.iter_mut().find(|(end, _)| *end == ended) {
            Some((_, count)) => *count += 1,
            None => ends.push((ended, 1)),
        }
        let more = counted.finished.len() - before;
        counts.tools += more;
    }

    fn lock(&self) -> MutexGuard<'_, MetricsTable> {
        self.counts.lock()
    }
}

impl MetricsTable {
    fn source_mut(&mut self, source: &str) -> &mut SourceMetrics {
        let full = self.sources.len() >= MOST_SOURCES && !self.source_indices.contains_key(source);
        let source = if full { OTHER } else { source };
        let at = match self.source_indices.get(source) {
            Some(at) => *at,
            None => {
                self.source_indices.insert(source.into(), self.sources.len());
                self.sources.push(SourceMetrics::default());
                self.sources.len() - 1
            }
        };
        &mut self.sources[at]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{CallMetrics, MOST_SOURCES, MOST_TOOLS};
    use crate::error::{ErrorKind, HubError};
    use crate::events::CallEndReason;
    use crate::fake::{ScriptedSource, tool_request, tools, yard};

    #[test]
    fn names_are_only_so_many() {
        let tally = CallMetrics::default();
        let twice = 2 * MOST_TOOLS;
        for at in 0..twice {
            let (source, tool) = (format!("source {}", at % (2 * MOST_SOURCES)), format!("tool {at}"));
            tally.record_start(&source);
            tally.record_end(&source, &tool, CallEndReason::Succeeded, Duration::from_millis(1));
        }
        let counted = tally.snapshot();
        assert_eq!(counted.len(), MOST_SOURCES + 1);
        let names: usize = counted.values().map(|counted| counted.finished.len()).sum();
        assert!(names <= MOST_TOOLS + counted.len(), "{names}");
        assert_eq!(counted.values().map(|counted| counted.durations.count).sum::<u64>(), twice as u64);
        assert_eq!(counted["other"].durations.count, MOST_TOOLS as u64);
        assert!(counted.values().all(|counted| counted.running == 0));
    }

    #[tokio::test]
    async fn every_call_is_counted_however_it_ends() {
        let db = ScriptedSource::with_handler("db", tools(&["query", "fail", "hang"]), |call| async move {
            match call.target.name() {
                "fail" => Err(HubError::new(ErrorKind::ConnectionLost, "gone")),
                "hang" => std::future::pending().await,
                _ => Ok(crate::fake::done()),
            }
        });
        let yard = yard(&[&db]);
        yard.call(tool_request("query")).await.unwrap();
        yard.call(tool_request("mcp__db__query")).await.unwrap();
        yard.call(tool_request("fail")).await.unwrap_err();
        yard.call(tool_request("nothing")).await.unwrap_err();
        {
            let mut hanging = Box::pin(yard.call(tool_request("hang")));
            assert!(futures_util::poll!(&mut hanging).is_pending());
            assert_eq!(yard.metrics().snapshot()["db"].running, 1);
        }
        let counted = yard.metrics().snapshot();
        let lines: Vec<String> = counted
            .iter()
            .flat_map(|(source, counted)| {
                let running = format!("{source:?} runs {}", counted.running);
                let over =
                    counted.finished.iter().map(move |(tool, ends)| format!("{source:?} {tool:?} {ends:?}"));
                std::iter::once(running).chain(over)
            })
            .collect();
        let expected = [
            r#""" runs 0"#,
            r#""" "" [(Error(UnknownTool), 1)]"#,
            r#""db" runs 0"#,
            r#""db" "mcp__db__fail" [(Error(ConnectionLost), 1)]"#,
            r#""db" "mcp__db__hang" [(Abandoned, 1)]"#,
            r#""db" "mcp__db__query" [(Succeeded, 2)]"#,
        ];
        assert_eq!(lines, expected);
    }
}
