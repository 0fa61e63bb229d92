//! Notifications and requests from a server: progress and log messages go to their call, changes to
//! the supervisor, and questions to the client of the call.

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

/// How many questions, and how many updates, of a server can be queued. More are dropped.
const QUEUE: usize = 64;

/// How many bytes of questions can be queued, in units of [`UNIT`]. More are dropped.
const QUESTION_UNITS: usize = 32 * 1024;
const UNIT: usize = 1024;
/// Longer URIs are ignored, because they cannot be subscribed to.
const LONGEST_URI: usize = 64 * 1024;

/// A request of the server. It occupies space in the queue until it is dropped.
#[derive(Debug)]
pub(crate) struct ServerQuestion {
    pub(crate) request: RpcRequest,
    /// The calls that it may be about, captured on arrival: by the time it is handled, other calls
    /// may have begun, and the call it is about may have ended.
    pub(crate) calls: CallSnapshot,
    _permit: OwnedSemaphorePermit,
}

/// The notifications and requests that the owner of a connection must handle.
#[derive(Debug)]
pub(crate) struct ServerNotifications {
    pub(crate) lists_changed: Arc<Notify>,
    pub(crate) updated_resources: mpsc::Receiver<String>,
    pub(crate) questions: mpsc::Receiver<ServerQuestion>,
}

/// Creates the message handler of one connection, and the receivers for its owner. Protocol
/// violations are recorded in the message log.
pub(crate) fn build_listener(
    calls: Arc<InFlightCalls>,
    name: String,
    message_log: Arc<MessageLog>,
) -> (ServerMessageHandler, ServerNotifications) {
    let (update, updated) = mpsc::channel(QUEUE);
    let (question, questions) = mpsc::channel(QUEUE);
    let room = Arc::new(Semaphore::new(QUESTION_UNITS));
    let lists_changed = Arc::new(Notify::new());
    let changed = Arc::clone(&lists_changed);
    let listener: ServerMessageHandler = Arc::new(move |message| match message {
        ServerMessage::Notification(notification, tag) => match notification.method.as_str() {
            "notifications/progress" => handle_progress(&calls, &notification, message_log.violations()),
            "notifications/message" => {
                handle_log_message(&calls, &notification, tag, message_log.violations())
            }
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => changed.notify_one(),
            "notifications/resources/updated" => match parse_params(notification.params.as_deref()) {
                Some(ResourceUpdatedParams { uri }) if uri.len() <= LONGEST_URI => drop(update.try_send(uri)),
                Some(_) => {}
                None => message_log.violations().add("notifications/resources/updated must have a `uri`"),
            },
            _ => {}
        },
        ServerMessage::Request(request, tag) => {
            let bytes = request.params.as_ref().map_or(0, |params| params.get().len()) + request.method.len();
            let units = u32::try_from(bytes / UNIT + 1).unwrap_or(u32::MAX);
            let queued = Arc::clone(&room).try_acquire_many_owned(units).ok().is_some_and(|permit| {
                let calls = calls.snapshot(tag);
                question.try_send(ServerQuestion { request, calls, _permit: permit }).is_ok()
            });
            if !queued {
                tracing::warn!(server = name, "request of the server dropped: too many are pending");
            }
        }
        // The pause is passed on, so that the caller polls too.
        ServerMessage::Paused { tag, retry, returned } => {
            if let Some(flight) = calls.get(tag) {
                flight.activity.notify_one();
                flight.client.try_send_pause(StreamPause { retry, returned });
            }
        }
        ServerMessage::UnparsableLine(line) => {
            tracing::debug!(server = name, line, "line is not a JSON-RPC message")
        }
    });
    (listener, ServerNotifications { lists_changed, updated_resources: updated, questions })
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
    let Some(params) = parse_params::<ProgressParams>(notification.params.as_deref()) else {
        violations.add(
            "notifications/progress must have the `progressToken` of the request and a number as `progress`",
        );
        return;
    };
    // Unknown tokens, and tokens of calls that have ended, are ignored.
    if let Some(flight) = calls.get(params.progress_token) {
        flight.activity.notify_one();
        flight.client.report_progress(Progress {
            progress: params.progress,
            total: params.total,
            message: params.message,
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
    // A message that may belong to the calls of several clients is sent to none of them.
    let flight: Option<Arc<InFlightCall>> = tag.and_then(|tag| calls.get(tag)).or_else(|| calls.get_only());
    let Some(params) = parse_params::<LogMessageParams>(notification.params.as_deref()) else {
        violations.add("notifications/message must have a `level` of the protocol and `data`");
        return;
    };
    if let Some(flight) = flight {
        let data = params.data.unwrap_or_default();
        flight.client.log(LogLine { level: params.level, logger: params.logger, data });
    }
}
