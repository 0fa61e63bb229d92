//! One connection to one server for somebody who wants to see what it is like: nothing is retried, nothing is hidden,
//! and when it breaks it stays broken. Servers of the yard are supervised instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolyard_hub::{ClientCapabilities, ErrorKind, HubError, Outcome, SourceCall};
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

/// How long the end of a process may take to be noticed after its streams broke.
const EXIT: Duration = Duration::from_millis(500);
/// How long a server may take to go by itself once it was told that it is over.
const GRACE: Duration = Duration::from_secs(2);

/// One connection, of one client's own.
#[derive(Debug)]
pub struct DirectConnection {
    live: LiveConnection,
    settings: ServerSettings,
    mirrored: ArcSwap<HeaderSchemas>,
    /// How often the server has said that its lists are not what they were.
    list_changes: Arc<AtomicU64>,
    message_log: Arc<MessageLog>,
    /// How many requests are waited for.
    waiting: AtomicUsize,
    /// Why the server is known to be gone, over transports where only a request finds that out.
    disconnect_reason: Mutex<Option<String>>,
}

/// How a call went.
#[derive(Debug)]
pub struct DirectCallOutcome {
    pub result: Result<Outcome, HubError>,
    /// The time of the conversation alone.
    pub duration: Duration,
    /// Whether the server has got the call, as far as can be known.
    pub was_sent: bool,
}

impl DirectConnection {
    /// Connects for a client with these abilities, or says why not: the error is of the kind *cannot connect*, and its
    /// details have the facts.
    pub async fn open(
        settings: ServerSettings,
        common: &UpstreamContext,
        abilities: &ClientCapabilities,
        credentials: CredentialPolicy,
    ) -> Result<Self, HubError> {
        let tape = Arc::new(MessageLog::default());
        let authoriser = Authorizer::new(&settings, &common.auth);
        let alone = DedicatedConnectionParams {
            common,
            settings: &settings,
            authorizer: &authoriser,
            abilities,
            era: settings.era,
            message_log: &tape,
            credentials,
        };
        let (mut live, lists) = connect_dedicated(alone)
            .await
            .map_err(|refused| connect_hub_error(refused, tape.violations()))?;
        let changes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&changes);
        live.tasks.spawn(async move {
            loop {
                lists.notified().await;
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Self {
            live,
            settings,
            mirrored: ArcSwap::default(),
            list_changes: changes,
            message_log: tape,
            waiting: AtomicUsize::new(0),
            disconnect_reason: Mutex::default(),
        })
    }

    /// `stdio`, `streamable-http`, or `sse` for the transport of before.
    pub fn transport(&self) -> &'static str {
        self.live.client.transport()
    }

    pub fn version(&self) -> Version {
        self.live.server.version
    }

    /// Who the server says it is.
    pub fn server_info(&self) -> Option<&RawValue> {
        self.live.server.info.as_deref()
    }

    pub fn capabilities(&self) -> &RawValue {
        &self.live.server.capabilities
    }

    pub fn instructions(&self) -> Option<&str> {
        self.live.server.instructions.as_deref()
    }

    /// Why the server is known to be gone, if it is.
    pub fn disconnect_reason(&self) -> Option<String> {
        let noticed = self.disconnect_reason.lock().clone();
        noticed.or_else(|| self.live.client.closed().now_or_never())
    }

    /// What the server has done against the rules of the protocol.
    pub fn violations(&self) -> &Violations {
        self.message_log.violations()
    }

    /// How often the server has said that its lists are not what they were.
    pub fn list_change_count(&self) -> u64 {
        self.list_changes.load(Ordering::Relaxed)
    }

    /// Reads a list to its end. One that the server does not have at all is an error of its own with its code.
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

    /// Carries one call out, once.
    pub async fn call(&self, call: &SourceCall) -> DirectCallOutcome {
        Box::pin(self.live.authorizer.ensure_fresh()).await;
        let mirrored = self.mirrored.load();
        let sender = CallSender { live: &self.live, settings: &self.settings, mirrored: &mirrored };
        let was_there = self.disconnect_reason().is_none();
        let began = Instant::now();
        let ended = self.run_until_stray_response(Box::pin(sender.send(call))).await;
        let ended = ended.unwrap_or_else(|failure| Err(failure.into()));
        let took = began.elapsed();
        let reached = match &ended {
            Ok(_) | Err(UpstreamError::TimedOut | UpstreamError::Aborted(_)) => true,
            Err(UpstreamError::Wire(failure)) => was_there && was_sent(failure),
        };
        let ended = match ended {
            Ok(outcome) => {
                self.set_disconnect_reason(None);
                Ok(outcome)
            }
            Err(UpstreamError::Wire(failure)) => Err(self.to_hub_error(failure).await),
            Err(UpstreamError::TimedOut) => Err(self.timeout_error(self.settings.call_timeout)),
            Err(UpstreamError::Aborted(error)) => Err(error),
        };
        DirectCallOutcome { result: ended, duration: took, was_sent: reached }
    }

