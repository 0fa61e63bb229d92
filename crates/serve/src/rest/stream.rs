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

use super::execute::{Pieces, envelope, name_execution};
use super::executions::Execution;
use super::intake::Content;
use super::run::Said;

/// How often a silent stream says that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const COMMENT: &str = ":\n\n";

struct Reading {
    execution: Arc<Execution>,
    events: mpsc::Receiver<Said>,
    content: Content,
    pieces: Pieces,
    /// The number of the last event.
    number: u64,
    place: Place,
    _guard: Option<DropGuard>,
}

#[derive(Clone, Copy)]
enum Place {
    Start,
    Middle,
    End,
}

/// The events of an execution that is under way.
pub(super) fn of(
    execution: &Arc<Execution>,
    events: mpsc::Receiver<Said>,
    content: Content,
    guard: Option<DropGuard>,
) -> Response<Body> {
    let (execution, pieces) = (Arc::clone(execution), Pieces::Sent);
    respond(Reading { execution, events, content, pieces, number: 0, place: Place::Start, _guard: guard })
}

/// The last event of one that is over.
pub(super) fn of_ended(execution: &Arc<Execution>, content: Content) -> Response<Body> {
    let (_, events) = mpsc::channel(1);
    let (execution, pieces) = (Arc::clone(execution), Pieces::Told);
    respond(Reading { execution, events, content, pieces, number: 0, place: Place::Start, _guard: None })
}

fn respond(reading: Reading) -> Response<Body> {
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
    name_execution(&mut response, &execution);
    response
}

impl Reading {
    async fn next(&mut self) -> Option<String> {
        match self.place {
            // Something at once, so that whatever is in between lets the head through.
            Place::Start => {
                self.place = Place::Middle;
                Some(COMMENT.to_owned())
            }
            Place::Middle => Some(match tokio::time::timeout(KEEP_ALIVE, self.said()).await {
                Ok(event) => event,
                Err(_) => COMMENT.to_owned(),
            }),
            Place::End => None,
        }
    }

    async fn said(&mut self) -> String {
        match self.events.recv().await {
            Some(Said::Progress(progress)) => self.event("progress", to_raw(&progress_data(&progress)).get()),
            Some(Said::Chunk(chunk)) => self.event("chunk", to_raw(&chunk).get()),
            Some(Said::Log(line)) => self.event("log", to_raw(&log_data(&line)).get()),
            None => {
                let ending = Arc::clone(self.execution.wait().await);
                self.place = Place::End;
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
