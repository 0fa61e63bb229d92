//! The fronts of one listener: REST, the control socket, an MCP endpoint for the whole yard, one for each annex, and one for each source that
//! somebody asked for by name, opened when first used.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinSet;
use toolyard_hub::{Principal, SourceName, Visibility, Yard, YardScope};
use toolyard_wire::{Endpoint, EndpointSettings};

use crate::control::{ControlFront, ControlSettings};
use crate::mcp::{Identity, McpFront, McpSettings, ParkingKey, announce};
use crate::rest::{RestFront, RestSettings};

/// Which annex. Routes exist for those in [`BuiltinEndpointName::ALL`] and no others.
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

/// Tools about tools behind the same door, apart from what the yard itself offers: a yard of their own, or a part of the
/// same one.
#[derive(Debug, Clone)]
pub struct BuiltinEndpoint {
    /// It is served at `/{name}/mcp`.
    pub name: BuiltinEndpointName,
    pub yard: Arc<Yard>,
    /// What of that yard it shows.
    pub reach: YardScope,
    /// Who it says it is.
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
        annexes: Vec<BuiltinEndpoint>,
        mcp: McpSettings,
        endpoint: EndpointSettings,
        control: &ControlSettings,
        key: ParkingKey,
    ) -> Arc<Self> {
        // What an annex shows of this very yard is not among what the yard shows.
        let apart = annexes.iter().filter(|annex| Arc::ptr_eq(&annex.yard, &yard));
        let apart: Vec<SourceName> = apart.flat_map(|annex| annex.reach.named_sources().to_vec()).collect();
        let reach = if apart.is_empty() { YardScope::All } else { YardScope::Without(apart.into()) };
        let announcers = Mutex::new(JoinSet::new());
        let all = open(&yard, reach, &mcp, &endpoint, &key, &announcers);
        let open_annex = |annex: BuiltinEndpoint| {
            let mcp = McpSettings { identity: annex.identity, ..mcp.clone() };
            (annex.name, open(&annex.yard, annex.reach, &mcp, &endpoint, &key, &announcers))
        };
        let annexes = annexes.into_iter().map(open_annex).collect();
        let rest = RestFront::new(Arc::clone(&yard), RestSettings::from_mcp(&mcp, &endpoint));
        let control = ControlFront::new(Arc::clone(&yard), control, &mcp, &endpoint);
        let sources = Mutex::default();
        Arc::new(Self {
            yard,
            mcp,
            endpoint,
            key,
            all,
            builtin_endpoints: annexes,
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

    /// The whole yard.
    pub(crate) fn yard_endpoint(&self) -> &Arc<Endpoint<McpFront>> {
        &self.all.endpoint
    }

    /// What a caller can see of the yard.
    pub(crate) fn visibility(&self, principal: &Principal) -> Visibility {
        self.yard.visibility(principal)
    }

    pub(crate) fn rest(&self) -> &Arc<RestFront> {
        &self.rest
    }

    pub(crate) fn control(&self) -> &Arc<ControlFront> {
        &self.control
    }

    /// One source, un-prefixed and untouched; `None` if there is none of this name.
    pub(crate) fn source_endpoint(&self, name: &str) -> Option<Arc<Endpoint<McpFront>>> {
        let name = SourceName::new(name);
        if !self.yard.has_source(&name) {
            return None;
        }
        let mut sources = self.sources.lock();
        let known = sources.entry(name.clone()).or_insert_with(|| {
            open(&self.yard, YardScope::Source(name), &self.mcp, &self.endpoint, &self.key, &self.announcers)
        });
        Some(Arc::clone(&known.endpoint))
    }

    /// Ends what never ends by itself; calls in flight go on.
    pub(crate) fn close(&self) {
        self.rest.close();
        self.control.close();
        self.endpoints().iter().for_each(|open| open.endpoint.close());
    }

    /// Waits for the calls that outlive their connection, then ends every session.
    pub(crate) async fn drain(&self) {
        self.rest.drain().await;
        self.control.drain().await;
        for open in self.endpoints() {
            open.endpoint.drain().await;
        }
    }

    /// Gives up on calls that did not finish in time.
    pub(crate) fn cancel_calls(&self) {
        self.rest.cancel_calls();
        self.control.cancel_calls();
        self.endpoints().iter().for_each(|open| open.endpoint.close_sessions());
    }

    /// Waits for calls that were cancelled to put things away.
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
        let annexes = self.builtin_endpoints.iter().map(|(_, open)| open);
        std::iter::once(&self.all).chain(annexes).chain(sources.values()).cloned().collect()
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
