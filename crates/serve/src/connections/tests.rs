//! Which connections are evicted and which stay open.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{ClientAddress, ConnectionLimits, ConnectionState, ConnectionTable};

const HERE: &str = "127.0.0.1";

fn table(total: usize, unauthenticated: usize, per_address: usize, reserve: usize) -> Arc<ConnectionTable> {
    ConnectionTable::new(ConnectionLimits {
        total,
        unauthenticated,
        unauthenticated_per_address: per_address,
        health_reserve: reserve,
        trusted_proxies: ["10.0.0.0/8".parse().unwrap()].into_iter().collect(),
        ..ConnectionLimits::default()
    })
}

fn admit(table: &Arc<ConnectionTable>, from: &str) -> Option<Arc<ConnectionState>> {
    table.admit(address(from), &CancellationToken::new())
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn is_open(connection: &ConnectionState) -> bool {
    !connection.closed_token().is_cancelled()
}

#[tokio::test]
async fn the_oldest_idle_unauthenticated_connection_makes_room() {
    let table = table(100, 3, 100, 1);
    let all: Vec<_> = (0..3).map(|_| admit(&table, HERE).unwrap()).collect();
    all[0].begin_request(false);
    let fourth = admit(&table, HERE).unwrap();
    assert_eq!(all.iter().map(|state| is_open(state)).collect::<Vec<_>>(), [true, false, true]);
    assert!(!fourth.is_reserved());
    // An authenticated connection does not count, and stays open.
    all[0].mark_authenticated();
    all[0].end_request();
    let more: Vec<_> = (0..3).map(|_| admit(&table, HERE).unwrap()).collect();
    assert!(is_open(&all[0]) && !is_open(&all[2]) && !is_open(&fourth));
    assert!(more.iter().all(|state| is_open(state)));
    assert_eq!(table.counts(), (4, 3));
    more.iter().for_each(|state| table.remove(state));
    table.remove(&all[0]);
    assert_eq!(table.counts(), (0, 0));
}

#[tokio::test]
async fn one_address_cannot_use_up_the_connections_of_others() {
    let table = table(100, 10, 2, 1);
    let other = admit(&table, "192.0.2.1").unwrap();
    let flood: Vec<_> = (0..50).map(|_| admit(&table, "2001:db8::1").unwrap()).collect();
    assert_eq!(table.counts(), (3, 3));
    assert!(is_open(&other) && is_open(&flood[49]) && is_open(&flood[48]) && !is_open(&flood[47]));
    // All addresses of one IPv6 network are one client. An IPv4 address is the same client in both
    // notations.
    assert_eq!(ClientAddress::from(address("2001:db8::1")), ClientAddress::from(address("2001:db8::2:3")));
    assert_ne!(ClientAddress::from(address("2001:db8::1")), ClientAddress::from(address("2001:db8:0:1::1")));
    assert_eq!(ClientAddress::from(address("::ffff:192.0.2.1")), ClientAddress::from(address("192.0.2.1")));
}

#[tokio::test]
async fn addresses_with_many_connections_make_room_before_those_with_few() {
    let table = table(100, 10, 8, 1);
    let few = admit(&table, "192.0.2.1").unwrap();
    let flood = |round: usize| admit(&table, ["192.0.2.2", "192.0.2.3"][round % 2]).unwrap();
    let many: Vec<_> = (0..50).map(flood).collect();
    assert!(is_open(&few), "the oldest connection, but the only one of its address");
    assert_eq!(many.iter().filter(|state| is_open(state)).count(), 9);
    // If the connections of the busiest address are all active, others are evicted.
    many.iter().for_each(|state| state.begin_request(false));
    assert!(!admit(&table, "192.0.2.4").unwrap().is_reserved() && !is_open(&few));
}

#[tokio::test]
async fn when_all_connections_are_busy_only_health_checks_are_admitted() {
    let table = table(100, 2, 100, 1);
    let busy: Vec<_> = (0..2).map(|_| admit(&table, HERE).unwrap()).collect();
    busy.iter().for_each(|state| state.begin_request(false));
    let reserved = admit(&table, HERE).unwrap();
    assert!(reserved.is_reserved());
    let next = admit(&table, HERE).unwrap();
    assert!(next.is_reserved() && !is_open(&reserved), "an idle connection of the reserve is evicted too");
    next.begin_request(false);
    assert!(admit(&table, HERE).is_none());
    assert!(busy.iter().all(|state| is_open(state)));
    next.mark_authenticated();
    next.end_request();
    assert!(admit(&table, HERE).unwrap().is_reserved(), "a connection of the reserve stays in the reserve");
}

#[tokio::test]
async fn known_clients_fill_the_total_and_health_checks_still_get_in() {
    let table = table(2, 2, 2, 1);
    for _ in 0..2 {
        admit(&table, HERE).unwrap().mark_authenticated();
    }
    assert!(admit(&table, HERE).unwrap().is_reserved());
    assert_eq!(table.counts(), (3, 0));
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_forwarded_address_counts() {
    let table = table(100, 50, 2, 1);
    let connections: Vec<_> = (0..10).map(|_| admit(&table, "10.1.2.3").unwrap()).collect();
    assert!(
        connections.iter().all(|state| is_open(state)),
        "the limit per address does not apply to the proxy"
    );
    let (ada, bob) = (address("192.0.2.1"), address("192.0.2.2"));
    connections.iter().for_each(|state| state.begin_request(false));
    assert!(connections[0].admit_forwarded(ada) && connections[1].admit_forwarded(ada));
    assert!(!connections[2].admit_forwarded(ada), "all connections of the address are busy");
    assert!(connections[3].admit_forwarded(bob));
    connections[0].end_request();
    assert!(connections[4].admit_forwarded(ada));
    assert!(!is_open(&connections[0]) && is_open(&connections[1]) && is_open(&connections[3]));
    // A proxy sends requests of many clients over one connection.
    assert!(connections[3].admit_forwarded(ada) || is_open(&connections[3]));
}

#[tokio::test(start_paused = true)]
async fn under_pressure_idle_connections_get_less_time() {
    let table = table(100, 8, 100, 1);
    let few: Vec<_> = (0..4).map(|_| admit(&table, HERE).unwrap()).collect();
    assert!(!table.is_under_pressure());
    tokio::time::advance(Duration::from_secs(20)).await;
    table.sweep();
    assert_eq!(table.counts(), (4, 4), "half of the limit is not pressure");
    let (busy, known, young) = (&few[0], &few[1], admit(&table, HERE).unwrap());
    busy.begin_request(false);
    assert!(table.is_under_pressure());
    let extra = admit(&table, HERE).unwrap();
    known.mark_authenticated();
    assert!(table.is_under_pressure());
    table.sweep();
    let open = [busy, known, &few[2], &few[3], &young, &extra].map(|state| is_open(state));
    assert_eq!(open, [true, true, false, false, true, true]);
    assert!(!table.is_under_pressure());
}

#[test]
fn the_open_file_limit_bounds_the_connections() {
    let limits = ConnectionLimits::default();
    let few = limits.clone().cap_to_open_files(Some(1_024));
    assert_eq!((few.total, few.unauthenticated), (736, 736));
    assert_eq!(limits.clone().cap_to_open_files(Some(1 << 20)), limits);
    assert_eq!(limits.clone().cap_to_open_files(None), limits);
    assert_eq!(limits.cap_to_open_files(Some(8)).total, 1);
}
