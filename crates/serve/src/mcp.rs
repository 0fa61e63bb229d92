//! The MCP front: what each method of the protocol means for the yard, in both eras.

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

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::task::TaskTracker;
use toolyard_hub::{CatalogView, ClientEra, Principal, Quota, Yard, YardScope};
use toolyard_wire::{
    Charge, Era, InboundRequest, LEGACY_METHODS, RawJson, RpcError, ServerDescription, Service, Version,
};

pub(crate) use active_call::{is_valid_answer, number};
pub(crate) use listen::announce;
use park::ParkedCalls;
pub(crate) use park::ParkingKey;

/// Every method that an MCP client can call, by era, those that the transport answers included.
pub(crate) fn methods() -> Vec<(Era, &'static str)> {
    let mut methods: Vec<_> = LEGACY_METHODS.iter().map(|name| (Era::Legacy, *name)).collect();
    for (_, name, only) in McpMethod::ALL {
        let eras = [Era::Legacy, Era::Modern].into_iter().filter(|era| only.is_none_or(|only| only == *era));
        methods.extend(eras.map(|era| (era, name)));
    }
    methods
}

/// A method of the protocol that this front answers. What the transport answers itself (`initialize`, `ping`,
/// `logging/setLevel`) is not among them. A method is parsed by looking it up in [`McpMethod::ALL`], so one that is missing there does not
/// exist for any client.
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
    /// Every method with its name and the era that it is limited to.
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

/// Who this server says it is.
#[derive(Debug, Clone)]
pub struct Identity {
    pub name: String,
    pub title: Option<String>,
    pub version: String,
    pub instructions: Option<String>,
}

/// What the MCP front obeys.
#[derive(Debug, Clone)]
pub struct McpSettings {
    pub identity: Identity,
    /// How many things one page of a list has. Many clients read the first page only.
    pub page: usize,
    /// How long clients may keep a list without asking again.
    pub list_ttl: Duration,
    /// How many calls may wait for a modern client's answer, and for how long.
    pub parked: usize,
    pub parked_time: Duration,
    /// How long a list waits for sources that are still starting.
    pub start_wait: Duration,
    /// Headers of callers, by lower-case name, that some source is to be handed.
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

/// One yard, spoken to in MCP.
#[derive(Debug)]
pub(crate) struct McpFront {
    yard: Arc<Yard>,
    reach: YardScope,
    settings: McpSettings,
    /// `{name, title, version}`, made once.
    info: RawJson,
    parking: ParkedCalls,
    /// Calls under way.
    calls: TaskTracker,
}

/// How long calls that were cancelled may take to put things away before the process ends.
const SETTLE: Duration = Duration::from_secs(5);

impl McpFront {
    pub(crate) fn new(yard: Arc<Yard>, reach: YardScope, settings: McpSettings, key: ParkingKey) -> Self {
        let parking = ParkedCalls::new(settings.parked, settings.parked_time, key);
        let calls = TaskTracker::new();
        Self { info: discover::info(&settings.identity), yard, reach, settings, parking, calls }
    }

    /// What the caller of this request may see of it.
    fn view(&self, request: &InboundRequest<Principal>) -> CatalogView {
        self.yard.view_for_era(&request.caller, client_era(request)).with_scope(self.reach.clone())
    }

    /// Waits for the calls that nobody waits for any more: what runs in them must learn that before the
    /// process ends.
    pub(crate) async fn shutdown(&self) {
        self.parking.clear();
        self.calls.close();
        if tokio::time::timeout(SETTLE, self.calls.wait()).await.is_err() {
            tracing::warn!(calls = self.calls.len(), "calls that were cancelled do not end");
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
            self.yard.admit_list(&request.caller).map_err(|error| response::quota_error(&error))?;
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
            McpMethod::Subscribe => self.subscribe(&request),
            McpMethod::Unsubscribe => Self::unsubscribe(&request),
        }
    }
}

/// Sources are spoken to in the era of the client whose request it is.
fn client_era(request: &InboundRequest<Principal>) -> ClientEra {
    match request.version.era() {
        Era::Legacy => ClientEra::Legacy,
        Era::Modern => ClientEra::Newest,
    }
}

/// Reads the params of a method, or says what is wrong with them.
fn params<'a, T: Deserialize<'a>>(method: &str, params: Option<&'a RawValue>) -> Result<T, RpcError> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|error| RpcError::invalid_params(format!("the params of {method} cannot be read: {error}")))
}
