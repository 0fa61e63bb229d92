//! The MCP front: maps each method of the protocol to the yard, in both eras.

mod active_call;
mod call;
mod complete;
mod discover;
mod list;
mod listen;
mod park;
mod response;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Response, request::Parts};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::task::TaskTracker;
use toolyard_hub::{CatalogView, ClientEra, Principal, Quota, ReplicaId, Yard, YardScope};
use toolyard_random::RandomError;
use toolyard_seal::SealingKeys;
use toolyard_wire::{
    Charge, ClientProfile, Era, InboundRequest, LEGACY_METHODS, LoggedStream, RawJson, RestoredSession,
    RpcError, ServerDescription, Service, Session, SessionId, SessionRegistry, StreamLog, SubscriptionGuard,
    Version,
};

use crate::replicas::{ReplicaRouter, RequestAffinity, RoutedEndpoint};

pub(crate) use active_call::{is_valid_answer, number};
pub(crate) use listen::announce;
use park::ParkedCalls;
pub(crate) use park::parked_at;
#[cfg(test)]
pub(crate) use response::tests::describe_tool_error;

/// Returns every method that an MCP client can call, by era, including those that the transport
/// answers.
pub(crate) fn methods() -> Vec<(Era, &'static str)> {
    let mut methods: Vec<_> = LEGACY_METHODS.iter().map(|name| (Era::Legacy, *name)).collect();
    for (_, name, only) in McpMethod::ALL {
        let eras = [Era::Legacy, Era::Modern].into_iter().filter(|era| only.is_none_or(|only| only == *era));
        methods.extend(eras.map(|era| (era, name)));
    }
    methods
}

/// A method that this front answers. Methods that the transport answers itself (`initialize`,
/// `ping`, `logging/setLevel`) are not included. Parsing looks a method up in [`McpMethod::ALL`],
/// so a method that is missing there cannot be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum McpMethod {
    ListTools,
    ListResources,
    ListTemplates,
    ListPrompts,
    CallTool,
    ReadResource,
    GetPrompt,
    Complete,
    Discover,
    Listen,
    Subscribe,
    Unsubscribe,
}

impl McpMethod {
    /// Every method with its name and the only era that has it, if it is not in both.
    const ALL: [(Self, &str, Option<Era>); 12] = [
        (Self::ListTools, "tools/list", None),
        (Self::ListResources, "resources/list", None),
        (Self::ListTemplates, "resources/templates/list", None),
        (Self::ListPrompts, "prompts/list", None),
        (Self::CallTool, "tools/call", None),
        (Self::ReadResource, "resources/read", None),
        (Self::GetPrompt, "prompts/get", None),
        (Self::Complete, "completion/complete", None),
        (Self::Discover, "server/discover", Some(Era::Modern)),
        (Self::Listen, "subscriptions/listen", Some(Era::Modern)),
        (Self::Subscribe, "resources/subscribe", Some(Era::Legacy)),
        (Self::Unsubscribe, "resources/unsubscribe", Some(Era::Legacy)),
    ];

    fn parse(name: &str, era: Era) -> Option<Self> {
        let exists = |only: Option<Era>| only.is_none_or(|only| only == era);
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known, only)| *known == name && exists(*only)).map(|(method, ..)| method)
    }
}

/// Name, version and instructions that the server reports to clients.
#[derive(Debug, Clone)]
pub struct Identity {
    pub name: String,
    pub title: Option<String>,
    pub version: String,
    pub instructions: Option<String>,
}

/// Settings of the MCP front.
#[derive(Debug, Clone)]
pub struct McpSettings {
    pub identity: Identity,
    /// Number of items on one page of a list. Many clients read only the first page.
    pub page: usize,
    /// How long clients may cache a list.
    pub list_ttl: Duration,
    /// Maximum number of parked calls, which wait for an answer of a modern client.
    pub parked: usize,
    /// How long a call stays parked.
    pub parked_time: Duration,
    /// How long a list waits for sources that are still starting.
    pub start_wait: Duration,
    /// Lowercase names of caller headers that are forwarded to sources.
    pub forward_headers: Vec<String>,
}

impl Default for McpSettings {
    fn default() -> Self {
        Self {
            identity: Identity {
                name: "toolyard".to_owned(),
                title: Some("Toolyard".to_owned()),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                instructions: None,
            },
            page: 1_000,
            list_ttl: Duration::from_secs(60),
            parked: 1_024,
            parked_time: Duration::from_secs(600),
            start_wait: Duration::from_secs(3),
            forward_headers: Vec::new(),
        }
    }
}

/// The MCP front of one yard.
#[derive(Debug)]
pub(crate) struct McpFront {
    yard: Arc<Yard>,
    reach: YardScope,
    settings: McpSettings,
    /// `{name, title, version}`, rendered once.
    info: RawJson,
    parking: ParkedCalls,
    /// Running calls.
    calls: TaskTracker,
    /// The endpoint among those of all replicas, in a yard with several.
    replicas: Option<EndpointReplicas>,
}

/// The same endpoint of all replicas.
#[derive(Debug, Clone)]
pub(crate) struct EndpointReplicas {
    pub(crate) router: Arc<ReplicaRouter>,
    pub(crate) path: Box<str>,
    pub(crate) affinity: RequestAffinity,
}

/// Time limit for canceled calls to clean up before the process ends.
const SETTLE: Duration = Duration::from_secs(5);

impl McpFront {
    pub(crate) fn new(yard: Arc<Yard>, reach: YardScope, settings: McpSettings, keys: SealingKeys) -> Self {
        let parking = ParkedCalls::new(settings.parked, settings.parked_time, keys);
        let calls = TaskTracker::new();
        let info = discover::info(&settings.identity);
        Self { info, yard, reach, settings, parking, calls, replicas: None }
    }

