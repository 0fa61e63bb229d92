//! Leases of one replica, without Redis.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{LeaseNumber, LeaseTable};

const SECOND: Duration = Duration::from_secs(1);

fn limits(most: &[(&str, usize)]) -> Vec<(String, usize)> {
    most.iter().map(|(name, most)| ((*name).to_owned(), *most)).collect()
}

/// A lease that Redis has granted, and what is canceled when it is lost.
fn granted(
    table: &mut LeaseTable,
    most: &[(&str, usize)],
    until: Instant,
) -> (LeaseNumber, CancellationToken) {
    let lost = CancellationToken::new();
    let number = table.begin(limits(most), lost.clone());
    table.confirm(number, until);
    (number, lost)
}

fn released(table: &mut LeaseTable) -> Vec<(LeaseNumber, String)> {
    table.take_released(100).into_iter().map(|lease| (lease.number, lease.limit)).collect()
}

#[test]
fn a_lease_that_was_not_renewed_in_time_cancels_its_call_and_is_released() {
    let (mut table, now) = (LeaseTable::default(), Instant::now());
    let (old, old_lost) = granted(&mut table, &[("a", 4), ("b", 4)], now);
    let (_, new_lost) = granted(&mut table, &[("a", 4)], now + SECOND);
    assert_eq!(table.expire(now, None), 1);
    assert_eq!((old_lost.is_cancelled(), new_lost.is_cancelled()), (true, false));
    assert_eq!(released(&mut table), [(old, "a".to_owned()), (old, "b".to_owned())]);
    assert_eq!(table.expire(now, None), 0);
}

#[test]
fn while_redis_is_away_the_oldest_calls_keep_the_share_of_this_replica() {
    let (mut table, now) = (LeaseTable::default(), Instant::now());
    let calls: Vec<_> = (0..4).map(|_| granted(&mut table, &[("a", 6)], now)).collect();
    assert_eq!(table.expire(now, Some(3)), 2);
    let lost: Vec<bool> = calls.iter().map(|(_, lost)| lost.is_cancelled()).collect();
    assert_eq!(lost, [false, false, true, true]);
    // They are part of the share, so there is no more of it.
    let more = || (limits(&[("b", 1), ("a", 6)]), CancellationToken::new());
    let (wanted, lost) = more();
    assert_eq!(table.grant_share(wanted, lost, 3), Err(1));
    assert!(table.release(calls[0].0, now));
    let (wanted, lost) = more();
    assert!(table.grant_share(wanted, lost, 3).is_ok());
    // Shares do not expire, and are added to Redis when it is back.
    assert_eq!(table.expire(now + 100 * SECOND, Some(3)), 0);
    let renewals = table.renewals(100).remove(0);
    assert!(renewals.iter().all(|renewal| renewal.is_new) && renewals.len() == 3, "{renewals:?}");
    table.finish_renewal(renewals.iter().map(|renewal| (renewal.number, false)), now + SECOND);
    assert_eq!(table.expire(now + SECOND, None), 2);
}

#[test]
fn a_share_is_never_zero() {
    let mut table = LeaseTable::default();
    let mut grant = |replicas| table.grant_share(limits(&[("a", 2)]), CancellationToken::new(), replicas);
    assert!(grant(5).is_ok());
    assert_eq!(grant(5), Err(0));
}

#[test]
fn a_refused_request_leaves_nothing_to_release() {
    let (mut table, now) = (LeaseTable::default(), Instant::now());
    let refused = table.begin(limits(&[("a", 1)]), CancellationToken::new());
    table.reject(refused);
    assert!(!table.release(refused, now));
    // Redis may have granted a request that was not answered.
    let unanswered = table.begin(limits(&[("a", 1)]), CancellationToken::new());
    assert!(table.release(unanswered, now));
    assert_eq!(released(&mut table), [(unanswered, "a".to_owned())]);
}

#[test]
fn a_lease_that_redis_reports_as_expired_cancels_its_call_once() {
    let (mut table, now) = (LeaseTable::default(), Instant::now());
    let (first, first_lost) = granted(&mut table, &[("a", 1), ("b", 1)], now);
    let (second, second_lost) = granted(&mut table, &[("c", 1)], now);
    let requested = table.begin(limits(&[("d", 1)]), CancellationToken::new());
    let batches = table.renewals(1);
    let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [2, 1]);
    let answers = batches.iter().flatten().map(|renewal| (renewal.number, renewal.number == first));
    assert_eq!(table.finish_renewal(answers, now + SECOND), 1);
    assert_eq!((first_lost.is_cancelled(), second_lost.is_cancelled()), (true, false));
    assert_eq!(table.expire(now + SECOND, None), 1);
    assert!(second_lost.is_cancelled());
    assert_eq!((first, second, requested), (1, 2, 3));
}

#[test]
fn what_could_not_be_released_is_released_later_unless_it_has_expired() {
    let (mut table, now) = (LeaseTable::default(), Instant::now());
    for at in [now, now + 9 * SECOND] {
        let (number, _) = granted(&mut table, &[("a", 4)], now + 100 * SECOND);
        table.release(number, at);
    }
    let batch = table.take_released(100);
    assert_eq!(batch.len(), 2);
    table.put_back(batch, now + 11 * SECOND);
    assert_eq!(released(&mut table), [(2, "a".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_notices_a_release_even_if_it_looks_later() {
    let mut table = LeaseTable::default();
    let watched = table.watch("a");
    table.notify("a");
    table.notify("b");
    watched.notified().await;
    table.sweep();
    assert_eq!(table.limits.len(), 1);
    drop(watched);
    table.sweep();
    assert!(table.limits.is_empty());
}
