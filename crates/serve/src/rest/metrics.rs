//! `GET /metrics`: counters for Prometheus, in its text format. They follow the yard's events, in one task: the calls of
//! every front are counted, and a call costs its caller nothing. Written by hand, because one task that owns plain maps
//! needs neither atomics nor a registry of them, and the format is a dozen lines.
//!
//! Labels come from strangers, so there are only so many: beyond that, calls are counted under `other`.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderValue, Response, header};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use toolyard_hub::{Ended, Event, ExecutionId, Kind, Lookup, SourceName, State, Yard};

use super::errors::Failure;
use super::query::Query;
use super::servers::word;
use super::{Caller, Rest, may};

/// The most tools, and sources, that have counters of their own.
const MOST_TOOLS: usize = 1_000;
const MOST_SOURCES: usize = 200;
const OTHER: &str = "other";
/// The upper ends of the buckets, in seconds.
const BUCKETS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0];
/// A call whose end was missed is forgotten after this long beyond the longest that a call may take.
const GRACE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Metrics {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Calls that are over, by source, tool and how they ended.
    calls: BTreeMap<(Arc<str>, Arc<str>, &'static str), u64>,
    durations: BTreeMap<Arc<str>, Histogram>,
    running: HashMap<ExecutionId, Running>,
    tools: HashMap<String, Arc<str>>,
    sources: HashMap<String, Arc<str>>,
    missed: u64,
}

#[derive(Debug)]
struct Running {
    source: Arc<str>,
    tool: Arc<str>,
    since: Instant,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

impl Histogram {
    fn add(&mut self, seconds: f64) {
        let fits = BUCKETS.iter().zip(&mut self.buckets).filter(|(end, _)| seconds <= **end);
        fits.for_each(|(_, count)| *count += 1);
        self.count += 1;
        self.sum += seconds;
    }
}

impl Metrics {
    /// Counts whatever happens in the yard from now on, for ever.
    pub(super) fn follow(self: Arc<Self>, yard: Arc<Yard>) -> impl Future<Output = ()> {
        // Before anything else can happen: what is not subscribed to is missed without a trace.
        let mut events = yard.events().subscribe();
        async move {
            loop {
                match events.recv().await {
                    Ok(event) => self.lock().count(&event, &yard),
                    Err(RecvError::Lagged(missed)) => self.lock().miss(missed, &yard),
                    Err(RecvError::Closed) => return,
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, yard: &Yard) -> String {
        let mut text = String::new();
        self.lock().write(&mut text);
        let mut states = BTreeMap::from(STATES.map(|state| (word(state), 0_u64)));
        for (_, status) in yard.statuses() {
            *states.entry(word(status.state)).or_default() += 1;
        }
        let states = states.into_iter().map(|(state, count)| (labels(&[("state", state)]), count));
        if let Some(lost) = yard.records_lost() {
            let help = "Records of calls that the audit or the history could not keep.";
            family(&mut text, "toolyard_records_lost_total", "counter", help, [(String::new(), lost)]);
        }
        family(&mut text, "toolyard_sources", "gauge", "Sources of the yard, by state.", states);
        text
    }
}

const STATES: [State; 6] = [
    State::Disabled,
    State::Starting,
    State::Ready,
    State::NeedsAuthorization,
    State::Failed,
    State::BackingOff,
];

impl Counts {
    fn count(&mut self, event: &Event, yard: &Yard) {
        match event {
            Event::CallStarted { id, subject, source, .. } => {
                // What is called and is not there has no source, and names without number.
                let name = source.as_ref().map_or("", SourceName::as_str);
                let source_label = label(&mut self.sources, name, MOST_SOURCES);
                let tool = match source.as_ref().and_then(|source| tool_name(yard, source, subject)) {
                    Some(name) => label(&mut self.tools, &name, MOST_TOOLS),
                    // A resource, a prompt or a completion: their names are without number.
                    None => "".into(),
                };
                self.running.insert(*id, Running { source: source_label, tool, since: Instant::now() });
            }
            Event::CallEnded { id, ended, duration, .. } => {
                let Some(call) = self.running.remove(id) else { return };
                self.durations.entry(Arc::clone(&call.source)).or_default().add(duration.as_secs_f64());
                *self.calls.entry((call.source, call.tool, end(*ended))).or_default() += 1;
            }
            Event::CallProgress { .. }
            | Event::ResultOdd { .. }
            | Event::Changed(_)
            | Event::ResourceUpdated { .. }
            | Event::StatusChanged { .. } => {}
        }
    }

    fn miss(&mut self, missed: u64, yard: &Yard) {
        self.missed += missed;
        let longest = yard.limits().call_time + GRACE;
        self.running.retain(|_, call| call.since.elapsed() < longest);
    }

    fn write(&self, text: &mut String) {
        let calls = self.calls.iter().map(|((source, tool, end), count)| {
            (labels(&[("source", source), ("tool", tool), ("end", end)]), *count)
        });
        let help =
            "Calls that are over, by source, tool (empty for resources and prompts) and how they ended.";
        family(text, "toolyard_calls_total", "counter", help, calls);

        let mut running: BTreeMap<&str, u64> = BTreeMap::new();
        self.running.values().for_each(|call| *running.entry(&call.source).or_default() += 1);
        let running = running.into_iter().map(|(source, count)| (labels(&[("source", source)]), count));
        family(text, "toolyard_calls_in_flight", "gauge", "Calls under way, by source.", running);

        let name = "toolyard_call_duration_seconds";
        head(text, name, "histogram", "How long calls took, by source.");
        for (source, histogram) in &self.durations {
            let ends = BUCKETS.iter().map(ToString::to_string).zip(histogram.buckets);
            for (end, count) in ends.chain([("+Inf".to_owned(), histogram.count)]) {
                line(text, &format!("{name}_bucket"), &labels(&[("source", source), ("le", &end)]), count);
            }
            line(text, &format!("{name}_sum"), &labels(&[("source", source)]), histogram.sum);
            line(text, &format!("{name}_count"), &labels(&[("source", source)]), histogram.count);
        }

        let help =
            "Events that came too fast to be counted: the other numbers are too low by what they were about.";
        family(text, "toolyard_events_missed_total", "counter", help, [(String::new(), self.missed)]);
    }
}

pub(super) async fn show(
    Shared(rest): Shared<Arc<Rest>>,
    Caller(principal): Caller,
    request: Request,
) -> Result<Response<Body>, Failure> {
    Query::read(request.uri().query()).finish()?;
    if !may(&principal, "observe") {
        let message = "the counters tell of others' calls, which needs the permission observe";
        return Err(Failure::of_kind(Kind::Forbidden, message));
    }
    let mut response = Response::new(Body::from(rest.metrics.write(&rest.yard)));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// The full name of the tool that a call is of. Where a source is served alone, calls name it by its raw name.
fn tool_name(yard: &Yard, source: &SourceName, subject: &str) -> Option<String> {
    let catalog = yard.catalog();
    let found = match catalog.tool(subject) {
        Lookup::Found(tool) if tool.source == *source => Some(tool),
        _ => catalog.tool_of(source, subject),
    };
    found.map(|tool| tool.full_name.to_string())
}

/// The label itself, or `other` when there are too many.
fn label(known: &mut HashMap<String, Arc<str>>, name: &str, most: usize) -> Arc<str> {
    if let Some(known) = known.get(name) {
        return Arc::clone(known);
    }
    if known.len() >= most {
        return OTHER.into();
    }
    let fresh: Arc<str> = name.into();
    known.insert(name.to_owned(), Arc::clone(&fresh));
    fresh
}

fn end(ended: Ended) -> &'static str {
    match ended {
        Ended::Answered => "answered",
        Ended::Failed => "failed",
        Ended::Dropped => "dropped",
        Ended::Error(kind) => match kind {
            Kind::UnknownTool => "unknown_tool",
            Kind::UnknownResource => "unknown_resource",
            Kind::UnknownPrompt => "unknown_prompt",
            Kind::InvalidArguments => "invalid_arguments",
            Kind::Unauthenticated => "unauthenticated",
            Kind::Forbidden => "forbidden",
            Kind::RateLimited => "rate_limited",
            Kind::TooLarge => "too_large",
            Kind::TimedOut => "timed_out",
            Kind::Cancelled => "cancelled",
            Kind::NotConnected => "not_connected",
            Kind::CannotConnect => "cannot_connect",
            Kind::ConnectionLost => "connection_lost",
            Kind::ToolFailed => "tool_failed",
            Kind::ClientCannot => "client_cannot",
            Kind::Bug => "internal_error",
        },
    }
}

fn family<T: std::fmt::Display>(
    text: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    lines: impl IntoIterator<Item = (String, T)>,
) {
    head(text, name, kind, help);
    lines.into_iter().for_each(|(labels, value)| line(text, name, &labels, value));
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a text cannot fail, here and below.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{name}{labels} {value}");
}

fn labels(pairs: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    };
    format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use toolyard_hub::{Ended, Event, ExecutionId, Kind, SourceName, Thing, Yard};

    use super::{Counts, MOST_SOURCES};

    fn started(id: u64, source: &str) -> Event {
        let principal = "ada".to_owned();
        Event::CallStarted {
            id: call(id),
            thing: Thing::Tool,
            subject: "x".to_owned(),
            source: Some(SourceName::new(source)),
            principal,
            session_id: None,
            user_id: None,
            front: None,
            at: SystemTime::now(),
        }
    }

    fn ended(id: u64, ended: Ended, millis: u64) -> Event {
        Event::CallEnded { id: call(id), ended, error: None, duration: Duration::from_millis(millis) }
    }

    fn call(number: u64) -> ExecutionId {
        ExecutionId::from_bytes(u128::from(number).to_be_bytes())
    }

    #[tokio::test]
    async fn what_happened_is_counted_and_written() {
        let yard = Yard::of([]);
        let mut counts = Counts::default();
        let odd = "a \"b\\\n";
        for event in [
            started(1, "demo"),
            started(2, "demo"),
            started(3, odd),
            started(4, "demo"),
            ended(1, Ended::Answered, 30),
            ended(2, Ended::Answered, 400),
            ended(3, Ended::Error(Kind::TimedOut), 400_000),
            ended(99, Ended::Failed, 1),
        ] {
            counts.count(&event, &yard);
        }
        counts.miss(7, &yard);
        let mut text = String::new();
        counts.write(&mut text);
        insta::assert_snapshot!(text);
    }

    #[tokio::test]
    async fn labels_are_only_so_many() {
        let yard = Yard::of([]);
        let mut counts = Counts::default();
        for id in 0..2 * MOST_SOURCES as u64 {
            counts.count(&started(id, &format!("source {id}")), &yard);
            counts.count(&ended(id, Ended::Answered, 1), &yard);
        }
        assert_eq!(counts.durations.len(), MOST_SOURCES + 1);
        assert_eq!(counts.durations["other"].count, MOST_SOURCES as u64);
    }
}
