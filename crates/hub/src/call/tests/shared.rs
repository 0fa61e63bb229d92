//! Limits that replicas share: two yards with one store in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::parts;
use crate::caller_channel::{CallerChannel, CallerUpdate, ClientCapabilities, Question, QuestionKind};
use crate::deadline::Deadline;
use crate::error::{ErrorKind, HubError};
use crate::fake::{
    ScriptedSource, done, raw, tool, tool_request, tool_request_with, tools, yard_with_settings,
};
use crate::limits::{RateLimit, YardLimits};
use crate::principal::Principal;
use crate::replicas::StoreUnavailable;
use crate::request::{CallRequest, Priority};
use crate::shared_limits::{
    SharedAdmission, SharedCount, SharedDemand, SharedKey, SharedLimit, SharedLimits, SharedPermit,
    SharedTake,
};
use crate::source::{SourceCall, SourceOffer};
use crate::yard::{Yard, YardSettings};
use crate::{BoxFuture, Outcome};

const SECOND: Duration = Duration::from_secs(1);

/// Whether the store answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoreState {
    Up,
    /// Away, and each of two replicas counts its share.
    Shared,
    /// Away, and calls are refused.
    Refusing,
}

#[derive(Debug)]
struct MemoryStore {
    began: Instant,
    state: Mutex<StoreState>,
    whole_at: Mutex<HashMap<SharedKey, u128>>,
    /// The number of permits that are held, and what cancels the call of the latest.
    held: Arc<Mutex<HashMap<SharedKey, usize>>>,
    latest: Mutex<CancellationToken>,
    released: Arc<Notify>,
    trips: AtomicUsize,
}

impl MemoryStore {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            state: Mutex::new(StoreState::Up),
            whole_at: Mutex::default(),
            held: Arc::default(),
            latest: Mutex::default(),
            released: Arc::default(),
            trips: AtomicUsize::new(0),
        })
    }

    fn held(&self) -> usize {
        self.held.lock().values().sum()
    }

    fn count(&self, demand: SharedDemand<'_>) -> SharedCount {
        let now = self.began.elapsed().as_nanos();
        let mut counters = self.whole_at.lock();
        let mut counted = Vec::new();
        for (index, rate) in demand.rates.iter().enumerate() {
            let whole_at = counters.get(&rate.key).copied().unwrap_or_default().max(now);
            let after = whole_at + rate.interval;
            if after - now > rate.ahead {
                let early = after - now - rate.ahead;
                return SharedCount::Exhausted { index, whole_in: whole_at - now, early };
            }
            counted.push((rate.key.clone(), after));
        }
        let whole_in = counted.iter().map(|(_, after)| after - now).collect();
        counters.extend(counted);
        SharedCount::Counted(whole_in)
    }

    fn take(&self, demand: SharedDemand<'_>) -> SharedTake {
        let mut held = self.held.lock();
        let is_full = |limit: &SharedLimit| held.get(&limit.key).copied().unwrap_or_default() >= limit.most;
        if demand.permits.is_empty() {
            return SharedTake::Nothing;
        }
        if let Some(index) = demand.permits.iter().position(is_full) {
            return SharedTake::Full(index);
        }
        for limit in demand.permits {
            *held.entry(limit.key.clone()).or_default() += 1;
        }
        *self.latest.lock() = demand.lost.clone();
        let keys: Vec<SharedKey> = demand.permits.iter().map(|limit| limit.key.clone()).collect();
        let (held, released) = (Arc::clone(&self.held), Arc::clone(&self.released));
        SharedTake::Held(SharedPermit::new(move || {
            for key in keys {
                *held.lock().get_mut(&key).unwrap() -= 1;
            }
            released.notify_waiters();
        }))
    }
}

impl SharedLimits for MemoryStore {
    fn admit<'a>(
        &'a self,
        demand: SharedDemand<'a>,
    ) -> BoxFuture<'a, Result<SharedAdmission, StoreUnavailable>> {
        Box::pin(async move {
            self.trips.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_millis(1)).await;
            let state = *self.state.lock();
            let rates = match state {
                StoreState::Up => self.count(demand),
                StoreState::Shared => SharedCount::Local { replicas: 2 },
                StoreState::Refusing => return Err(StoreUnavailable("Redis does not answer".to_owned())),
            };
            let permits = match rates {
                SharedCount::Exhausted { .. } => SharedTake::Nothing,
                SharedCount::Counted(_) | SharedCount::Local { .. } => self.take(demand),
            };
            Ok(SharedAdmission { rates, permits })
        })
    }

    fn released<'a>(&'a self, _: &'a SharedLimit) -> BoxFuture<'a, ()> {
        Box::pin(self.released.notified())
    }
}

