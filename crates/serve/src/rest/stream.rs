//! An execution as server-sent events: updates while it runs, then `result` or `error`. A client
//! that disconnects cancels the call, unless it is detached.

use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use futures_util::stream::unfold;
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;
use toolyard_hub::json::to_raw;
use toolyard_hub::{LogLine, Progress};

use super::execute::{ChunkDelivery, add_execution_headers, envelope};
use super::execute_request::ContentDetail;
use super::executions::Execution;
use super::run::ExecutionEvent;

/// Interval of keep-alive comments on an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const COMMENT: &str = ":\n\n";

struct ExecutionEventStream {
    execution: Arc<Execution>,
    events: mpsc::Receiver<ExecutionEvent>,
    content: ContentDetail,
    pieces: ChunkDelivery,
    /// The number of the last event.
    number: u64,
    phase: StreamPhase,
    _guard: Option<DropGuard>,
}

#[derive(Clone, Copy)]
enum StreamPhase {
    Start,
    Middle,
    End,
}

/// Streams the events of a running execution.
pub(super) fn stream_live(
    execution: &Arc<Execution>,
    events: mpsc::Receiver<ExecutionEvent>,
    content: ContentDetail,
    guard: Option<DropGuard>,
) -> Response<Body> {
    let (execution, pieces) = (Arc::clone(execution), ChunkDelivery::Streamed);
    respond(ExecutionEventStream {
        execution,
        events,
        content,
        pieces,
        number: 0,
        phase: StreamPhase::Start,
        _guard: guard,
    })
}

/// Streams an execution that completed immediately: its updates, then its end.
pub(super) fn stream_finished(
    execution: &Arc<Execution>,
    updates: Vec<ExecutionEvent>,
    content: ContentDetail,
) -> Response<Body> {
    let (sender, events) = mpsc::channel(updates.len().max(1));
    for event in updates {
        // The channel has capacity for all of them.
        let _ = sender.try_send(event);
    }
    stream_live(execution, events, content, None)
}

/// Streams only the last event of a finished execution, for a request with a known idempotency key.
pub(super) fn stream_replay(execution: &Arc<Execution>, content: ContentDetail) -> Response<Body> {
    let (_, events) = mpsc::channel(1);
    let (execution, pieces) = (Arc::clone(execution), ChunkDelivery::InEnvelope);
    respond(ExecutionEventStream {
        execution,
        events,
        content,
        pieces,
        number: 0,
        phase: StreamPhase::Start,
        _guard: None,
    })
}

fn respond(reading: ExecutionEventStream) -> Response<Body> {
    let execution = Arc::clone(&reading.execution);
    let body = Body::from_stream(unfold(reading, |mut reading| async {
        let text = reading.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), reading))
    }));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    add_execution_headers(&mut response, &execution);
    response
}

impl ExecutionEventStream {
    async fn next(&mut self) -> Option<String> {
        match self.phase {
            // Send a comment immediately, so that proxies forward the headers.
            StreamPhase::Start => {
                self.phase = StreamPhase::Middle;
                Some(COMMENT.to_owned())
            }
            StreamPhase::Middle => Some(match tokio::time::timeout(KEEP_ALIVE, self.next_event()).await {
                Ok(event) => event,
                Err(_) => COMMENT.to_owned(),
            }),
            StreamPhase::End => None,
        }
    }

    async fn next_event(&mut self) -> String {
        match self.events.recv().await {
            Some(ExecutionEvent::Progress(progress)) => {
                self.event("progress", to_raw(&progress_data(&progress)).get())
            }
            Some(ExecutionEvent::Chunk(chunk)) => self.event("chunk", to_raw(&chunk).get()),
            Some(ExecutionEvent::Log(line)) => self.event("log", to_raw(&log_data(&line)).get()),
            None => {
                let ending = Arc::clone(self.execution.wait().await);
                self.phase = StreamPhase::End;
                match envelope(&self.execution, &ending, self.content, self.pieces) {
                    Ok(text) => self.event("result", &text),
                    Err((_, text)) => self.event("error", &text),
                }
            }
        }
    }

    /// Formats an event. Line breaks in JSON are insignificant whitespace, and each line gets its
    /// own `data` field.
    fn event(&mut self, name: &str, data: &str) -> String {
        self.number += 1;
        let mut text = format!("id: {}\nevent: {name}\n", self.number);
        for line in data.split(['\n', '\r']) {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "data: {line}");
        }
        text.push('\n');
        text
    }
}

pub(super) fn progress_data(progress: &Progress) -> Value {
    let mut data = json!({"progress": number(progress.progress)});
    if let Some(total) = progress.total {
        data["total"] = number(total);
    }
    if let Some(message) = &progress.message {
        data["message"] = message.clone().into();
    }
    data
}

fn log_data(line: &LogLine) -> Value {
    let mut data = json!({"level": line.level});
    if let Some(logger) = &line.logger {
        data["logger"] = logger.clone().into();
    }
    data["data"] = line.data.clone();
    data
}

/// Writes whole numbers without a fraction: 50 instead of 50.0.
fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    if value.fract() == 0.0 && value.abs() < 9e15 { Value::from(value as i64) } else { Value::from(value) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use http_body_util::BodyExt;
    use serde_json::json;
    use tokio::sync::mpsc;
    use toolyard_hub::json::to_raw;
    use toolyard_hub::{Outcome, Progress};

    use super::{ContentDetail, ExecutionEvent, stream_live};
    use crate::rest::executions::tests::execution;
    use crate::rest::executions::{Chunks, Executions, RetentionLimits};

    #[tokio::test(start_paused = true)]
    async fn an_idle_stream_sends_keep_alive_comments_and_events_are_numbered() {
        let (sender, events) = mpsc::channel(1);
        let execution = execution();
        let mut body = stream_live(&execution, events, ContentDetail::Result, None).into_body();
        let mut next = async || match body.frame().await {
            Some(frame) => String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap(),
            None => String::new(),
        };
        assert_eq!(next().await, ":\n\n");
        let began = tokio::time::Instant::now();
        assert_eq!(next().await, ":\n\n");
        assert_eq!(began.elapsed(), Duration::from_secs(15));
        let progress = Progress { progress: 0.5, total: Some(2.0), message: None };
        sender.send(ExecutionEvent::Progress(progress)).await.unwrap();
        assert_eq!(next().await, "id: 1\nevent: progress\ndata: {\"progress\":0.5,\"total\":2}\n\n");
        drop(sender);
        let keeping = RetentionLimits { running: 1, most: 1, bytes: 100, time: Duration::from_secs(1) };
        let outcome = Outcome::success(to_raw(&json!({"structuredContent": [1]})));
        Executions::new(keeping).end(&execution, Ok(outcome), Chunks::default());
        let last = next().await;
        let start = "id: 2\nevent: result\ndata: {\"success\":true,\"result\":[1],\"metadata\":{";
        assert!(last.starts_with(start) && last.ends_with("}}\n\n"), "{last}");
        assert_eq!(next().await, "");
    }

    #[tokio::test]
    async fn a_disconnect_cancels_the_call_unless_it_is_detached() {
        for guarded in [true, false] {
            let (_sender, events) = mpsc::channel(1);
            let execution = execution();
            let guard = guarded.then(|| execution.cancel.clone().drop_guard());
            drop(stream_live(&Arc::clone(&execution), events, ContentDetail::Result, guard));
            assert_eq!(execution.cancel.is_cancelled(), guarded);
        }
    }
}
