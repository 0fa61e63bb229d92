//! What a running tool knows about its call, and the way back to whoever made it. The questions that it can ask
//! are in `ask.rs`.

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

/// The call that a tool, a resource or a prompt is answering. Clones are of the same call.
#[derive(Debug, Clone)]
pub struct Context {
    info: Arc<CallInfo>,
    pub(crate) client: CallerChannel,
    native: NativeHandle,
}

/// What came with a call, beside its arguments.
#[derive(Debug)]
pub(crate) struct CallInfo {
    pub(crate) record: Arc<CallRecord>,
    pub(crate) deadline: Deadline,
    pub(crate) cancel: CancellationToken,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) meta: Option<Raw>,
}

impl Context {
    pub(crate) fn new(occasion: CallInfo, client: CallerChannel, native: NativeHandle) -> Self {
        Self { info: Arc::new(occasion), client, native }
    }

    /// Reports how far the call is, in percent. Values that do not grow are not sent.
    pub fn report_progress(&self, percent: impl Into<f64>, message: impl Into<String>) {
        self.report(percent, 100, message);
    }

    /// Reports how far the call is, counted in whatever there is to count.
    pub fn report(&self, done: impl Into<f64>, total: impl Into<f64>, message: impl Into<String>) {
        self.progress(Progress {
            progress: done.into(),
            total: Some(total.into()),
            message: Some(message.into()),
        });
    }

    /// Reports how far the call is, with or without a total and a message.
    pub fn progress(&self, progress: Progress) {
        self.client.report_progress(progress);
    }

    /// A way to send pieces of the result ahead, to callers that can take them.
    pub fn stream(&self) -> Stream {
        Stream { client: self.client.clone() }
    }

    /// Writes a log line for the caller, if it asked for lines of this level.
    pub fn log(&self, level: LogLevel, data: impl Into<Value>) {
        self.client.log(LogLine { level, logger: None, data: data.into() });
    }

    /// Like [`Context::log`], under the name of a logger.
    pub fn log_as(&self, logger: impl Into<String>, level: LogLevel, data: impl Into<Value>) {
        self.client.log(LogLine { level, logger: Some(logger.into()), data: data.into() });
    }

    /// Completes when nobody waits for the call any more. The call itself is then dropped at its next `await`;
    /// this is for what it started elsewhere.
    pub async fn cancelled(&self) {
        self.info.cancel.cancelled().await;
    }

    /// Whether nobody waits for the call any more.
    pub fn is_cancelled(&self) -> bool {
        self.info.cancel.is_cancelled()
    }

    /// How much time is left for the call.
    pub fn remaining(&self) -> Duration {
        self.info.deadline.remaining()
    }

    /// Tells the caller that it may hang up and come back for the answer after this long.
    pub async fn pause(&self, retry: Duration) {
        self.client.send_pause(retry).await;
    }

    /// What the caller's side can do when asked.
    pub fn capabilities(&self) -> &ClientCapabilities {
        self.client.capabilities()
    }

    /// Who is calling.
    pub fn principal(&self) -> &Principal {
        &self.info.record.principal
    }

    /// What the caller said about the occasion: session and user.
    pub fn call_context(&self) -> &CallContext {
        &self.info.record.context
    }

    /// Everything that is known about the call.
    pub fn record(&self) -> &CallRecord {
        &self.info.record
    }

    /// Headers of the caller's request that the configuration lets through, by lower-case name.
    pub fn headers(&self) -> &[(String, String)] {
        &self.info.headers
    }

    /// The metadata that came with the call, as it came.
    pub fn meta(&self) -> Option<&RawValue> {
        self.info.meta.as_deref()
    }

    /// Tells whoever watches the resource that its contents are not what they were.
    pub fn resource_updated(&self, uri: &str) {
        self.native.resource_updated(uri);
    }

    /// The source that this runs in, to add and remove tools, resources and prompts.
    pub fn native(&self) -> &NativeHandle {
        &self.native
    }
}

/// Pieces of a result on their way ahead of it.
#[derive(Debug)]
pub struct Stream {
    client: CallerChannel,
}

impl Stream {
    /// Sends a piece. Waits for a slow reader, because a piece of a result is never dropped.
    pub async fn write<T: Serialize>(&self, piece: T) {
        // A piece that is no JSON (a map with keys that are no texts) is sent as nothing, like `to_raw` does.
        let piece = serde_json::to_value(piece).unwrap_or(Value::Null);
        self.client.send_chunk(piece).await;
    }

    /// Ends the stream: nothing can be written any more. Dropping it does the same.
    pub fn end(self) {}
}
