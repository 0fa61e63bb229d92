//! What a server says unasked: progress and log lines go to the call they are for, changes to the supervisor,
//! questions to the client that the call is for.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use toolyard_hub::{LogLevel, LogLine, Progress, StreamPause};
use toolyard_wire::{
    MessageLog, RpcNotification, RpcRequest, ServerMessage, ServerMessageHandler, Violations,
};

use crate::in_flight::{CallSnapshot, InFlightCall, InFlightCalls};

/// How many questions, and how many updates, of a server wait to be dealt with; more are dropped.
const QUEUE: usize = 64;

/// How many bytes of questions wait, in units of [`UNIT`]; more are dropped.
const QUESTION_UNITS: usize = 32 * 1024;
const UNIT: usize = 1024;
/// A URI that is longer than this was never asked to be watched.
const LONGEST_URI: usize = 64 * 1024;

/// A request of the server. It takes up room for as long as this is kept.
#[derive(Debug)]
pub(crate) struct ServerQuestion {
    pub(crate) request: RpcRequest,
    /// The calls that it may be about. Looked up when it came: by the time it is dealt with, others may have begun, and
    /// one that it was about may be over.
    pub(crate) calls: CallSnapshot,
    _permit: OwnedSemaphorePermit,
}

/// What the connection's owner must deal with.
#[derive(Debug)]
pub(crate) struct ServerNotifications {
    pub(crate) lists_changed: Arc<Notify>,
    pub(crate) updated_resources: mpsc::Receiver<String>,
    pub(crate) questions: mpsc::Receiver<ServerQuestion>,
}

/// A listener for one connection, and the end at which its owner reads. What breaks the rules is put down on the tape.
pub(crate) fn build_listener(
    calls: Arc<InFlightCalls>,
    name: String,
    tape: Arc<MessageLog>,
) -> (ServerMessageHandler, ServerNotifications) {
    let (update, updated) = mpsc::channel(QUEUE);
    let (question, questions) = mpsc::channel(QUEUE);
    let room = Arc::new(Semaphore::new(QUESTION_UNITS));
    let lists = Arc::new(Notify::new());
    let changed = Arc::clone(&lists);
    let listener: ServerMessageHandler = Arc::new(move |said| match said {
        ServerMessage::Notification(notification, tag) => match notification.method.as_str() {
            "notifications/progress" => handle_progress(&calls, &notification, tape.violations()),
            "notifications/message" => handle_log_message(&calls, &notification, tag, tape.violations()),
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => changed.notify_one(),
            "notifications/resources/updated" => match parse_params(notification.params.as_deref()) {
                Some(ResourceUpdatedParams { uri }) if uri.len() <= LONGEST_URI => drop(update.try_send(uri)),
                Some(_) => {}
                None => tape.violations().add("notifications/resources/updated must have a `uri`"),
            },
            _ => {}
        },
        ServerMessage::Request(request, tag) => {
            let bytes = request.params.as_ref().map_or(0, |params| params.get().len()) + request.method.len();
            let units = u32::try_from(bytes / UNIT + 1).unwrap_or(u32::MAX);
            let asked = Arc::clone(&room).try_acquire_many_owned(units).ok().is_some_and(|room| {
                let calls = calls.snapshot(tag);
                question.try_send(ServerQuestion { request, calls, _permit: room }).is_ok()
            });
            if !asked {
                tracing::warn!(
                    server = name,
                    "sends requests faster than they are answered; one was dropped"
                );
            }
        }
        // A caller that is connected to us is let go of as we are, so that it polls, too.
        ServerMessage::Paused { tag, retry, returned } => {
            if let Some(flight) = calls.get(tag) {
                flight.activity.notify_one();
                flight.client.try_send_pause(StreamPause { retry, returned });
            }
        }
        ServerMessage::UnparsableLine(line) => {
            tracing::debug!(server = name, line, "a line that is no message")
        }
    });
    (listener, ServerNotifications { lists_changed: lists, updated_resources: updated, questions })
}

#[derive(Deserialize)]
struct ResourceUpdatedParams {
    uri: String,
}

fn parse_params<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(params?.get()).ok()
}

fn handle_progress(calls: &InFlightCalls, notification: &RpcNotification, violations: &Violations) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ProgressParams {
        progress_token: u64,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    }
    let Some(said) = parse_params::<ProgressParams>(notification.params.as_deref()) else {
        violations.add(
            "notifications/progress must have the `progressToken` of the request and a number as `progress`",
        );
        return;
    };
    // A token that is none of ours, or whose call is over, is nobody's.
    if let Some(flight) = calls.get(said.progress_token) {
        flight.activity.notify_one();
        flight.client.report_progress(Progress {
            progress: said.progress,
            total: said.total,
            message: said.message,
        });
    }
}

fn handle_log_message(
    calls: &InFlightCalls,
    notification: &RpcNotification,
    tag: Option<u64>,
    violations: &Violations,
) {
    #[derive(Deserialize)]
    struct LogMessageParams {
        level: LogLevel,
        logger: Option<String>,
        data: Option<Value>,
    }
    // A line that could be about several clients' calls is shown to none of them.
    let flight: Option<Arc<InFlightCall>> = tag.and_then(|tag| calls.get(tag)).or_else(|| calls.get_only());
    let Some(said) = parse_params::<LogMessageParams>(notification.params.as_deref()) else {
        violations.add("notifications/message must have a `level` of the protocol and `data`");
        return;
    };
    if let Some(flight) = flight {
        let data = said.data.unwrap_or_default();
        flight.client.log(LogLine { level: said.level, logger: said.logger, data });
    }
}
