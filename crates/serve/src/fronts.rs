//! The fronts of one listener: REST, the control socket, and MCP endpoints for the whole yard, for
//! each built-in endpoint and for each source. The endpoint of a source is opened on first use.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinSet;
use toolyard_hub::{Principal, SourceName, Visibility, Yard, YardScope};
use toolyard_wire::{Endpoint, EndpointSettings};

use crate::control::{ControlFront, ControlSettings};
use crate::mcp::{Identity, McpFront, McpSettings, ParkingKey, announce};
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
    mcp: McpSettings,
    endpoint: EndpointSettings,
    key: ParkingKey,
    all: FrontEndpoint,
    builtin_endpoints: Vec<(BuiltinEndpointName, FrontEndpoint)>,
    rest: Arc<RestFront>,
    control: Arc<ControlFront>,
    sources: Mutex<HashMap<SourceName, FrontEndpoint>>,
    announcers: Mutex<JoinSet<()>>,
}

#[derive(Clone)]
struct FrontEndpoint {
    front: Arc<McpFront>,
    endpoint: Arc<Endpoint<McpFront>>,
}

impl Fronts {
    pub(crate) fn new(
        yard: Arc<Yard>,
        builtin: Vec<BuiltinEndpoint>,
        mcp: McpSettings,
        endpoint: EndpointSettings,
        control: &ControlSettings,
        key: ParkingKey,
    ) -> Arc<Self> {
        // Sources of this yard that a built-in endpoint serves are not part of the yard endpoint.
        let of_this_yard = builtin.iter().filter(|builtin| Arc::ptr_eq(&builtin.yard, &yard));
        let excluded: Vec<SourceName> =
            of_this_yard.flat_map(|builtin| builtin.reach.named_sources().to_vec()).collect();
        let reach = if excluded.is_empty() { YardScope::All } else { YardScope::Without(excluded.into()) };
        let announcers = Mutex::new(JoinSet::new());
        let all = open(&yard, reach, &mcp, &endpoint, &key, &announcers);
        let open_builtin = |builtin: BuiltinEndpoint| {
            let mcp = McpSettings { identity: builtin.identity, ..mcp.clone() };
            (builtin.name, open(&builtin.yard, builtin.reach, &mcp, &endpoint, &key, &announcers))
        };
        let builtin_endpoints = builtin.into_iter().map(open_builtin).collect();
        let rest = RestFront::new(Arc::clone(&yard), RestSettings::from_mcp(&mcp, &endpoint));
        let control = ControlFront::new(Arc::clone(&yard), control, &mcp, &endpoint);
        let sources = Mutex::default();
        Arc::new(Self {
            yard,
            mcp,
            endpoint,
            key,
            all,
            builtin_endpoints,
            rest,
            control,
            sources,
            announcers,
        })
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
            open(&self.yard, YardScope::Source(name), &self.mcp, &self.endpoint, &self.key, &self.announcers)
        });
        Some(Arc::clone(&source.endpoint))
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
        self.announcers.lock().abort_all();
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

fn open(
    yard: &Arc<Yard>,
    reach: YardScope,
    mcp: &McpSettings,
    endpoint: &EndpointSettings,
    key: &ParkingKey,
    announcers: &Mutex<JoinSet<()>>,
) -> FrontEndpoint {
    let front = Arc::new(McpFront::new(Arc::clone(yard), reach, mcp.clone(), key.clone()));
    let endpoint = Endpoint::new(Arc::clone(&front), endpoint.clone());
    let announcing = announce(Arc::clone(&front), Arc::clone(endpoint.sessions()));
    announcers.lock().spawn(announcing);
    FrontEndpoint { front, endpoint }
}
