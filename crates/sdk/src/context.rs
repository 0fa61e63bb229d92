//! The context of a running call: its facts, and the channel to the client. The questions it can
//! ask are in `ask.rs`.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{
    CallContext, CallRecord, CallerChannel, ClientCapabilities, Deadline, LogLevel, LogLine, Principal,
    Progress, Raw,
};

use crate::native::NativeHandle;

/// The context of the call that a tool, a resource or a prompt handles. Clones refer to the same
/// call.
///
/// ```
/// use toolyard_sdk::{Context, LogLevel, ToolError, tool};
///
/// /// Imports three files.
/// #[tool]
/// async fn import(ctx: Context) -> Result<String, ToolError> {
///     for file in 1..=3 {
///         ctx.report(file, 3, format!("imported file {file}"));
///     }
///     ctx.log(LogLevel::Info, "import finished");
///     Ok(format!("imported for {}", ctx.principal().id()))
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Context {
    info: Arc<CallInfo>,
    pub(crate) client: CallerChannel,
    native: NativeHandle,
}

/// Everything that arrives with a call except its arguments.
#[derive(Debug)]
pub(crate) struct CallInfo {
    pub(crate) record: Arc<CallRecord>,
    pub(crate) deadline: Deadline,
    pub(crate) cancel: CancellationToken,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) meta: Option<Raw>,
}

impl Context {
    pub(crate) fn new(info: CallInfo, client: CallerChannel, native: NativeHandle) -> Self {
        Self { info: Arc::new(info), client, native }
    }

    /// Reports progress in percent. A value that is not greater than the previous one is not sent.
    pub fn report_progress(&self, percent: impl Into<f64>, message: impl Into<String>) {
        self.report(percent, 100, message);
    }

    /// Reports progress as a number of units out of a total.
    pub fn report(&self, done: impl Into<f64>, total: impl Into<f64>, message: impl Into<String>) {
        self.progress(Progress {
            progress: done.into(),
            total: Some(total.into()),
            message: Some(message.into()),
        });
    }

    /// Reports progress. The total and the message are optional.
    pub fn progress(&self, progress: Progress) {
        self.client.report_progress(progress);
    }

    /// Returns a stream for partial results, which are sent before the result.
    pub fn stream(&self) -> Stream {
        Stream { client: self.client.clone() }
    }

    /// Sends a log message to the client if the client requested this level.
    pub fn log(&self, level: LogLevel, data: impl Into<Value>) {
        self.client.log(LogLine { level, logger: None, data: data.into() });
    }

    /// Sends a log message with a logger name. See [`Context::log`].
    pub fn log_as(&self, logger: impl Into<String>, level: LogLevel, data: impl Into<Value>) {
        self.client.log(LogLine { level, logger: Some(logger.into()), data: data.into() });
    }

    /// Completes when the call is canceled. The handler itself is dropped at its next `await`; use
    /// this for tasks that the handler has spawned.
    pub async fn cancelled(&self) {
        self.info.cancel.cancelled().await;
    }

    /// Returns whether the call is canceled.
    pub fn is_cancelled(&self) -> bool {
        self.info.cancel.is_cancelled()
    }

    /// Returns the time left before the deadline of the call.
    pub fn remaining(&self) -> Duration {
        self.info.deadline.remaining()
    }

    /// Tells the client that it may disconnect and fetch the result after this time.
    pub async fn pause(&self, retry: Duration) {
        self.client.send_pause(retry).await;
    }

    /// Returns what the client can be asked for.
    pub fn capabilities(&self) -> &ClientCapabilities {
        self.client.capabilities()
    }

    /// Returns the authenticated caller.
    pub fn principal(&self) -> &Principal {
        &self.info.record.principal
    }

    /// Returns the session, the user and other data that the caller sent about the call.
    pub fn call_context(&self) -> &CallContext {
        &self.info.record.context
    }

    /// Returns the record of the call, which hooks and audit logs see as well.
    pub fn record(&self) -> &CallRecord {
        &self.info.record
    }

    /// Returns the headers of the client's request that the configuration forwards. Names are in
    /// lower case.
    pub fn headers(&self) -> &[(String, String)] {
        &self.info.headers
    }

    /// Returns the `_meta` object of the call, exactly as received.
    pub fn meta(&self) -> Option<&RawValue> {
        self.info.meta.as_deref()
    }

    /// Notifies subscribers that the contents of a resource have changed.
    pub fn resource_updated(&self, uri: &str) {
        self.native.resource_updated(uri);
    }

    /// Returns a handle to the source of this tool, to add and remove tools, resources and prompts.
    pub fn native(&self) -> &NativeHandle {
        &self.native
    }
}

/// A stream of partial results of one call.
#[derive(Debug)]
pub struct Stream {
    client: CallerChannel,
}

impl Stream {
    /// Sends a partial result. Waits while the client reads slowly, because partial results are
    /// never dropped.
    pub async fn write<T: Serialize>(&self, piece: T) {
        // A value that cannot be serialized, such as a map with non-string keys, is sent as `null`.
        let piece = serde_json::to_value(piece).unwrap_or(Value::Null);
        self.client.send_chunk(piece).await;
    }

    /// Ends the stream. Dropping the stream has the same effect.
    pub fn end(self) {}
}
