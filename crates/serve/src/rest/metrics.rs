//! `GET /metrics` in the Prometheus text format. Written by hand, because the yard already has the
//! numbers and the format is simple.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderValue, Response, header};
use toolyard_hub::{
    CallEndReason, CallStatus, ErrorKind, Histogram, OBSERVE, Principal, Quota, QuotaReport, SourceMetrics,
    SourceState, Visibility, Yard,
};

use super::errors::RestError;
use super::query::Query;
use super::{RestCaller, RestFront};
use crate::connections::ConnectionState;

/// Shown only by yards with an audit log or a history, and always by the manual.
pub(super) const RECORDS_LOST_HELP: &str =
    "Call records that could not be written to the audit log or the history.";

pub(super) fn render_metrics(yard: &Yard, principal: &Principal) -> String {
    let mut text = calls(&visible(&yard.visibility(principal), yard.metrics().snapshot()));
    if let Some(lost) = yard.lost_records() {
        family(
            &mut text,
            "toolyard_records_lost_total",
            "counter",
            RECORDS_LOST_HELP,
            [(String::new(), lost)],
        );
    }
    quotas(&mut text, &yard.quotas().report());
    let mut states = BTreeMap::from(SourceState::ALL.map(|state| (state.as_str(), 0_u64)));
    for (_, status) in yard.statuses_for(principal) {
        *states.entry(status.state.as_str()).or_default() += 1;
    }
    let states = states.into_iter().map(|(state, count)| (labels(&[("state", state)]), count));
    family(&mut text, "toolyard_sources", "gauge", "Number of sources by state.", states);
    let (help, subscribed) =
        ("Number of resources with at least one subscribed client.", yard.subscribed_uri_count());
    family(&mut text, "toolyard_resource_subscriptions", "gauge", help, [(String::new(), subscribed)]);
    text
}

/// Removes the counters that the caller may not see.
fn visible(
    visibility: &Visibility,
    counted: BTreeMap<Arc<str>, SourceMetrics>,
) -> BTreeMap<Arc<str>, SourceMetrics> {
    let of_source = |(source, counted): (Arc<str>, SourceMetrics)| {
        let mut counted = counted;
        counted.finished.retain(|tool, _| visibility.sees_counter(&source, tool));
        if !visibility.sees_totals(&source) {
            (counted.running, counted.durations) = (0, Histogram::default());
        }
        let is_empty = counted == SourceMetrics::default();
        (!is_empty).then_some((source, counted))
    };
    counted.into_iter().filter_map(of_source).collect()
}

pub(super) fn connections(text: &mut String, open: usize, unauthenticated: usize) {
    let lines = [("authenticated", open - unauthenticated), ("unauthenticated", unauthenticated)];
    let lines = lines.map(|(kind, count)| (labels(&[("kind", kind)]), count));
    let help = "Open HTTP connections by kind: `authenticated` after the first authenticated request, otherwise `unauthenticated`.";
    family(text, "toolyard_connections", "gauge", help, lines);
}

/// Written only by yards with several replicas, and always by the manual.
pub(super) fn replicas(text: &mut String, differing: &[bool], is_store_available: bool) {
    let lines = [("no", false), ("yes", true)];
    let count = |wanted: bool| differing.iter().filter(|differs| **differs == wanted).count();
    let lines = lines.map(|(word, wanted)| (labels(&[("differs", word)]), count(wanted)));
    let help = "Live replicas of the yard, by whether they differ from this one although they should not.";
    family(text, "toolyard_replicas", "gauge", help, lines);
    let help = "1 if the shared store of the replicas answers, otherwise 0.";
    family(text, "toolyard_store_available", "gauge", help, [(String::new(), u8::from(is_store_available))]);
}

fn quotas(text: &mut String, report: &QuotaReport) {
    let labelled = |quota: Quota| labels(&[("quota", quota.as_str())]);
    let used = report.quotas.iter().map(|(quota, used, _)| (labelled(*quota), *used as u64));
    family(text, "toolyard_quota_used", "gauge", "Current usage of all principals by quota.", used);
    let refused = report.quotas.iter().map(|(quota, _, refused)| (labelled(*quota), *refused));
    let help = "Requests refused because the principal exceeded a quota.";
    family(text, "toolyard_quota_refused_total", "counter", help, refused);
    let help = "Requests refused because the process exceeded its memory limit.";
    let refused = [(String::new(), report.refused_for_memory)];
    family(text, "toolyard_memory_refused_total", "counter", help, refused);
    let help = "Resident memory of the process in bytes.";
    family(text, "toolyard_memory_resident_bytes", "gauge", help, [(String::new(), report.resident)]);
    let help = "Resident memory in bytes above which new requests are refused.";
    family(text, "toolyard_memory_mark_bytes", "gauge", help, [(String::new(), report.mark)]);
}

