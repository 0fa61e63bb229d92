//! The fronts of one listener: REST, the control socket, an MCP endpoint for the whole yard, one for each annex, and one for each source that
//! somebody asked for by name, opened when first used.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;
use toolyard_hub::{Principal, Reach, SourceName, Visibility, Yard};
use toolyard_wire::{Endpoint, EndpointSettings};

use crate::control::{Control, ControlSettings};
use crate::mcp::{Front, Identity, McpSettings, ParkingKey, announce};
use crate::rest::{Rest, RestSettings};

/// Which annex. Routes exist for those in [`AnnexName::ALL`] and no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnexName {
    Tester,
    Programs,
}

impl AnnexName {
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
pub struct Annex {
    /// It is served at `/{name}/mcp`.
    pub name: AnnexName,
    pub yard: Arc<Yard>,
    /// What of that yard it shows.
    pub reach: Reach,
    /// Who it says it is.
    pub identity: Identity,
}

pub(crate) struct Fronts {
    yard: Arc<Yard>,
    mcp: McpSettings,
    endpoint: EndpointSettings,
    key: ParkingKey,
    all: Open,
    annexes: Vec<(AnnexName, Open)>,
    rest: Arc<Rest>,
    control: Arc<Control>,
    sources: Mutex<HashMap<SourceName, Open>>,
    announcers: Mutex<JoinSet<()>>,
}

#[derive(Clone)]
struct Open {
    front: Arc<Front>,
    endpoint: Arc<Endpoint<Front>>,
}

impl Fronts {
    pub(crate) fn new(
        yard: Arc<Yard>,
        annexes: Vec<Annex>,
        mcp: McpSettings,
        endpoint: EndpointSettings,
        control: &ControlSettings,
        key: ParkingKey,
    ) -> Arc<Self> {
        // What an annex shows of this very yard is not among what the yard shows.
        let apart = annexes.iter().filter(|annex| Arc::ptr_eq(&annex.yard, &yard));
        let apart: Vec<SourceName> = apart.flat_map(|annex| annex.reach.named().to_vec()).collect();
        let reach = if apart.is_empty() { Reach::All } else { Reach::Without(apart.into()) };
        let announcers = Mutex::new(JoinSet::new());
        let all = open(&yard, reach, &mcp, &endpoint, &key, &announcers);
        let open_annex = |annex: Annex| {
            let mcp = McpSettings { identity: annex.identity, ..mcp.clone() };
            (annex.name, open(&annex.yard, annex.reach, &mcp, &endpoint, &key, &announcers))
        };
        let annexes = annexes.into_iter().map(open_annex).collect();
        let rest = Rest::new(Arc::clone(&yard), RestSettings::like(&mcp, &endpoint));
        let control = Control::new(Arc::clone(&yard), control, &mcp, &endpoint);
        let sources = Mutex::default();
        Arc::new(Self { yard, mcp, endpoint, key, all, annexes, rest, control, sources, announcers })
    }

    pub(crate) fn annex(&self, name: AnnexName) -> Option<&Arc<Endpoint<Front>>> {
        self.annexes.iter().find(|(known, _)| *known == name).map(|(_, open)| &open.endpoint)
    }

    pub(crate) fn yard(&self) -> &Arc<Yard> {
        &self.yard
    }

    /// The whole yard.
    pub(crate) fn all(&self) -> &Arc<Endpoint<Front>> {
        &self.all.endpoint
    }

    /// What a caller can see of the yard.
    pub(crate) fn visibility(&self, principal: &Principal) -> Visibility {
        self.yard.visibility(principal)
    }

    pub(crate) fn rest(&self) -> &Arc<Rest> {
        &self.rest
    }

    pub(crate) fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// One source, un-prefixed and untouched; `None` if there is none of this name.
    pub(crate) fn of_source(&self, name: &str) -> Option<Arc<Endpoint<Front>>> {
        let name = SourceName::new(name);
        if !self.yard.has(&name) {
            return None;
        }
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sources.entry(name.clone()).or_insert_with(|| {
            open(&self.yard, Reach::Source(name), &self.mcp, &self.endpoint, &self.key, &self.announcers)
        });
        Some(Arc::clone(&known.endpoint))
    }

    /// Ends what never ends by itself; calls in flight go on.
    pub(crate) fn close(&self) {
        self.rest.close();
        self.control.close();
        self.each().iter().for_each(|open| open.endpoint.close());
    }

    /// Waits for the calls that outlive their connection, then ends every session.
    pub(crate) async fn closed(&self) {
        self.rest.closed().await;
        self.control.closed().await;
        for open in self.each() {
            open.endpoint.closed().await;
        }
    }

    /// Gives up on calls that did not finish in time.
    pub(crate) fn cut_off(&self) {
        self.rest.cut_off();
        self.control.cut_off();
        self.each().iter().for_each(|open| open.endpoint.cut_off());
    }

    /// Waits for calls that were cancelled to put things away.
    pub(crate) async fn settled(&self) {
        self.announcers.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        self.rest.settled().await;
        self.control.settled().await;
        for open in self.each() {
            open.front.settled().await;
        }
    }

    fn each(&self) -> Vec<Open> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let annexes = self.annexes.iter().map(|(_, open)| open);
        std::iter::once(&self.all).chain(annexes).chain(sources.values()).cloned().collect()
    }
}

fn open(
    yard: &Arc<Yard>,
    reach: Reach,
    mcp: &McpSettings,
    endpoint: &EndpointSettings,
    key: &ParkingKey,
    announcers: &Mutex<JoinSet<()>>,
) -> Open {
    let front = Arc::new(Front::new(Arc::clone(yard), reach, mcp.clone(), key.clone()));
    let endpoint = Endpoint::new(Arc::clone(&front), endpoint.clone());
    let announcing = announce(Arc::clone(&front), Arc::clone(endpoint.roster()));
    announcers.lock().unwrap_or_else(PoisonError::into_inner).spawn(announcing);
    Open { front, endpoint }
}
