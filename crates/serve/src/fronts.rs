//! The fronts of one listener: REST, the control socket, and MCP endpoints for the whole yard, for
//! each built-in endpoint and for each source. The endpoint of a source is opened on first use.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinSet;
use toolyard_hub::{Principal, SourceName, Visibility, Yard, YardScope};
use toolyard_seal::SealingKeys;
use toolyard_wire::{Endpoint, EndpointSettings, SessionRegistry};

use crate::control::{ControlFront, ControlSettings};
use crate::mcp::{EndpointReplicas, Identity, McpFront, McpSettings, announce};
use crate::replicas::{PlacedServers, ReplicaRouter, RequestAffinity};
use crate::rest::{RestFront, RestSettings};

/// The name of a built-in endpoint. Routes exist for those in [`BuiltinEndpointName::ALL`] only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinEndpointName {
    Tester,
    Programs,
}

impl BuiltinEndpointName {
    pub const ALL: [Self; 2] = [Self::Tester, Self::Programs];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tester => "tester",
            Self::Programs => "programs",
        }
    }

    /// The tester keeps the connection to the server under test in memory.
    fn affinity(self) -> RequestAffinity {
        match self {
            Self::Tester => RequestAffinity::Principal,
            Self::Programs => RequestAffinity::Any,
        }
    }
}

/// An endpoint with tools of Toolyard itself, separate from the tools of the yard. It serves a yard
/// of its own or a part of the same yard.
#[derive(Debug, Clone)]
pub struct BuiltinEndpoint {
    /// The endpoint is served at `/{name}/mcp`.
    pub name: BuiltinEndpointName,
    pub yard: Arc<Yard>,
    /// The part of the yard to serve.
    pub reach: YardScope,
    /// Name and version that the endpoint reports to clients.
    pub identity: Identity,
}

pub(crate) struct Fronts {
    yard: Arc<Yard>,
    factory: EndpointFactory,
    all: FrontEndpoint,
    builtin_endpoints: Vec<(BuiltinEndpointName, FrontEndpoint)>,
    rest: Arc<RestFront>,
    control: Arc<ControlFront>,
    sources: Mutex<HashMap<SourceName, FrontEndpoint>>,
}

/// The settings of all fronts of a listener.
pub(crate) struct FrontSettings {
    pub(crate) mcp: McpSettings,
    pub(crate) endpoint: EndpointSettings,
    pub(crate) control: ControlSettings,
    /// Protects what clients carry for the yard.
    pub(crate) keys: SealingKeys,
    /// The other replicas of the yard, if there can be any.
    pub(crate) replicas: Option<Arc<ReplicaRouter>>,
}

/// What all MCP endpoints have in common.
struct EndpointFactory {
    mcp: McpSettings,
    endpoint: EndpointSettings,
    keys: SealingKeys,
    replicas: Option<Arc<ReplicaRouter>>,
    announcers: Mutex<JoinSet<()>>,
}

#[derive(Clone)]
struct FrontEndpoint {
    front: Arc<McpFront>,
    endpoint: Arc<Endpoint<McpFront>>,
}

impl Fronts {
    pub(crate) fn new(yard: Arc<Yard>, builtin: Vec<BuiltinEndpoint>, settings: FrontSettings) -> Arc<Self> {
        let FrontSettings { mcp, endpoint, control, keys, replicas } = settings;
        // Sources of this yard that a built-in endpoint serves are not part of the yard endpoint.
        let of_this_yard = builtin.iter().filter(|builtin| Arc::ptr_eq(&builtin.yard, &yard));
        let excluded: Vec<SourceName> =
            of_this_yard.flat_map(|builtin| builtin.reach.named_sources().to_vec()).collect();
        let reach = if excluded.is_empty() { YardScope::All } else { YardScope::Without(excluded.into()) };
        let rest = RestSettings::from_mcp(&mcp, &endpoint).with_replicas(replicas.clone());
        let rest = RestFront::new(Arc::clone(&yard), rest);
        let control = ControlFront::new(Arc::clone(&yard), &control, &mcp, &endpoint, replicas.clone());
        let factory = EndpointFactory { mcp, endpoint, keys, replicas, announcers: Mutex::default() };
        let any = RequestAffinity::Any;
        let all = factory.open(("/mcp".to_owned(), any), &yard, reach, &factory.mcp.identity);
        let open_builtin = |BuiltinEndpoint { name, yard, reach, identity }| {
            let place = (format!("/{}/mcp", name.as_str()), name.affinity());
            (name, factory.open(place, &yard, reach, &identity))
        };
        let builtin_endpoints = builtin.into_iter().map(open_builtin).collect();
        Arc::new(Self { yard, factory, all, builtin_endpoints, rest, control, sources: Mutex::default() })
    }