/// A replica whose source counts its running calls, each of which takes ten seconds. `ask` asks a
/// question first.
fn replica(store: &Arc<MemoryStore>, limits: YardLimits, running: &Arc<AtomicUsize>) -> Arc<Yard> {
    let running = Arc::clone(running);
    let strict = json!({"name": "strict", "inputSchema": {"type": "object", "required": ["x"]}});
    let mut offer = tools(&["work", "ask"]);
    offer.tools.push(tool(&strict));
    let source = ScriptedSource::with_handler("s", SourceOffer { ..offer }, move |call: SourceCall| {
        let running = Arc::clone(&running);
        async move {
            if call.target.name() == "ask" {
                let params = raw(&json!({}));
                let question = Question { key: "q".to_owned(), kind: QuestionKind::ElicitForm, params };
                let _ = tokio::time::timeout(20 * SECOND, call.client.ask(vec![question])).await;
            }
            let _running = Running::count(&running);
            sleep(10 * SECOND).await;
            Ok(done())
        }
    });
    let shared_limits = Some(Arc::clone(store) as Arc<dyn SharedLimits>);
    yard_with_settings(YardSettings { limits, shared_limits, ..YardSettings::default() }, &[&source])
}

struct Running(Arc<AtomicUsize>);

impl Running {
    fn count(counter: &Arc<AtomicUsize>) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(counter))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn one_call() -> YardLimits {
    YardLimits { per_source: Some(1), ..YardLimits::default() }
}

fn start(yard: &Arc<Yard>, request: CallRequest) -> tokio::task::JoinHandle<Result<Outcome, HubError>> {
    let yard = Arc::clone(yard);
    tokio::spawn(async move { yard.call(request).await })
}

fn asking() -> (CallRequest, tokio::sync::mpsc::Receiver<CallerUpdate>) {
    let able = ClientCapabilities { elicit_form: true, ..ClientCapabilities::default() };
    let (client, updates) = CallerChannel::new(able);
    (CallRequest { client, deadline: Deadline::after(90 * SECOND), ..tool_request("ask") }, updates)
}

