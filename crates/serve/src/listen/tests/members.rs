//! Replicas of one yard, with a shared store in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolyard_hub::{
    BoxFuture, HomeLookup, PreviousHolder, Replica, ReplicaId, ReplicaState, Replicas, ServerClaim,
    ServerHolder, SessionHome, StoreUnavailable, StreamEntry, Yard, YardLimits,
};
use toolyard_seal::SealingKeys;

use super::waiting::patient;
use super::{Auth, ConnectionLimits, Listening, ServeSettings, bind, settings};
use crate::replicas::{PlacedServers, ReplicaSettings};

/// What all replicas know.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) alive: Vec<Replica>,
    /// Homes of sessions that have moved. `None` if the session has been released.
    pub(super) homes: HashMap<String, Option<ReplicaId>>,
    pub(super) saved: HashMap<String, String>,
    pub(super) streams: HashMap<u64, Vec<StreamEntry>>,
    pub(super) ended: Vec<String>,
    /// Which replica runs a server, with its URL.
    pub(super) holders: HashMap<String, PreviousHolder>,
    pub(super) is_away: bool,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: ReplicaId,
    pub(super) shared: Arc<Mutex<Shared>>,
    pub(super) losses: watch::Sender<u64>,
}

impl Member {
    pub(super) fn set_state(&self, state: ReplicaState) {
        let mut shared = self.shared.lock();
        shared.alive.iter_mut().filter(|replica| replica.id == self.id).for_each(|own| own.state = state);
    }

    pub(super) fn die(&self) {
        self.shared.lock().alive.retain(|replica| replica.id != self.id);
    }
}

impl Replicas for Member {
    fn own_id(&self) -> ReplicaId {
        self.id.clone()
    }

    fn find(&self, id: &ReplicaId) -> Option<Replica> {
        self.shared.lock().alive.iter().find(|replica| replica.id == *id && *id != self.id).cloned()
    }

    fn look_up<'a>(&'a self, id: &'a ReplicaId) -> BoxFuture<'a, Option<Replica>> {
        Box::pin(std::future::ready(self.find(id)))
    }

    fn all(&self) -> Vec<Replica> {
        let mut all = self.shared.lock().alive.clone();
        all.sort_by_key(|replica| replica.id != self.id);
        all
    }

    fn is_store_available(&self) -> bool {
        !self.shared.lock().is_away
    }

