//! Who gets a permit, in which order, and that no permit is ever lost.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use tokio::task::{JoinHandle, yield_now};

use super::{ConcurrencyLimiter, PATIENCE, Permit};
use crate::request::Priority::{self, High, Low, Normal};

type Order = Arc<Mutex<Vec<String>>>;

/// Waits in the queue under a name. When it gets its permit, it reports its name and releases the
/// permit.
async fn queue(
    places: &Arc<ConcurrencyLimiter>,
    order: &Order,
    priority: Priority,
    name: String,
) -> JoinHandle<()> {
    let (places, order) = (Arc::clone(places), Arc::clone(order));
    let waiting = tokio::spawn(async move {
        let _place = places.acquire(priority).await;
        order.lock().push(name);
    });
    yield_now().await;
    waiting
}

async fn all(waiting: Vec<JoinHandle<()>>) {
    for one in waiting {
        one.await.unwrap();
    }
}

fn seen(order: &Order) -> Vec<String> {
    order.lock().clone()
}

#[tokio::test]
async fn high_goes_before_normal_before_low_and_the_first_of_each_first() {
    let (places, order) = (ConcurrencyLimiter::new(1), Order::default());
    let held = places.acquire(Normal).await;
    let mut waiting = Vec::new();
    for (priority, name) in
        [(Low, "low 1"), (Normal, "normal 1"), (High, "high 1"), (Normal, "normal 2"), (High, "high 2")]
    {
        waiting.push(queue(&places, &order, priority, name.to_owned()).await);
    }
    drop(held);
    all(waiting).await;
    assert_eq!(seen(&order), ["high 1", "high 2", "normal 1", "normal 2", "low 1"]);
    assert_eq!((places.free(), places.waiting()), (1, 0));
}

#[tokio::test]
async fn lower_priorities_do_not_starve() {
    let (places, order) = (ConcurrencyLimiter::new(1), Order::default());
    let held = places.acquire(Normal).await;
    let mut waiting = vec![queue(&places, &order, Low, "low".to_owned()).await];
    waiting.push(queue(&places, &order, Normal, "normal".to_owned()).await);
    for at in 0..100 {
        waiting.push(queue(&places, &order, High, format!("high {at}")).await);
    }
    drop(held);
    all(waiting).await;
    let order = seen(&order);
    let at = |name: &str| order.iter().position(|one| one == name).unwrap();
    let [low, normal, _] = PATIENCE.map(|times| times as usize);
    assert_eq!((at("low"), at("normal"), at("high 0")), (low, normal, 0));
}

#[tokio::test]
async fn a_higher_priority_gets_more_permits_under_any_load() {
    let (places, order) = (ConcurrencyLimiter::new(1), Order::default());
    let held = places.acquire(Normal).await;
    let mut waiting = Vec::new();
    for (priority, name) in [(Low, "low"), (Normal, "normal"), (High, "high")] {
        for _ in 0..200 {
            waiting.push(queue(&places, &order, priority, name.to_owned()).await);
        }
    }
    drop(held);
    all(waiting).await;
    let saturated = seen(&order).into_iter().take(200).collect::<Vec<_>>();
    let count = |name: &str| saturated.iter().filter(|one| *one == name).count();
    let (low, normal, high) = (count("low"), count("normal"), count("high"));
    assert!(0 < low && low < normal && normal < high, "{low} low, {normal} normal, {high} high");
}

#[tokio::test]
async fn a_dropped_waiter_leaves_the_queue() {
    let places = ConcurrencyLimiter::new(1);
    let held = places.acquire(Normal).await;
    for _ in 0..1_000 {
        let waiting = tokio::time::timeout(Duration::ZERO, places.acquire(Low)).await;
        assert!(waiting.is_err());
    }
    assert_eq!((places.free(), places.waiting()), (0, 0));
    drop(held);
    assert_eq!(places.free(), 1);
}

#[tokio::test]
async fn a_permit_sent_to_a_dropped_waiter_goes_to_the_next() {
    let places = ConcurrencyLimiter::new(1);
    let held = places.acquire(Normal).await;
    let mut left = Box::pin(places.acquire(High));
    assert!(futures_util::poll!(&mut left).is_pending());
    let mut stays = Box::pin(places.acquire(Low));
    assert!(futures_util::poll!(&mut stays).is_pending());
    // The permit was sent to the first waiting call, but that call never polls again.
    drop(held);
    assert!(futures_util::poll!(&mut stays).is_pending());
    drop(left);
    let place = stays.await;
    assert_eq!(places.free(), 0);
    drop(place);
    assert_eq!(places.free(), 1);
}

#[tokio::test]
async fn a_limiter_has_at_least_one_permit() {
    let places = ConcurrencyLimiter::new(0);
    let place: Permit = places.acquire(Normal).await;
    assert!(places.try_acquire().is_none());
    drop(place);
    assert!(places.try_acquire().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_permit_is_lost_when_waiters_give_up() {
    let places = ConcurrencyLimiter::new(3);
    let running = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let tasks: Vec<_> = (0..600_u64)
        .map(|at| {
            let (places, running) = (Arc::clone(&places), Arc::clone(&running));
            tokio::spawn(async move {
                let work = async {
                    let _place = places.acquire([Low, Normal, High][(at % 3) as usize]).await;
                    assert!(running.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 3);
                    yield_now().await;
                    running.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                };
                if at % 4 == 0 {
                    // May be dropped at any moment before the permit is acquired. Afterwards the
                    // work is too short for that.
                    let _ = tokio::time::timeout(Duration::from_micros(at), async {
                        drop(places.acquire(High).await);
                    })
                    .await;
                } else {
                    work.await;
                }
            })
        })
        .collect();
    all(tasks).await;
    assert_eq!((places.free(), places.waiting()), (3, 0));
}

#[derive(Debug, Clone)]
enum Step {
    Come(Priority),
    Finish(usize),
    GiveUp(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        prop_oneof![Just(Low), Just(Normal), Just(High)].prop_map(Step::Come),
        any::<usize>().prop_map(Step::Finish),
        any::<usize>().prop_map(Step::GiveUp),
    ]
}

proptest! {
    /// Permits never stay free while a call is waiting, and all of them are free at the end.
    #[test]
    fn no_permit_is_idle_while_a_call_waits(steps in proptest::collection::vec(step(), 0..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let places = ConcurrencyLimiter::new(2);
            let mut waiting = Vec::new();
            let mut held = Vec::new();
            for step in steps {
                match step {
                    Step::Come(priority) => {
                        let places = Arc::clone(&places);
                        waiting.push(Box::pin(async move { places.acquire(priority).await }));
                    }
                    Step::Finish(at) if !held.is_empty() => drop(held.swap_remove(at % held.len())),
                    Step::GiveUp(at) if !waiting.is_empty() => drop(waiting.swap_remove(at % waiting.len())),
                    Step::Finish(_) | Step::GiveUp(_) => {}
                }
                let mut still = Vec::new();
                for mut one in waiting {
                    match futures_util::poll!(&mut one) {
                        std::task::Poll::Ready(place) => held.push(place),
                        std::task::Poll::Pending => still.push(one),
                    }
                }
                waiting = still;
                assert!(held.len() <= 2);
                assert!(waiting.is_empty() || held.len() == 2, "a permit is idle");
                assert_eq!(places.waiting(), waiting.len());
            }
            drop(waiting);
            drop(held);
            assert_eq!((places.free(), places.waiting()), (2, 0));
        });
    }
}