#[tokio::test(start_paused = true)]
async fn replicas_count_calls_and_lists_together_and_refuse_in_the_same_words_as_one_process() {
    let (store, running) = (MemoryStore::new(), Arc::default());
    let rate = Some(RateLimit { per_second: 0.5, burst: 3.0 });
    let limits = YardLimits { rate, per_source: None, ..YardLimits::default() };
    let yards = [replica(&store, limits.clone(), &running), replica(&store, limits.clone(), &running)];
    yards[0].admit_list(&Principal::owner()).await.unwrap();
    for yard in &yards {
        start(yard, tool_request("work"));
        sleep(Duration::from_millis(2)).await;
    }
    let alone = crate::fake::yard_with(limits, Vec::new(), &[&ScriptedSource::echo("s", tools(&["work"]))]);
    for _ in 0..3 {
        alone.call(tool_request("work")).await.unwrap();
    }
    let (shared, local) = (yards[1].call(tool_request("work")).await, alone.call(tool_request("work")).await);
    let (shared, local) = (shared.unwrap_err(), local.unwrap_err());
    assert_eq!(parts(&shared), parts(&local));
    assert_eq!(shared.retry_after().map(|wait| wait.as_secs_f64().round()), Some(2.0));
    assert_eq!(running.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn an_uncontended_call_asks_the_store_once() {
    let (store, running) = (MemoryStore::new(), Arc::default());
    let yard = replica(&store, one_call(), &running);
    yard.call(tool_request("work")).await.unwrap();
    assert_eq!((store.trips.load(Ordering::SeqCst), store.held()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_all_replicas_together_never_exceed_a_limit_and_all_of_them_run() {
    let (store, running) = (MemoryStore::new(), Arc::default());
    let limits = YardLimits { per_source: Some(2), ..YardLimits::default() };
    let yards: Vec<_> = (0..3).map(|_| replica(&store, limits.clone(), &running)).collect();
    let calls: Vec<_> = (0..9).map(|at| start(&yards[at % 3], tool_request("work"))).collect();
    let mut most = 0;
    while calls.iter().any(|call| !call.is_finished()) {
        sleep(Duration::from_millis(10)).await;
        most = most.max(running.load(Ordering::SeqCst));
    }
    assert_eq!((most, store.held()), (2, 0));
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn of_the_waiting_calls_of_a_replica_only_the_first_asks_and_priorities_apply() {
    let (store, running) = (MemoryStore::new(), Arc::default());
    let yard = replica(&store, one_call(), &running);
    let first = start(&yard, tool_request("work"));
    sleep(SECOND).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut calls = Vec::new();
    for priority in [Priority::Normal, Priority::Low, Priority::Normal, Priority::High] {
        let (yard, order) = (Arc::clone(&yard), Arc::clone(&order));
        calls.push(tokio::spawn(async move {
            yard.call(CallRequest { priority, ..tool_request("work") }).await.unwrap();
            order.lock().push(priority);
        }));
        sleep(Duration::from_millis(100)).await;
    }
    let before = store.trips.load(Ordering::SeqCst);
    sleep(SECOND).await;
    let trips = store.trips.load(Ordering::SeqCst) - before;
    assert!((10..=50).contains(&trips), "{trips}");
    first.await.unwrap().unwrap();
    for call in calls {
        call.await.unwrap();
    }
    // The first call had its turn before the others came.
    assert_eq!(*order.lock(), [Priority::Normal, Priority::High, Priority::Normal, Priority::Low]);
}

#[tokio::test(start_paused = true)]
async fn waiting_counts_against_the_deadline_and_a_call_that_is_refused_holds_nothing() {
    let (store, running) = (MemoryStore::new(), Arc::default());
    let yard = replica(&store, one_call(), &running);
    let invalid = yard.call(tool_request_with("strict", "{}")).await.unwrap_err();
    assert_eq!((invalid.kind(), store.held()), (ErrorKind::InvalidArguments, 0));
    let first = start(&yard, tool_request("work"));
    sleep(SECOND).await;
    let late = CallRequest { deadline: Deadline::after(2 * SECOND), ..tool_request("work") };
    assert_eq!(yard.call(late).await.unwrap_err().kind(), ErrorKind::TimedOut);
    first.await.unwrap().unwrap();
    assert_eq!(store.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_permit_is_lost_is_canceled() {
    let (store, running) = (MemoryStore::new(), Arc::default());
    let yard = replica(&store, one_call(), &running);
    let call = start(&yard, tool_request("work"));
    sleep(SECOND).await;
    store.latest.lock().cancel();
    let lost = call.await.unwrap().unwrap_err();
    let message = "`mcp__s__work` was canceled because its permit expired: \
                   this replica did not reach the shared store in time";
    let suggestion = "find out whether the call had an effect before you repeat it";
    assert_eq!(parts(&lost), (ErrorKind::ConnectionLost, message, Some(suggestion)));
    assert_eq!((running.load(Ordering::SeqCst), store.held()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_open_question_releases_the_permit_for_calls_of_other_replicas() {
    let (store, running) = (MemoryStore::new(), Arc::default());
    let yards = [replica(&store, one_call(), &running), replica(&store, one_call(), &running)];
    let (request, mut updates) = asking();
    let call = start(&yards[0], request);
    let Some(CallerUpdate::Ask(question)) = updates.recv().await else { panic!("no question") };
    assert_eq!(store.held(), 0);
    let other = start(&yards[1], tool_request("work"));
    sleep(SECOND).await;
    let answers = vec![("q".to_owned(), raw(&json!({"action": "accept"})))];
    question.reply.send(Ok(answers)).unwrap();
    sleep(SECOND).await;
    assert_eq!(running.load(Ordering::SeqCst), 1);
    other.await.unwrap().unwrap();
    sleep(SECOND).await;
    assert_eq!((running.load(Ordering::SeqCst), store.held()), (1, 1));
    call.await.unwrap().unwrap();
    assert_eq!(store.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_gives_up_its_question_takes_its_permit_back_as_soon_as_it_is_free() {
    let (store, running) = (MemoryStore::new(), Arc::default());
    let yard = replica(&store, one_call(), &running);
    let (request, mut updates) = asking();
    let call = start(&yard, request);
    let Some(CallerUpdate::Ask(_question)) = updates.recv().await else { panic!("no question") };
    assert_eq!(store.held(), 0);
    sleep(21 * SECOND).await;
    assert_eq!((running.load(Ordering::SeqCst), store.held()), (1, 1));
    call.await.unwrap().unwrap();
    assert_eq!(store.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_calls_are_refused_or_count_against_the_share_of_this_replica() {
    let (store, running) = (MemoryStore::new(), Arc::default());
    let rate = Some(RateLimit { per_second: 1.0, burst: 4.0 });
    let yard = replica(&store, YardLimits { rate, ..YardLimits::default() }, &running);
    *store.state.lock() = StoreState::Refusing;
    let refused = yard.call(tool_request("work")).await.unwrap_err();
    let message = "cannot check the limits of this call: \
                   the shared store is not available: Redis does not answer";
    assert_eq!((refused.kind(), refused.message()), (ErrorKind::NotConnected, message));
    assert_eq!(refused.retry_after(), Some(SECOND));
    assert!(yard.admit_list(&Principal::owner()).await.is_err());
    *store.state.lock() = StoreState::Shared;
    let calls: Vec<_> = (0..2).map(|_| start(&yard, tool_request("work"))).collect();
    sleep(Duration::from_millis(100)).await;
    let refused = yard.call(tool_request("work")).await.unwrap_err();
    assert_eq!(refused.message(), "exceeded the rate limit of 1 call per second");
    assert_eq!(refused.retry_after().map(|wait| wait.as_secs_f64().round()), Some(2.0));
    *store.state.lock() = StoreState::Up;
    yard.admit_list(&Principal::owner()).await.unwrap();
    for call in calls {
        call.await.unwrap().unwrap();
    }
}
