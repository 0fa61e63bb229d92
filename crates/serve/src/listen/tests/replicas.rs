//! Two replicas of one yard, with a shared store in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolyard_hub::{
    BoxFuture, HomeLookup, Replica, ReplicaId, ReplicaState, Replicas, SessionHome, StoreUnavailable,
    StreamEntry, YardLimits,
};
use toolyard_seal::SealingKeys;

use super::quotas::{OTHER, post, session};
use super::waiting::{ends, modern, patient, stream};
use super::{Auth, BEARER, ConnectionLimits, Listening, PATIENCE, ServeSettings, bind, settings};
use crate::replicas::ReplicaSettings;

/// What all replicas know.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) alive: Vec<Replica>,
    /// Homes of sessions that have moved. `None` if the session has been released.
    homes: HashMap<String, Option<ReplicaId>>,
    saved: HashMap<String, String>,
    streams: HashMap<u64, Vec<StreamEntry>>,
    ended: Vec<String>,
    pub(super) is_away: bool,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: ReplicaId,
    shared: Arc<Mutex<Shared>>,
    losses: watch::Sender<u64>,
}

impl Member {
    fn set_state(&self, state: ReplicaState) {
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
    let bound = bind(patient(YardLimits::default()), settings).await.unwrap().with_replicas(replicas);
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
    RunningReplica { server: Listening { address, store, _serving: serving }, member, stop }
}

pub(super) async fn two_replicas() -> (RunningReplica, RunningReplica, Arc<Mutex<Shared>>) {
    let (shared, keys) = (Arc::default(), SealingKeys::generate().unwrap());
    (start("a", &shared, &keys).await, start("b", &shared, &keys).await, shared)
}

/// Returns the status and the body of a list in a session.
async fn list(replica: &RunningReplica, session: &str) -> (u16, Value) {
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"});
    let (head, body) = post(&replica.server, session, &message).await;
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
}

/// Ends a session and returns the status.
async fn delete(replica: &RunningReplica, session: &str) -> u16 {
    let mut stream = replica.server.connect().await;
    let head = format!("DELETE /mcp HTTP/1.1\r\nhost: localhost\r\n{session}connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

fn lists_both_tools((status, body): (u16, Value)) -> bool {
    status == 200 && body["result"]["tools"].as_array().is_some_and(|tools| tools.len() == 2)
}

#[tokio::test]
async fn a_session_can_be_used_through_every_replica_but_only_by_its_owner() {
    let (a, b, _) = two_replicas().await;
    let ada = session(&a.server, BEARER).await.unwrap();
    assert!(lists_both_tools(list(&a, &ada).await) && lists_both_tools(list(&b, &ada).await));
    let bob = ada.replace(BEARER, OTHER);
    let (changed, no_token) = (ada.replace("mcp-session-id: ", "mcp-session-id: x"), ada.replace(BEARER, ""));
    for replica in [&a, &b] {
        assert_eq!(list(replica, &bob).await.0, 404);
        assert_eq!(list(replica, &changed).await.0, 404);
        assert_eq!(list(replica, &no_token).await.0, 401);
    }
}

#[tokio::test]
async fn a_stream_is_forwarded_until_the_replica_that_sends_it_is_dead() {
    let (a, b, _) = two_replicas().await;
    let ada = session(&a.server, BEARER).await.unwrap().replace(BEARER, "");
    let params = json!({"name": "hold", "arguments": {}, "_meta": {"progressToken": 1}});
    let message = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    let called = stream(&b.server, "/mcp", &ada, &message).await;
    a.member.die();
    assert!(ends(called).await);
}

#[tokio::test]
async fn a_stream_of_a_dead_replica_is_finished_by_another_one() {
    let (a, b, shared) = two_replicas().await;
    let ada = session(&a.server, BEARER).await.unwrap();
    let params = json!({"name": "hold", "arguments": {}, "_meta": {"progressToken": 1}});
    let message = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    let called = stream(&a.server, "/mcp", &ada.replace(BEARER, ""), &message).await;
    let (number, entries) = shared.lock().streams.iter().map(|(n, e)| (*n, e.clone())).next().unwrap();
    assert_eq!(entries.first(), Some(&StreamEntry::Requests(vec!["2".to_owned()])));
    a.member.die();
    drop(called);
    let resume = async |session: &str, last: u64| {
        let mut stream = b.server.connect().await;
        let head = format!(
            "GET /mcp HTTP/1.1\r\nhost: localhost\r\n{session}last-event-id: {number}-{last}\r\n\
             accept: text/event-stream\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        answer
    };
    let all = resume(&ada, 0).await;
    assert!(all.contains("notifications/progress") && all.contains(r#""id":2,"error""#), "{all}");
    let rest = resume(&ada, 1).await;
    assert!(!rest.contains("notifications/progress") && rest.contains(r#""id":2,"error""#), "{rest}");
    assert!(resume(&ada.replace(BEARER, OTHER), 0).await.starts_with("HTTP/1.1 404"));
    shared.lock().streams.clear();
    assert!(resume(&ada, 0).await.starts_with("HTTP/1.1 400"), "nothing was logged");
}

#[tokio::test]
async fn the_session_of_a_dead_replica_continues_on_another_and_ends_everywhere() {
    let (a, b, shared) = two_replicas().await;
    let ada = session(&a.server, BEARER).await.unwrap();
    let level =
        json!({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": {"level": "error"}});
    post(&b.server, &ada, &level).await;
    let saved: Vec<String> = shared.lock().saved.values().cloned().collect();
    assert_eq!(saved, [r#"{"log_level":"error","subscriptions":[]}"#]);
    a.member.die();
    shared.lock().is_away = true;
    let (status, body) = list(&b, &ada).await;
    assert_eq!(status, 503, "without the store, it is unknown who continues the session: {body}");
    shared.lock().is_away = false;
    assert!(lists_both_tools(list(&b, &ada).await));
    assert_eq!(list(&b, &ada.replace(BEARER, OTHER)).await.0, 404);
    // `b` continues with the log level that the client has set, and saves it again.
    shared.lock().saved.clear();
    let unsubscribe =
        json!({"jsonrpc": "2.0", "id": 3, "method": "resources/unsubscribe", "params": {"uri": "a:b"}});
    post(&b.server, &ada, &unsubscribe).await;
    assert_eq!(shared.lock().saved.values().collect::<Vec<_>>(), saved.iter().collect::<Vec<_>>());
    assert_eq!(delete(&b, &ada).await, 204);
    assert_eq!(list(&b, &ada).await.0, 404);
}

#[tokio::test]
async fn the_session_of_a_dead_replica_can_be_ended_at_another_one() {
    let (a, b, _) = two_replicas().await;
    let ada = session(&a.server, BEARER).await.unwrap();
    a.member.die();
    assert_eq!(delete(&b, &ada.replace(BEARER, OTHER)).await, 404, "another principal");
    assert_eq!(delete(&b, &ada).await, 204);
    assert_eq!(list(&b, &ada).await.0, 404);
    assert_eq!(delete(&b, &ada).await, 404, "a second time");
}

#[tokio::test]
async fn a_parked_call_is_continued_by_the_replica_that_holds_it() {
    let (a, b, _) = two_replicas().await;
    let ask = async |replica: &RunningReplica, more: Value| {
        let mut params = json!({"name": "ask", "arguments": {}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (headers, message) = modern("tools/call", params);
        post(&replica.server, &format!("{BEARER}{headers}"), &message).await.1
    };
    let parked = ask(&a, json!({})).await;
    let answer = json!({
        "requestState": parked["result"]["requestState"],
        "inputResponses": {"who": {"action": "accept", "content": {}}},
    });
    let done = ask(&b, answer.clone()).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    let again = ask(&b, answer).await;
    assert!(again["error"]["message"].as_str().unwrap().contains("already used"), "{again}");
    let parked = ask(&a, json!({})).await;
    a.member.die();
    let lost = ask(&b, json!({"requestState": parked["result"]["requestState"]})).await;
    assert!(lost["error"]["message"].as_str().unwrap().contains("expired"), "{lost}");
}

#[tokio::test]
async fn a_forwarded_request_is_not_forwarded_again_and_needs_its_own_token() {
    let (a, b, shared) = two_replicas().await;
    let ada = session(&a.server, BEARER).await.unwrap();
    // A client cannot forge the header.
    let forged = format!("{ada}toolyard-forwarded-to: YQ\r\n");
    assert_eq!(list(&b, &forged).await.0, 421);
    // The address of `a` now belongs to another process, which does not answer for `a`.
    let url = format!("http://{}", b.server.address);
    shared.lock().alive.iter_mut().filter(|replica| replica.id == a.member.id).for_each(|replica| {
        replica.url.clone_from(&url);
    });
    let (listed, ()) = tokio::join!(list(&b, &ada), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        a.member.die();
    });
    assert!(lists_both_tools(listed), "once `a` counts as dead, `b` continues the session");
}

#[tokio::test]
async fn an_unreachable_replica_is_retried_until_it_counts_as_dead() {
    let (a, b, shared) = two_replicas().await;
    let ada = session(&a.server, BEARER).await.unwrap();
    shared.lock().alive.iter_mut().filter(|replica| replica.id == a.member.id).for_each(|replica| {
        "http://127.0.0.1:1".clone_into(&mut replica.url);
    });
    let (listed, ()) = tokio::join!(list(&b, &ada), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        a.member.die();
    });
    assert!(lists_both_tools(listed));
}

#[tokio::test]
async fn a_stopping_replica_hands_its_sessions_over_before_it_closes() {
    let (a, b, _) = two_replicas().await;
    let idle = session(&a.server, BEARER).await.unwrap();
    let busy = session(&a.server, BEARER).await.unwrap().replace(BEARER, "");
    let params = json!({"name": "hold", "arguments": {}, "_meta": {"progressToken": 1}});
    let message = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    let called = stream(&a.server, "/mcp", &busy, &message).await;
    a.stop.cancel();
    while a.member.all().first().is_some_and(|own| own.state == ReplicaState::Ready) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The listener is still open: a busy session stays, an idle one and new ones move.
    let busy = format!("{BEARER}{busy}");
    assert!(lists_both_tools(list(&b, &busy).await));
    assert!(lists_both_tools(list(&a, &idle).await));
    assert!(b.member.adopted(&label_of(&b)).is_some(), "`b` has continued the idle session");
    let new = session(&a.server, BEARER).await.unwrap();
    assert_eq!(a.server.status("/ready", BEARER).await, 503);
    // The last call ends, and with it the reason to stay.
    drop(called);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    post(&b.server, &busy, &cancel).await;
    while tokio::net::TcpStream::connect(&a.server.address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    a.member.die();
    for session in [&idle, &busy, &new] {
        assert!(lists_both_tools(list(&b, session).await));
    }
}

/// Returns the label of the only session that has moved to this replica.
fn label_of(replica: &RunningReplica) -> String {
    let shared = replica.member.shared.lock();
    let mut moved = shared.homes.iter().filter(|(_, home)| home.as_ref() == Some(&replica.member.id));
    moved.next().map(|(label, _)| label.clone()).unwrap_or_default()
}

#[tokio::test]
async fn a_replica_that_counted_as_dead_gives_up_its_sessions() {
    let (a, _b, _) = two_replicas().await;
    let ada = session(&a.server, BEARER).await.unwrap();
    assert!(lists_both_tools(list(&a, &ada).await));
    a.member.losses.send_modify(|losses| *losses += 1);
    while list(&a, &ada).await.0 != 404 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
