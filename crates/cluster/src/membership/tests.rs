//! Membership without a store. `tests/replicas` tests it with Redis.

use std::sync::Arc;

use tokio::time::Instant;
use toolyard_hub::{HomeLookup, ReplicaId, ReplicaState, Replicas, SessionHome};

use super::{AdoptedSession, DEAD_AFTER, Membership, ReplicaRecord, StoreState};
use crate::store::RedisStore;

fn record(name: &str) -> ReplicaRecord {
    ReplicaRecord {
        name: name.to_owned(),
        url: format!("http://{name}"),
        version: "1".to_owned(),
        keys: "k".to_owned(),
        config: "c".to_owned(),
        draining: false,
    }
}

/// Returns a membership in which `others` have just been seen. Its store is never reached.
fn membership(others: &[(&str, ReplicaRecord)]) -> Membership {
    let store = RedisStore::open("redis://127.0.0.1:1/").unwrap();
    let membership = Membership::new(store, record("own")).unwrap();
    see(&membership, others);
    membership
}

fn see(membership: &Membership, others: &[(&str, ReplicaRecord)]) {
    see_in(membership, StoreState::Settled, others);
}

fn see_in(membership: &Membership, store: StoreState, others: &[(&str, ReplicaRecord)]) {
    let own = membership.own_id();
    let rows: Vec<String> = std::iter::once((own.as_str(), &record("own")))
        .chain(others.iter().map(|(id, record)| (*id, record)))
        .flat_map(|(id, record)| [id.to_owned(), serde_json::to_string(record).unwrap()])
        .collect();
    membership.update(&own, Instant::now(), store, &rows);
}

#[tokio::test]
async fn replicas_that_differ_are_reported_as_such() {
    let other = ReplicaRecord {
        version: "2".to_owned(),
        keys: "x".to_owned(),
        config: "y".to_owned(),
        draining: true,
        ..record("b")
    };
    let membership = membership(&[("b", other), ("a", record("a"))]);
    let all = membership.all();
    let shown: Vec<_> =
        all.iter().map(|one| (one.name.as_str(), one.state, one.differences.clone())).collect();
    let expected = [
        ("own", ReplicaState::Ready, vec![]),
        ("a", ReplicaState::Ready, vec![]),
        ("b", ReplicaState::Draining, vec!["version", "keys", "configuration"]),
    ];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn a_session_lives_where_it_was_opened_as_long_as_that_replica_is_ready() {
    let membership = membership(&[("a", record("a"))]);
    let (own, other) = (membership.own_id(), ReplicaId::new("a"));
    let home = async |opener: &ReplicaId| membership.session_home("s", opener, HomeLookup::Cached).await;
    assert_eq!(home(&own).await, Ok(SessionHome::Here));
    let Ok(SessionHome::Elsewhere(found)) = home(&other).await else { panic!("not elsewhere") };
    assert_eq!((found.id, found.url.as_str()), (other.clone(), "http://a"));
    // Whether a draining or dead replica still holds the session is known only to the store.
    see(&membership, &[("a", ReplicaRecord { draining: true, ..record("a") })]);
    home(&other).await.unwrap_err();
    see(&membership, &[]);
    home(&other).await.unwrap_err();
    assert_eq!(membership.adopted("s"), None);
}

#[tokio::test]
async fn a_replica_that_was_considered_dead_gets_a_new_id_and_reports_it_once() {
    let membership = membership(&[]);
    let (before, losses) = (membership.own_id(), membership.losses());
    let adopted = AdoptedSession { home: before.clone(), saved: "saved".into() };
    membership.lock().homes.insert("s".into(), adopted);
    assert_eq!(membership.adopted("s").as_deref(), Some("saved"));
    membership.replace_id(&before).unwrap();
    membership.replace_id(&before).unwrap();
    assert_ne!(membership.own_id(), before);
    assert_eq!(membership.adopted("s"), None);
    assert_eq!(*losses.borrow(), 1);
    // An answer to a beat under the old ID changes nothing.
    membership.update(&before, Instant::now(), StoreState::Settled, &["a".to_owned(), "{}".to_owned()]);
    assert_eq!(membership.all().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_the_store_sessions_stay_where_they_are() {
    let membership = Arc::new(membership(&[("a", record("a"))]));
    membership.beat().await.unwrap_err();
    assert!(!membership.is_store_available());
    tokio::time::advance(10 * DEAD_AFTER).await;
    let own = membership.own_id();
    assert_eq!(membership.session_home("s", &own, HomeLookup::Cached).await, Ok(SessionHome::Here));
    assert!(membership.find(&ReplicaId::new("a")).is_some(), "the last known replicas count as alive");
}

#[tokio::test]
async fn a_replica_that_has_not_reported_itself_to_a_new_store_is_still_alive() {
    let membership = membership(&[("a", record("a")), ("b", record("b"))]);
    let alive = || ["a", "b", "b2"].map(|id| membership.find(&ReplicaId::new(id)).is_some());
    see_in(&membership, StoreState::Resumed, &[("a", record("a"))]);
    assert_eq!(alive(), [true, true, false]);
    // A process that was started at the address of `b` has replaced it.
    see_in(&membership, StoreState::Resumed, &[("b2", record("b"))]);
    assert_eq!(alive(), [true, false, true]);
    see(&membership, &[("b2", record("b"))]);
    assert_eq!(alive(), [false, false, true]);
}
