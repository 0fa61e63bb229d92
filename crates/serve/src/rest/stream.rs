//! An execution as server-sent events: what it says while it runs, then `result` or `error`. A reader that goes away
//! cancels it, unless it was asked to go on.

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

/// How often a silent stream says that it is alive.
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

/// The events of an execution that is under way.
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

/// The events of one that was done at once: what it said on the way, then its end.
pub(super) fn stream_finished(
    execution: &Arc<Execution>,
    said: Vec<ExecutionEvent>,
    content: ContentDetail,
) -> Response<Body> {
    let (sender, events) = mpsc::channel(said.len().max(1));
    for event in said {
        // There is room for each of them.
        let _ = sender.try_send(event);
    }
    stream_live(execution, events, content, None)
}

/// The last event of one that is over, for who repeats a call.
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
            // Something at once, so that whatever is in between lets the head through.
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

    /// Line breaks in JSON are space between its parts, and each line of an event's data has a field of its own.
    fn event(&mut self, name: &str, data: &str) -> String {
        self.number += 1;
        let mut text = format!("id: {}\nevent: {name}\n", self.number);
        for line in data.split(['\n', '\r']) {
            // Writing to a text cannot fail.
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

/// Whole numbers as whole numbers: 50, not 50.0.
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
    async fn a_silent_stream_says_that_it_is_alive_and_events_are_numbered() {
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
    async fn a_reader_that_goes_away_cancels_only_where_it_was_agreed() {
        for guarded in [true, false] {
            let (_sender, events) = mpsc::channel(1);
            let execution = execution();
            let guard = guarded.then(|| execution.cancel.clone().drop_guard());
            drop(stream_live(&Arc::clone(&execution), events, ContentDetail::Result, guard));
            assert_eq!(execution.cancel.is_cancelled(), guarded);
        }
    }
}