fn calls(counted: &BTreeMap<Arc<str>, SourceMetrics>) -> String {
    let mut text = String::new();
    let over = counted.iter().flat_map(|(source, counted)| {
        counted.finished.iter().flat_map(move |(tool, ends)| {
            let words = |(ended, count): &(CallEndReason, u64)| {
                let error = ended.error_kind().map_or("", error_label);
                (CallStatus::from(*ended).as_str(), error, *count)
            };
            let mut ends: Vec<_> = ends.iter().map(words).collect();
            ends.sort_unstable();
            let line = move |(end, error, count)| {
                (labels(&[("source", source), ("tool", tool), ("end", end), ("error", error)]), count)
            };
            ends.into_iter().map(line)
        })
    });
    let help = "Finished calls by source, tool (empty for resources and prompts), status and error kind.";
    family(&mut text, "toolyard_calls_total", "counter", help, over);

    let running = counted.iter().filter(|(_, counted)| counted.running > 0);
    let running = running.map(|(source, counted)| (labels(&[("source", source)]), counted.running));
    family(&mut text, "toolyard_calls_in_flight", "gauge", "Calls in flight by source.", running);

    let name = "toolyard_call_duration_seconds";
    head(&mut text, name, "histogram", "Call duration in seconds by source.");
    for (source, SourceMetrics { durations, .. }) in
        counted.iter().filter(|(_, counted)| counted.durations.count > 0)
    {
        let ends = Histogram::BOUNDS.iter().map(ToString::to_string).zip(durations.buckets);
        for (end, count) in ends.chain([("+Inf".to_owned(), durations.count)]) {
            line(&mut text, &format!("{name}_bucket"), &labels(&[("source", source), ("le", &end)]), count);
        }
        line(&mut text, &format!("{name}_sum"), &labels(&[("source", source)]), durations.seconds);
        line(&mut text, &format!("{name}_count"), &labels(&[("source", source)]), durations.count);
    }
    text
}

pub(super) async fn show(
    Shared(rest): Shared<Arc<RestFront>>,
    RestCaller(principal): RestCaller,
    request: Request,
) -> Result<Response<Body>, RestError> {
    Query::read(request.uri().query()).finish()?;
    if !principal.has_permission(OBSERVE) {
        return Err(RestError::forbidden("reading the metrics of all callers", OBSERVE));
    }
    let mut text = render_metrics(&rest.yard, &principal);
    let connection = request.extensions().get::<Arc<ConnectionState>>();
    if let Some((open, unauthenticated)) = connection.and_then(|connection| connection.counts()) {
        connections(&mut text, open, unauthenticated);
    }
    if let Some(router) = &rest.settings.replicas {
        let all = router.replicas().all();
        let differing: Vec<bool> = all.iter().map(|replica| !replica.differences.is_empty()).collect();
        replicas(&mut text, &differing, router.replicas().is_store_available());
    }
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

pub(super) fn error_label(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::UnknownTool => "unknown_tool",
        ErrorKind::UnknownResource => "unknown_resource",
        ErrorKind::UnknownPrompt => "unknown_prompt",
        ErrorKind::InvalidArguments => "invalid_arguments",
        ErrorKind::Unauthenticated => "unauthenticated",
        ErrorKind::Forbidden => "forbidden",
        ErrorKind::RateLimited => "rate_limited",
        ErrorKind::TooLarge => "too_large",
        ErrorKind::TimedOut => "timed_out",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::NotConnected => "not_connected",
        ErrorKind::CannotConnect => "cannot_connect",
        ErrorKind::ConnectionLost => "connection_lost",
        ErrorKind::ToolFailed => "tool_failed",
        ErrorKind::ClientCannot => "client_cannot",
        ErrorKind::Bug => "internal_error",
    }
}

pub(super) fn family<T: std::fmt::Display>(
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
    // Writing to a `String` cannot fail, here and below.
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
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use toolyard_hub::{CallEndReason, ErrorKind, Histogram, SourceMetrics};

    use super::calls;

    #[test]
    fn what_happened_is_written() {
        let mut buckets = [2; Histogram::BOUNDS.len()];
        buckets[..4].fill(0);
        buckets[4..7].fill(1);
        let durations = Histogram { buckets, count: 2, seconds: 0.43 };
        let busy = SourceMetrics {
            running: 1,
            finished: BTreeMap::from([
                (Arc::from(""), vec![(CallEndReason::Succeeded, 1)]),
                (
                    Arc::from("mcp__demo__x"),
                    vec![
                        (CallEndReason::Failed, 3),
                        (CallEndReason::Succeeded, 2),
                        (CallEndReason::Abandoned, 1),
                    ],
                ),
            ]),
            durations,
        };
        let odd = SourceMetrics {
            finished: BTreeMap::from([(
                Arc::from("x"),
                vec![(CallEndReason::Error(ErrorKind::TimedOut), 1)],
            )]),
            durations: Histogram { count: 1, seconds: 400.0, ..Histogram::default() },
            ..SourceMetrics::default()
        };
        let counted = BTreeMap::from([(Arc::from("demo"), busy), (Arc::from("a \"b\\\n"), odd)]);
        insta::assert_snapshot!(calls(&counted));
    }
}
