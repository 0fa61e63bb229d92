//! An unsupervised connection to one server, for testing it: nothing is retried or hidden, and a
//! broken connection stays broken. Servers of the yard are supervised instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolyard_hub::json::Object;
use toolyard_hub::{ClientCapabilities, ErrorKind, HubError, Outcome, Raw, SourceCall};
use toolyard_wire::{McpClient, MessageLog, Version, Violations, WireError};

use crate::auth::Authorizer;
use crate::call::{CallSender, UpstreamError, rpc_to_hub_error};
use crate::child::Child;
use crate::connect::{
    ConnectError, ConnectErrorCause, CredentialPolicy, DedicatedConnectionParams, UpstreamContext,
    connect_dedicated, short_reason,
};
use crate::connection::{HeaderSchemas, LiveConnection};
use crate::list::{PagedList, ServerListKind, collect_header_schemas, fetch_pages};
use crate::settings::ServerSettings;

/// How long to wait for the exit of a process after its streams broke.
const EXIT: Duration = Duration::from_millis(500);
/// How long a server may take to exit after its standard input is closed. Then it gets a signal.
pub const STOP_GRACE: Duration = Duration::from_secs(2);

/// A connection that serves one client only.
#[derive(Debug)]
pub struct DirectConnection {
    live: LiveConnection,
    settings: ServerSettings,
    mirrored: ArcSwap<HeaderSchemas>,
    /// How often the server has announced a list change.
    list_changes: Arc<AtomicU64>,
    message_log: Arc<MessageLog>,
    /// The number of pending requests.
    waiting: AtomicUsize,
    /// Why the server is disconnected, for transports where only a request detects that.
    disconnect_reason: Mutex<Option<String>>,
}

/// The outcome of a call.
#[derive(Debug)]
pub struct DirectCallOutcome {
    pub result: Result<Outcome, HubError>,
    /// The time spent communicating with the server.
    pub duration: Duration,
    /// Whether the server received the call, as far as is known.
    pub was_sent: bool,
}

impl DirectConnection {
    /// Connects for a client with these capabilities. Errors have the kind *cannot connect*, with
    /// the facts in their details.
    pub async fn open(
        settings: ServerSettings,
        common: &UpstreamContext,
        capabilities: &ClientCapabilities,
        credentials: CredentialPolicy,
    ) -> Result<Self, HubError> {
        Self::open_logged(settings, common, capabilities, credentials, Arc::default()).await
    }

    /// Like [`Self::open`], with a message log of the caller, which can have a tap.
    pub async fn open_logged(
        settings: ServerSettings,
        common: &UpstreamContext,
        capabilities: &ClientCapabilities,
        credentials: CredentialPolicy,
        message_log: Arc<MessageLog>,
    ) -> Result<Self, HubError> {
        let authorizer = Authorizer::new(&settings, &common.auth);
        let params = DedicatedConnectionParams {
            common,
            settings: &settings,
            authorizer: &authorizer,
            capabilities,
            era: settings.era,
            message_log: &message_log,
            credentials,
        };
        let (mut live, lists_changed) = connect_dedicated(params)
            .await
            .map_err(|error| connect_hub_error(error, message_log.violations()))?;
        let list_changes = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&list_changes);
        live.tasks.spawn(async move {
            loop {
                lists_changed.notified().await;
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Self {
            live,
            settings,
            mirrored: ArcSwap::default(),
            list_changes,
            message_log,
            waiting: AtomicUsize::new(0),
            disconnect_reason: Mutex::default(),
        })
    }

    /// Returns `stdio`, `streamable-http`, or `sse` for the legacy HTTP+SSE transport.
    pub fn transport(&self) -> &'static str {
        self.live.client.transport()
    }

    pub fn version(&self) -> Version {
        self.live.server.version
    }

    /// Returns the `serverInfo` of the server.
    pub fn server_info(&self) -> Option<&RawValue> {
        self.live.server.info.as_deref()
    }

    pub fn capabilities(&self) -> &RawValue {
        &self.live.server.capabilities
    }

    pub fn instructions(&self) -> Option<&str> {
        self.live.server.instructions.as_deref()
    }

    /// Returns why the server is disconnected, if it is known to be.
    pub fn disconnect_reason(&self) -> Option<String> {
        let reason = self.disconnect_reason.lock().clone();
        reason.or_else(|| self.live.client.closed().now_or_never())
    }

    /// Returns the protocol violations of the server.
    pub fn violations(&self) -> &Violations {
        self.message_log.violations()
    }

    /// Returns how often the server has announced a list change.
    pub fn list_change_count(&self) -> u64 {
        self.list_changes.load(Ordering::Relaxed)
    }