    pub(crate) fn builtin_endpoint(&self, name: BuiltinEndpointName) -> Option<&Arc<Endpoint<McpFront>>> {
        self.builtin_endpoints.iter().find(|(known, _)| *known == name).map(|(_, open)| &open.endpoint)
    }

    pub(crate) fn yard(&self) -> &Arc<Yard> {
        &self.yard
    }

    /// Returns the endpoint of the whole yard.
    pub(crate) fn yard_endpoint(&self) -> &Arc<Endpoint<McpFront>> {
        &self.all.endpoint
    }

    /// Returns what the principal can see of the yard.
    pub(crate) fn visibility(&self, principal: &Principal) -> Visibility {
        self.yard.visibility(principal)
    }

    /// The servers that run on one of several replicas only.
    pub(crate) fn placed_servers(&self) -> Option<&Arc<PlacedServers>> {
        self.factory.replicas.as_ref().map(|router| router.placed_servers())
    }

    pub(crate) fn rest(&self) -> &Arc<RestFront> {
        &self.rest
    }

    pub(crate) fn control(&self) -> &Arc<ControlFront> {
        &self.control
    }

    /// Returns the endpoint of one source, with unprefixed names, or `None` if the source is
    /// unknown.
    pub(crate) fn source_endpoint(&self, name: &str) -> Option<Arc<Endpoint<McpFront>>> {
        let name = SourceName::new(name);
        if !self.yard.has_source(&name) {
            return None;
        }
        let mut sources = self.sources.lock();
        let source = sources.entry(name.clone()).or_insert_with(|| {
            let place = (format!("/servers/{name}/mcp"), RequestAffinity::Any);
            self.factory.open(place, &self.yard, YardScope::Source(name), &self.factory.mcp.identity)
        });
        Some(Arc::clone(&source.endpoint))
    }

    /// Returns the open legacy sessions of every endpoint.
    pub(crate) fn sessions(&self) -> Vec<Arc<SessionRegistry<Principal>>> {
        self.endpoints().iter().map(|open| Arc::clone(open.endpoint.sessions())).collect()
    }

    /// Returns the number of calls that wait for an answer of a modern client.
    pub(crate) fn parked_calls(&self) -> usize {
        self.endpoints().iter().map(|open| open.front.parked_calls()).sum()
    }

    /// Closes every legacy session, because another replica may have taken it over.
    pub(crate) fn close_sessions(&self) {
        self.endpoints().iter().for_each(|open| open.endpoint.close_sessions());
    }

    /// Reports this process as not ready. It continues to accept requests.
    pub(crate) fn announce_stop(&self) {
        self.rest.close();
    }

    /// Ends endless streams and stops accepting requests. Calls in flight continue.
    pub(crate) fn close(&self) {
        self.rest.close();
        self.control.close();
        self.endpoints().iter().for_each(|open| open.endpoint.close());
    }

    /// Waits for calls that outlive their connection, then ends every session.
    pub(crate) async fn drain(&self) {
        self.rest.drain().await;
        self.control.drain().await;
        for open in self.endpoints() {
            open.endpoint.drain().await;
        }
    }

    /// Cancels the calls that did not finish in time.
    pub(crate) fn cancel_calls(&self) {
        self.rest.cancel_calls();
        self.control.cancel_calls();
        self.endpoints().iter().for_each(|open| open.endpoint.close_sessions());
    }

    /// Waits for canceled calls to clean up.
    pub(crate) async fn shutdown(&self) {
        self.factory.announcers.lock().abort_all();
        self.rest.shutdown().await;
        self.control.shutdown().await;
        for open in self.endpoints() {
            open.front.shutdown().await;
        }
    }

    fn endpoints(&self) -> Vec<FrontEndpoint> {
        let sources = self.sources.lock();
        let builtin = self.builtin_endpoints.iter().map(|(_, open)| open);
        std::iter::once(&self.all).chain(builtin).chain(sources.values()).cloned().collect()
    }
}

impl EndpointFactory {
    fn open(
        &self,
        (path, affinity): (String, RequestAffinity),
        yard: &Arc<Yard>,
        reach: YardScope,
        identity: &Identity,
    ) -> FrontEndpoint {
        let mcp = McpSettings { identity: identity.clone(), ..self.mcp.clone() };
        let mut front = McpFront::new(Arc::clone(yard), reach, mcp, self.keys.clone());
        if let Some(router) = self.replicas.clone() {
            front = front.with_replicas(EndpointReplicas { router, path: path.into_boxed_str(), affinity });
        }
        let front = Arc::new(front);
        let endpoint = Endpoint::new(Arc::clone(&front), self.endpoint.clone());
        let announcing = announce(Arc::clone(&front), Arc::clone(endpoint.sessions()));
        self.announcers.lock().spawn(announcing);
        FrontEndpoint { front, endpoint }
    }
}