    fn session_home<'a>(
        &'a self,
        session: &'a str,
        opener: &'a ReplicaId,
        _: HomeLookup,
    ) -> BoxFuture<'a, Result<SessionHome, StoreUnavailable>> {
        let mut shared = self.shared.lock();
        let home = match shared.homes.get(session) {
            Some(home) => home.clone(),
            None => Some(opener.clone()),
        };
        let alive = home.and_then(|home| shared.alive.iter().find(|replica| replica.id == home).cloned());
        let answer = match alive {
            _ if shared.ended.iter().any(|ended| ended == session) => Ok(SessionHome::Ended),
            Some(replica) if replica.id == self.id => Ok(SessionHome::Here),
            Some(replica) => Ok(SessionHome::Elsewhere(replica)),
            None if shared.is_away => Err(StoreUnavailable("away".to_owned())),
            None => {
                shared.homes.insert(session.to_owned(), Some(self.id.clone()));
                Ok(SessionHome::Here)
            }
        };
        Box::pin(std::future::ready(answer))
    }

    fn adopted(&self, session: &str) -> Option<Arc<str>> {
        let shared = self.shared.lock();
        shared.homes.get(session).filter(|home| home.as_ref() == Some(&self.id))?;
        Some(shared.saved.get(session).map(String::as_str).unwrap_or_default().into())
    }

    fn save_session<'a>(
        &'a self,
        session: &'a str,
        state: String,
    ) -> BoxFuture<'a, Result<(), StoreUnavailable>> {
        self.shared.lock().saved.insert(session.to_owned(), state);
        Box::pin(std::future::ready(Ok(())))
    }

    fn log_stream(&self, _session: &str, stream: u64, entry: StreamEntry) {
        self.shared.lock().streams.entry(stream).or_default().push(entry);
    }

    fn read_stream<'a>(
        &'a self,
        _session: &'a str,
        stream: u64,
    ) -> BoxFuture<'a, Result<Vec<StreamEntry>, StoreUnavailable>> {
        let entries = self.shared.lock().streams.get(&stream).cloned().unwrap_or_default();
        Box::pin(std::future::ready(Ok(entries)))
    }

    fn release_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreUnavailable>> {
        self.shared.lock().homes.insert(session.to_owned(), None);
        Box::pin(std::future::ready(Ok(())))
    }

    fn end_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreUnavailable>> {
        let mut shared = self.shared.lock();
        shared.ended.push(session.to_owned());
        shared.homes.remove(session);
        Box::pin(std::future::ready(Ok(())))
    }

    fn server_holder<'a>(
        &'a self,
        server: &'a str,
        claim: ServerClaim,
    ) -> BoxFuture<'a, Result<ServerHolder, StoreUnavailable>> {
        let mut shared = self.shared.lock();
        let holder = shared.holders.get(server).cloned();
        let alive = |id: &ReplicaId| shared.alive.iter().find(|replica| replica.id == *id).cloned();
        let elsewhere = holder.as_ref().and_then(|holder| alive(&holder.id));
        let answer = match (elsewhere, alive(&self.id)) {
            _ if shared.is_away => Err(StoreUnavailable("away".to_owned())),
            (Some(replica), _) if replica.id != self.id => Ok(ServerHolder::Elsewhere(replica)),
            (Some(_), _) => Ok(ServerHolder::Here { previous: None }),
            (None, _) if claim == ServerClaim::No => Ok(ServerHolder::Nowhere),
            (None, None) => Err(StoreUnavailable("this replica is dead".to_owned())),
            (None, Some(own)) => {
                let own = PreviousHolder { id: own.id, url: own.url };
                let previous = shared.holders.insert(server.to_owned(), own);
                Ok(ServerHolder::Here { previous })
            }
        };
        Box::pin(std::future::ready(answer))
    }

    fn release_server<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<(), StoreUnavailable>> {
        self.shared.lock().holders.retain(|name, holder| name != server || holder.id != self.id);
        Box::pin(std::future::ready(Ok(())))
    }

    fn server_changes(&self) -> watch::Receiver<u64> {
        self.losses.subscribe()
    }

    fn confirm_id(&self) -> BoxFuture<'_, Result<ReplicaId, StoreUnavailable>> {
        Box::pin(std::future::ready(Ok(self.id.clone())))
    }

    fn start_draining(&self) -> BoxFuture<'_, ()> {
        self.set_state(ReplicaState::Draining);
        Box::pin(std::future::ready(()))
    }

    fn losses(&self) -> watch::Receiver<u64> {
        self.losses.subscribe()
    }
}

pub(super) struct RunningReplica {
    pub(super) server: Listening,
    pub(super) member: Arc<Member>,
    pub(super) stop: CancellationToken,
    pub(super) yard: Arc<Yard>,
    pub(super) placed: Arc<PlacedServers>,
    pub(super) keys: SealingKeys,
}

pub(super) async fn start(name: &str, shared: &Arc<Mutex<Shared>>, keys: &SealingKeys) -> RunningReplica {
    let member = Arc::new(Member {
        id: ReplicaId::new(name),
        shared: Arc::clone(shared),
        losses: watch::Sender::new(0),
    });
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let tls = tls.unwrap().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    let replicas = ReplicaSettings { replicas: Arc::clone(&member) as _, keys: keys.clone(), tls };
    let usual = settings(ConnectionLimits::default());
    let settings = ServeSettings { drain: Duration::from_secs(20), ..usual };
    let Auth::TokenStore(store) = settings.auth.auth.clone() else { unreachable!() };
    let yard = patient(YardLimits::default());
    let bound = bind(Arc::clone(&yard), settings).await.unwrap().with_replicas(replicas);
    let placed = Arc::clone(bound.placed_servers().unwrap());
    let address = bound.address().to_string();
    shared.lock().alive.push(Replica {
        id: member.id.clone(),
        name: name.to_owned(),
        url: format!("http://{address}"),
        version: "1".to_owned(),
        state: ReplicaState::Ready,
        differences: Vec::new(),
    });
    let stop = CancellationToken::new();
    let serving = AbortOnDropHandle::new(tokio::spawn(bound.serve(stop.clone())));
    let server = Listening { address, store, _serving: serving };
    RunningReplica { server, member, stop, yard, placed, keys: keys.clone() }
}

pub(super) async fn two_replicas() -> (RunningReplica, RunningReplica, Arc<Mutex<Shared>>) {
    let (shared, keys) = (Arc::default(), SealingKeys::generate().unwrap());
    (start("a", &shared, &keys).await, start("b", &shared, &keys).await, shared)
}