    /// Returns the last lines that the server process wrote to standard error.
    pub fn stderr(&self) -> Vec<String> {
        self.live.stderr()
    }

    /// Sends a request that is not a call, such as one for a subscription. The caller limits the
    /// time, because some of these requests stay open.
    pub async fn request(&self, method: &'static str, params: Object) -> Result<Raw, HubError> {
        match self.live.request(method, params).await {
            Ok(result) => Ok(result),
            Err(failure) => Err(self.to_hub_error(failure).await),
        }
    }

    /// Reads a list to its end. If the server does not support the list, its error is returned with
    /// its code.
    pub async fn list(&self, list: ServerListKind) -> Result<PagedList, HubError> {
        let limit = self.settings.start_timeout;
        let mut reserved = self.live.definitions.reserve();
        let read = self.run_until_stray_response(fetch_pages(&self.live, list, &mut reserved));
        let read = match tokio::time::timeout(limit, read).await {
            Ok(read) => read.unwrap_or_else(Err),
            Err(_) => return Err(self.timeout_error(limit)),
        };
        match read {
            Ok(pages) => {
                let pages = PagedList { reserved: Some(Arc::new(reserved)), ..pages };
                self.set_disconnect_reason(None);
                if list == ServerListKind::Tools
                    && self.live.is_modern()
                    && matches!(*self.live.client, McpClient::StreamableHttp(_))
                {
                    self.mirrored.store(Arc::new(collect_header_schemas(&pages.items)));
                }
                Ok(pages)
            }
            Err(failure) => Err(self.to_hub_error(failure).await),
        }
    }

    /// Executes one call, without retries.
    pub async fn call(&self, call: &SourceCall) -> DirectCallOutcome {
        Box::pin(self.live.authorizer.ensure_fresh()).await;
        let mirrored = self.mirrored.load();
        let sender = CallSender { live: &self.live, settings: &self.settings, mirrored: &mirrored };
        let was_connected = self.disconnect_reason().is_none();
        let started = Instant::now();
        let result = self.run_until_stray_response(Box::pin(sender.send(call))).await;
        let result = result.unwrap_or_else(|failure| Err(failure.into()));
        let duration = started.elapsed();
        let was_sent = match &result {
            Ok(_) | Err(UpstreamError::TimedOut | UpstreamError::Aborted(_)) => true,
            Err(UpstreamError::Wire(failure)) => was_connected && was_sent(failure),
        };
        let result = match result {
            Ok(outcome) => {
                self.set_disconnect_reason(None);
                Ok(outcome)
            }
            Err(UpstreamError::Wire(failure)) => Err(self.to_hub_error(failure).await),
            Err(UpstreamError::TimedOut) => Err(self.timeout_error(self.settings.call_timeout)),
            Err(UpstreamError::Aborted(error)) => Err(error),
        };
        DirectCallOutcome { result, duration, was_sent }
    }

    /// Waits for the response to a request. A response with an unknown ID ends the wait with an
    /// error if this is the only pending request, because it was probably meant for this one.
    async fn run_until_stray_response<T>(&self, work: impl Future<Output = T>) -> Result<T, WireError> {
        let stray = self.violations().next_stray_response();
        let _pending = PendingRequestGuard::new(&self.waiting);
        tokio::pin!(work);
        tokio::select! {
            biased;
            output = &mut work => return Ok(output),
            reason = stray => if self.waiting.load(Ordering::Relaxed) == 1 {
                return Err(WireError::Protocol(reason));
            },
        }
        Ok(work.await)
    }

    /// Closes the connection. Calls in flight fail. Returns how the process ended, if there is one.
    pub async fn close(&self) -> Option<String> {
        if let McpClient::StreamableHttp(post) = &*self.live.client {
            let _ = tokio::time::timeout(Duration::from_secs(3), post.end_session()).await;
        }
        self.live.authorizer.wait_for_renewals().await;
        match &self.live.child {
            Some(child) => Some(child.stop(STOP_GRACE).await.description),
            None => None,
        }
    }

    fn set_disconnect_reason(&self, reason: Option<String>) {
        *self.disconnect_reason.lock() = reason;
    }

    fn timeout_error(&self, limit: Duration) -> HubError {
        let message = format!("no response from the server within {} s", limit.as_secs_f64());
        let mut details = Map::new();
        add_stderr(&mut details, &self.live.stderr());
        HubError::new(ErrorKind::TimedOut, message)
            .with_details(Value::Object(details))
            .with_suggestion("check what the server waits for, or increase the timeout")
    }