    /// Stays with a request until it is answered, or until the server answers something that no request has asked while
    /// this is the only one: then that was its answer.
    async fn run_until_stray_response<T>(&self, work: impl Future<Output = T>) -> Result<T, WireError> {
        let stray = self.violations().next_stray_response();
        let _waiting = PendingRequestGuard::new(&self.waiting);
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            why = stray => if self.waiting.load(Ordering::Relaxed) == 1 {
                return Err(WireError::Protocol(why));
            },
        }
        Ok(work.await)
    }

    /// Ends it politely; calls that are under way fail. Says how its process ended, if it has one.
    pub async fn close(&self) -> Option<String> {
        if let McpClient::StreamableHttp(post) = &*self.live.client {
            let _ = tokio::time::timeout(Duration::from_secs(3), post.end_session()).await;
        }
        self.live.authorizer.wait_for_renewals().await;
        match &self.live.child {
            Some(child) => Some(child.stop(GRACE).await.description),
            None => None,
        }
    }

    fn set_disconnect_reason(&self, gone: Option<String>) {
        *self.disconnect_reason.lock() = gone;
    }

    fn timeout_error(&self, limit: Duration) -> HubError {
        let message = format!("the server said nothing for {} s", limit.as_secs_f64());
        let mut facts = Map::new();
        add_stderr(&mut facts, &self.live.stderr());
        HubError::new(ErrorKind::TimedOut, message)
            .with_details(Value::Object(facts))
            .with_suggestion("find out what it waits for, or allow it more time")
    }

    async fn to_hub_error(&self, failure: WireError) -> HubError {
        let words = failure.to_string();
        if matches!(failure, WireError::Unreachable(_) | WireError::SessionGone) {
            self.set_disconnect_reason(Some(words.clone()));
        }
        if let WireError::Protocol(rule) = &failure
            && !self.violations().last().contains(rule)
        {
            self.violations().add(rule);
        }
        let (kind, mut facts) = match &failure {
            WireError::Rpc(error) => {
                return rpc_to_hub_error(error.clone()).with_details(Value::Object(error_details(&failure)));
            }
            WireError::Unauthorized { .. } => (ErrorKind::Unauthenticated, error_details(&failure)),
            WireError::TooLarge(_) => (ErrorKind::ToolFailed, error_details(&failure)),
            _ => (ErrorKind::ConnectionLost, error_details(&failure)),
        };
        let mut message = match &failure {
            WireError::Lost(why) => format!("the connection to the server was lost: {why}"),
            _ => format!("the server {words}"),
        };
        if let Some(child) = &self.live.child {
            if let Some(fate) = exit_details(child).await {
                message = format!("the server {}", fate.0);
                facts.extend(fate.1);
            }
            add_stderr(&mut facts, &child.stderr_tail());
        }
        HubError::new(kind, message).with_details(Value::Object(facts))
    }
}

/// One more request is waited for, as long as this is there.
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

/// Whether the server has got a request that ended like this. What was refused before it was looked at has not arrived.
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

/// How a process ended, if it has.
async fn exit_details(child: &Child) -> Option<(String, Map<String, Value>)> {
    let fate = tokio::time::timeout(EXIT, child.wait()).await.ok()?;
    let mut facts = Map::new();
    facts.insert("exit_code".to_owned(), json!(fate.code));
    Some((fate.description, facts))
}

/// What a failure has beside its words.
fn error_details(failure: &WireError) -> Map<String, Value> {
    let facts = match failure {
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
    match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}

fn add_stderr(facts: &mut Map<String, Value>, stderr: &[String]) {
    if !stderr.is_empty() {
        facts.insert("stderr".to_owned(), json!(stderr));
    }
}

fn connect_hub_error(refused: ConnectError, violations: &Violations) -> HubError {
    let mut reason = refused.reason;
    let (mut facts, suggestion) = match *refused.cause {
        ConnectErrorCause::Failure(failure) => {
            reason = short_reason(&failure);
            (error_details(&failure), None)
        }
        ConnectErrorCause::Spawn(error) => {
            reason = error.to_string();
            (Map::new(), error.suggestion())
        }
        ConnectErrorCause::Exit(fate) => (Map::from_iter([("exit_code".to_owned(), json!(fate.code))]), None),
        ConnectErrorCause::Other | ConnectErrorCause::TimedOut | ConnectErrorCause::Unauthorized(_) => {
            (Map::new(), None)
        }
    };
    add_stderr(&mut facts, &refused.stderr);
    if violations.total() > 0 {
        facts.insert("protocol_violations".to_owned(), json!(violations.last()));
    }
    let error = HubError::new(ErrorKind::CannotConnect, reason).with_details(Value::Object(facts));
    suggestion.into_iter().fold(error, HubError::with_suggestion)
}