    pub(crate) fn with_replicas(self, replicas: EndpointReplicas) -> Self {
        Self { replicas: Some(replicas), ..self }
    }

    /// Returns the number of parked calls.
    pub(crate) fn parked_calls(&self) -> usize {
        self.parking.len()
    }

    /// Returns the ID of this replica, in a yard with several.
    fn own_replica(&self) -> Option<ReplicaId> {
        self.replicas.as_ref().map(|replicas| replicas.router.replicas().own_id())
    }

    /// Returns what the caller of this request can see of the yard.
    fn view(&self, request: &InboundRequest<Principal>) -> CatalogView {
        self.yard.view_for_era(&request.caller, client_era(request)).with_scope(self.reach.clone())
    }

    /// Waits for abandoned calls. They must notice the cancellation before the process ends.
    pub(crate) async fn shutdown(&self) {
        self.parking.clear();
        self.calls.close();
        if tokio::time::timeout(SETTLE, self.calls.wait()).await.is_err() {
            tracing::warn!(calls = self.calls.len(), "canceled calls did not end at shutdown");
        }
    }
}

impl Service for McpFront {
    type Caller = Principal;

    fn describe(&self, _caller: &Principal, version: Version) -> ServerDescription {
        ServerDescription {
            info: self.info.clone(),
            capabilities: discover::capabilities(version),
            instructions: self.settings.identity.instructions.clone(),
        }
    }

    fn create_session_id(
        &self,
        caller: &Principal,
        version: Version,
        client: &ClientProfile,
    ) -> Result<SessionId, RandomError> {
        match &self.replicas {
            Some(replicas) => replicas.router.create_session_id(&replicas.path, caller, version, client),
            None => toolyard_random::hex_id().map(SessionId::plain),
        }
    }

    fn restore_session(&self, caller: &Principal, id: &str) -> Option<RestoredSession> {
        let replicas = self.replicas.as_ref()?;
        let subscribe = |uri: &str| {
            let subscription = self.yard.subscribe(caller, &self.reach, uri)?;
            Some(Box::new(subscription) as SubscriptionGuard)
        };
        replicas.router.restore_session(&replicas.path, caller, id, subscribe)
    }

    fn stream_log(&self, session: &SessionId) -> Option<Arc<dyn StreamLog>> {
        self.replicas.as_ref()?.router.stream_log(session)
    }

    async fn logged_stream(&self, session: &Session, stream: u64) -> Option<LoggedStream> {
        self.replicas.as_ref()?.router.logged_stream(session, stream).await
    }

    async fn session_changed(&self, session: &Session) {
        if let Some(replicas) = &self.replicas {
            replicas.router.save_session(session).await;
        }
    }

    async fn forward(
        &self,
        caller: &Principal,
        sessions: &SessionRegistry<Principal>,
        head: &Parts,
        body: &Bytes,
    ) -> Option<Response<Body>> {
        let replicas = self.replicas.as_ref()?;
        let (path, affinity) = (&*replicas.path, replicas.affinity);
        let endpoint = RoutedEndpoint { path, affinity, sessions, caller };
        // Boxed to keep the futures of requests small where there is only one replica.
        Box::pin(replicas.router.route(endpoint, head, body)).await
    }

    fn charge_session(&self, caller: &Principal) -> Result<Charge, RpcError> {
        let charge = self.yard.charge(caller, Quota::Sessions, 1);
        charge.map(|charge| Some(Box::new(charge) as _)).map_err(|error| response::quota_error(&error))
    }

    fn charge_bytes(&self, caller: &Principal, bytes: usize) -> Result<Charge, RpcError> {
        let charge = self.yard.charge(caller, Quota::Bytes, bytes);
        charge.map(|charge| Some(Box::new(charge) as _)).map_err(|error| response::quota_error(&error))
    }

    async fn handle(self: Arc<Self>, request: InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let Some(method) = McpMethod::parse(&request.method, request.version.era()) else {
            return Err(RpcError::method_not_found(&request.method));
        };
        if request.method.ends_with("/list") {
            self.yard.admit_list(&request.caller).await.map_err(|error| response::quota_error(&error))?;
            self.yard.wait_for_startup(self.settings.start_wait).await;
            self.yard.discover_era(client_era(&request), &self.reach, self.settings.start_wait).await;
        }
        match method {
            McpMethod::ListTools => self.list_tools(&request),
            McpMethod::ListResources => self.list_resources(&request),
            McpMethod::ListTemplates => self.list_templates(&request),
            McpMethod::ListPrompts => self.list_prompts(&request),
            McpMethod::CallTool => self.call_tool(request).await,
            McpMethod::ReadResource => self.read_resource(request).await,
            McpMethod::GetPrompt => self.get_prompt(request).await,
            McpMethod::Complete => self.complete(request).await,
            McpMethod::Discover => Ok(self.discover()),
            McpMethod::Listen => self.listen(request).await,
            McpMethod::Subscribe => self.subscribe(&request).await,
            McpMethod::Unsubscribe => self.unsubscribe(&request).await,
        }
    }
}

/// Returns the era in which sources are called, which is the era of the client.
fn client_era(request: &InboundRequest<Principal>) -> ClientEra {
    match request.version.era() {
        Era::Legacy => ClientEra::Legacy,
        Era::Modern => ClientEra::Newest,
    }
}

/// Parses the params of a method.
fn params<'a, T: Deserialize<'a>>(method: &str, params: Option<&'a RawValue>) -> Result<T, RpcError> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|error| RpcError::invalid_params(format!("invalid params of {method}: {error}")))
}