    async fn to_hub_error(&self, failure: WireError) -> HubError {
        let description = failure.to_string();
        if matches!(failure, WireError::Unreachable(_) | WireError::SessionGone) {
            self.set_disconnect_reason(Some(description.clone()));
        }
        if let WireError::Protocol(rule) = &failure
            && !self.violations().last().contains(rule)
        {
            self.violations().add(rule);
        }
        let (kind, mut details) = match &failure {
            WireError::Rpc(error) => {
                return rpc_to_hub_error(error.clone()).with_details(Value::Object(error_details(&failure)));
            }
            WireError::Unauthorized { .. } => (ErrorKind::Unauthenticated, error_details(&failure)),
            WireError::TooLarge(_) => (ErrorKind::ToolFailed, error_details(&failure)),
            _ => (ErrorKind::ConnectionLost, error_details(&failure)),
        };
        let mut message = match &failure {
            WireError::Lost(reason) => format!("the connection to the server was lost: {reason}"),
            _ => format!("the server {description}"),
        };
        if let Some(child) = &self.live.child {
            if let Some((description, exit)) = exit_details(child).await {
                message = format!("the server {description}");
                details.extend(exit);
            }
            add_stderr(&mut details, &child.stderr_tail());
        }
        HubError::new(kind, message).with_details(Value::Object(details))
    }
}

/// Counts a request as pending until dropped.
struct PendingRequestGuard<'a>(&'a AtomicUsize);

impl<'a> PendingRequestGuard<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for PendingRequestGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns whether a request with this failure reached the server. Requests that were rejected
/// before they were processed do not count.
fn was_sent(failure: &WireError) -> bool {
    match failure {
        WireError::Rpc(_) | WireError::Lost(_) | WireError::Protocol(_) | WireError::TooLarge(_) => true,
        WireError::Status { status, .. } => *status == 500,
        WireError::Unreachable(_)
        | WireError::Unauthorized { .. }
        | WireError::SessionGone
        | WireError::Redirected { .. } => false,
    }
}

/// Returns how a process ended, if it has.
async fn exit_details(child: &Child) -> Option<(String, Map<String, Value>)> {
    let exit = tokio::time::timeout(EXIT, child.wait()).await.ok()?;
    let mut details = Map::new();
    details.insert("exit_code".to_owned(), json!(exit.code));
    Some((exit.description, details))
}

/// Returns the structured details of a failure.
fn error_details(failure: &WireError) -> Map<String, Value> {
    let details = match failure {
        WireError::Rpc(error) => {
            let mut rpc = json!({"code": error.code, "message": error.message});
            if let Some(data) = &error.data {
                rpc["data"] = data.clone();
            }
            json!({"rpc_error": rpc})
        }
        WireError::Unauthorized { challenge, status } => {
            json!({"http_status": status, "www_authenticate": challenge})
        }
        WireError::Status { status, body } => json!({"http_status": status, "body": body}),
        WireError::Redirected { status, to } => json!({"http_status": status, "redirects_to": to}),
        WireError::SessionGone => json!({"http_status": 404}),
        WireError::Unreachable(_) | WireError::Lost(_) | WireError::Protocol(_) | WireError::TooLarge(_) => {
            json!({})
        }
    };
    match details {
        Value::Object(details) => details,
        _ => Map::new(),
    }
}

fn add_stderr(details: &mut Map<String, Value>, stderr: &[String]) {
    if !stderr.is_empty() {
        details.insert("stderr".to_owned(), json!(stderr));
    }
}

fn connect_hub_error(error: ConnectError, violations: &Violations) -> HubError {
    let mut reason = error.reason;
    let (mut details, suggestion) = match *error.cause {
        ConnectErrorCause::Failure(failure) => {
            reason = short_reason(&failure);
            (error_details(&failure), None)
        }
        ConnectErrorCause::Spawn(error) => {
            reason = error.to_string();
            (Map::new(), error.suggestion())
        }
        ConnectErrorCause::Exit(exit, note) => {
            if let Some(note) = note {
                reason = format!("{reason}; {note}");
            }
            (Map::from_iter([("exit_code".to_owned(), json!(exit.code))]), None)
        }
        ConnectErrorCause::Other | ConnectErrorCause::TimedOut | ConnectErrorCause::Unauthorized(_) => {
            (Map::new(), None)
        }
    };
    add_stderr(&mut details, &error.stderr);
    if violations.total() > 0 {
        details.insert("protocol_violations".to_owned(), json!(violations.last()));
    }
    let error = HubError::new(ErrorKind::CannotConnect, reason).with_details(Value::Object(details));
    suggestion.into_iter().fold(error, HubError::with_suggestion)
}
