//! The yard: the running set of sources and their catalog.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::catalog::Catalog;
use crate::concurrency::ConcurrencyLimiter;
use crate::error::HubError;
use crate::events::{CatalogChange, EventBus, YardEvent};
use crate::history::History;
use crate::hooks::Hooks;
use crate::limits::{RateLimit, YardLimits};
use crate::metrics::CallMetrics;
use crate::name::{FullName, SourceName};
use crate::principal::Principal;
use crate::quota::{Quota, QuotaCharge, Quotas};
use crate::rate_limit::{RateCounters, RateKey, RateVerdict, shared_rates};
use crate::record::Recorder;
use crate::redact::Redaction;
use crate::request::ClientEra;
use crate::scope::YardScope;
use crate::shared_keys::SharedKeys;
use crate::shared_limits::{SharedDemand, SharedKey, SharedLimits, SharedTake, store_unavailable_error};
use crate::shared_permits::SharedPermitQueue;
use crate::source::{Source, SourceNotifier};
use crate::status::SourceStatus;
use crate::subscriptions::SubscriptionCounts;
use crate::view::{CallerAccess, CatalogView};

/// The running set of sources.
pub struct Yard {
    catalog: ArcSwap<Catalog>,
    /// The catalog for clients of the legacy era. The same as the other catalog as long as no
    /// source differs.
    legacy: ArcSwap<Catalog>,
    sources: Mutex<Vec<Arc<dyn Source>>>,
    limiters: Mutex<HashMap<LimiterKey, Arc<ConcurrencyLimiter>>>,
    pub(crate) rates: RateCounters,
    pub(crate) shared_limits: Option<Arc<dyn SharedLimits>>,
    shared_keys: Option<Arc<dyn SharedKeys>>,
    quotas: Arc<Quotas>,
    limits: ArcSwap<YardLimits>,
    pub(crate) hooks: Vec<Arc<dyn Hooks>>,
    pub(crate) recorder: Option<Arc<dyn Recorder>>,
    history: Option<Arc<dyn History>>,
    redaction: Redaction,
    events: Arc<EventBus>,
    metrics: CallMetrics,
    pub(crate) subscriptions: SubscriptionCounts,
    restricted: AtomicBool,
    /// The number of requested refreshes, and the last one that the catalog includes.
    refreshes_requested: AtomicU64,
    refreshes_served: AtomicU64,
    status: Notify,
}

/// The components of a yard.
#[derive(Default)]
pub struct YardSettings {
    pub limits: YardLimits,
    /// Hooks for every tool of every source, in order.
    pub hooks: Vec<Arc<dyn Hooks>>,
    /// Records every call, if set.
    pub recorder: Option<Arc<dyn Recorder>>,
    /// Where past calls are read from, if they are stored.
    pub history: Option<Arc<dyn History>>,
    /// What is redacted in records, transcripts and texts of sources.
    pub redaction: Redaction,
    /// The quota accounts, shared by all yards of a process.
    pub quotas: Arc<Quotas>,
    /// Where rates and concurrent calls are counted, if several replicas share them.
    pub shared_limits: Option<Arc<dyn SharedLimits>>,
    /// Where idempotency keys are kept, if several replicas share them.
    pub shared_keys: Option<Arc<dyn SharedKeys>>,
}

/// What a concurrency limiter applies to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LimiterKey {
    Caller(Arc<str>),
    Tool(SourceName, FullName),
    Source(SourceName),
}

impl LimiterKey {
    pub(crate) fn shared(&self) -> SharedKey {
        match self {
            Self::Caller(id) => SharedKey::new("calls:caller", &[id]),
            Self::Tool(source, tool) => SharedKey::new("calls:tool", &[source.as_str(), tool.as_str()]),
            Self::Source(name) => SharedKey::new("calls:source", &[name.as_str()]),
        }
    }
}

/// If there are more limiters than this, unused ones are removed.
const MANY_PLACES: usize = 1_000;

impl Yard {
    pub fn new(settings: YardSettings) -> Arc<Self> {
        Arc::new(Self {
            catalog: ArcSwap::default(),
            legacy: ArcSwap::default(),
            sources: Mutex::default(),
            limiters: Mutex::default(),
            rates: RateCounters::default(),
            shared_limits: settings.shared_limits,
            shared_keys: settings.shared_keys,
            quotas: settings.quotas,
            limits: ArcSwap::from_pointee(settings.limits),
            hooks: settings.hooks,
            recorder: settings.recorder,
            history: settings.history,
            redaction: settings.redaction,
            events: Arc::default(),
            metrics: CallMetrics::default(),
            subscriptions: SubscriptionCounts::default(),
            restricted: AtomicBool::new(false),
            refreshes_requested: AtomicU64::new(0),
            refreshes_served: AtomicU64::new(0),
            status: Notify::new(),
        })
    }

    /// Where past calls are read from, if they are stored.
    pub fn history(&self) -> Option<&Arc<dyn History>> {
        self.history.as_ref()
    }

    /// Where idempotency keys are kept, if several replicas share them.
    pub fn shared_keys(&self) -> Option<&Arc<dyn SharedKeys>> {
        self.shared_keys.as_ref()
    }

    /// What is redacted in everything that the yard stores or shows, except results of calls.
    pub fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    /// The number of call records that were lost. `None` if calls are not recorded.
    pub fn lost_records(&self) -> Option<u64> {
        self.recorder.as_ref().map(|recorder| recorder.lost_records())
    }

    /// Creates a yard with these sources and default settings.
    pub fn with_sources(sources: impl IntoIterator<Item = Arc<dyn Source>>) -> Arc<Self> {
        let yard = Self::new(YardSettings::default());
        for source in sources {
            yard.add(source);
        }
        yard
    }

    /// Adds a source. A source with the same name is replaced in its position; hanging calls of the
    /// old one do not hold permits of the new one.
    pub fn add(self: &Arc<Self>, source: Arc<dyn Source>) {
        let name = source.name().clone();
        source.attach(SourceNotifier { yard: Arc::downgrade(self), source: name.clone() });
        {
            let mut sources = self.lock_sources();
            self.remove_limiters(&name);
            match sources.iter_mut().find(|known| *known.name() == name) {
                Some(known) => *known = source,
                None => sources.push(source),
            }
        }
        self.resubscribe(&name);
        self.refresh();
        self.status_changed(&name);
    }

    /// Removes a source. Calls in progress finish.
    pub fn remove(&self, name: &SourceName) {
        self.lock_sources().retain(|source| source.name() != name);
        self.remove_limiters(name);
        self.refresh();
        self.status_changed(name);
    }

    /// Reads the offer of every source again and notifies watchers of changes. If many sources
    /// change at the same time, one refresh serves all requests that were made before it started.
    pub fn refresh(&self) {
        let ours = self.refreshes_requested.fetch_add(1, Ordering::SeqCst) + 1;
        let (change, sources) = {
            // Under the lock, so that a slower refresh cannot replace a newer catalog with an older
            // one.
            let sources = self.lock_sources();
            if self.refreshes_served.load(Ordering::SeqCst) >= ours {
                return;
            }
            let serving = self.refreshes_requested.load(Ordering::SeqCst);
            let before = self.catalog.load_full();
            let now = Arc::new(before.rebuild(&sources, ClientEra::Newest));
            let mut change = now.change_since(&before);
            let mut changed =
                if change.has_changes() { now.sources_changed_since(&before) } else { Arc::default() };
            let legacy_before = self.legacy.load_full();
            let legacy = match sources.iter().any(|source| source.legacy_offer().is_some()) {
                true => Arc::new(legacy_before.rebuild(&sources, ClientEra::Legacy)),
                false => Arc::clone(&now),
            };
            // While both catalogs are the same, the change is already known.
            let apart = !(Arc::ptr_eq(&legacy, &now) && Arc::ptr_eq(&legacy_before, &before));
            let of_legacy =
                if apart { legacy.change_since(&legacy_before) } else { CatalogChange::default() };
            if of_legacy.has_changes() {
                change = change.merge(of_legacy);
                let of_legacy = legacy.sources_changed_since(&legacy_before);
                let both: BTreeSet<&SourceName> = changed.iter().chain(&*of_legacy).collect();
                changed = both.into_iter().cloned().collect();
            }
            for (source, warning) in now.warnings().iter().filter(|new| !before.warnings().contains(new)) {
                tracing::warn!(%source, warning, "problem in the definitions of a server");
            }
            self.catalog.store(now);
            self.legacy.store(legacy);
            self.refreshes_served.store(serving, Ordering::SeqCst);
            (change, changed)
        };
        if change.has_changes() {
            self.events.publish(YardEvent::CatalogChanged(change, sources));
        }
    }

    /// Returns the current catalog. It is immutable; later catalogs replace it.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Returns the catalog for clients of this era.
    pub fn catalog_for_era(&self, era: ClientEra) -> Arc<Catalog> {
        match era {
            ClientEra::Newest => self.catalog(),
            ClientEra::Legacy => self.legacy.load_full(),
        }
    }

    /// Returns the part of the catalog that this principal may see.
    pub fn view(&self, principal: &Principal) -> CatalogView {
        self.view_for_era(principal, ClientEra::Newest)
    }

    /// Returns the part of the catalog that this principal may see with a client of this era.
    pub fn view_for_era(&self, principal: &Principal, era: ClientEra) -> CatalogView {
        let restricted = self.restricted.load(Ordering::Relaxed);
        let callers = if restricted { CallerAccess::Restricted } else { CallerAccess::Uniform };
        CatalogView::new(self.catalog_for_era(era), principal.clone()).with_caller_access(callers)
    }

    /// Lets the sources within the scope determine their offer for clients of this era, and waits
    /// at most this long. Slower sources continue in the background and show their general offer
    /// until then.
    pub async fn discover_era(&self, era: ClientEra, reach: &YardScope, longest: Duration) {
        if era == ClientEra::Newest {
            return;
        }
        let sources = self.lock_sources().clone();
        let within = sources.iter().filter(|source| reach.covers(source.name()));
        let unmet: Vec<_> = within.filter_map(|source| source.discover_era(era)).collect();
        if !unmet.is_empty() {
            let _ = tokio::time::timeout(longest, join_all(unmet)).await;
        }
    }

    /// Marks that some callers see less than others. From now on no list is marked as shared by all
    /// callers.
    pub fn mark_callers_restricted(&self) {
        self.restricted.store(true, Ordering::Relaxed);
    }

    /// Returns whether there is a source with this name.
    pub fn has_source(&self, name: &SourceName) -> bool {
        self.lock_sources().iter().any(|source| source.name() == name)
    }

    pub(crate) fn source(&self, name: &SourceName) -> Option<Arc<dyn Source>> {
        self.lock_sources().iter().find(|source| source.name() == name).cloned()
    }

    pub(crate) fn source_names(&self) -> Vec<SourceName> {
        self.lock_sources().iter().map(|source| source.name().clone()).collect()
    }

    /// Returns the status of every source, in the order of the yard.
    pub fn statuses(&self) -> Vec<(SourceName, SourceStatus)> {
        let catalog = self.catalog();
        let status = |source: &Arc<dyn Source>| {
            (source.name().clone(), self.status_with_warnings(&catalog, &**source))
        };
        self.lock_sources().iter().map(status).collect()
    }

    /// Returns the status of one source, if it exists.
    pub fn status(&self, name: &SourceName) -> Option<SourceStatus> {
        self.source(name).map(|source| self.status_with_warnings(&self.catalog(), &*source))
    }

    /// Returns whether every source has started or failed, so that the lists are complete.
    pub fn is_startup_complete(&self) -> bool {
        self.lock_sources().iter().all(|source| source.starting_since().is_none())
    }

    /// Waits for sources that are still starting, each at most this long after its start.
    pub async fn wait_for_startup(&self, longest: Duration) {
        self.wait_for_startup_or(longest, || false).await;
    }

    /// Like [`Self::wait_for_startup`], but returns early when the condition holds. The condition
    /// is checked whenever the status of a source changes.
    pub async fn wait_for_startup_or(&self, longest: Duration, enough: impl Fn() -> bool) {
        loop {
            let changed = self.status.notified();
            if enough() {
                return;
            }
            let until = {
                let sources = self.lock_sources();
                sources.iter().filter_map(|source| source.starting_since()).max().map(|since| since + longest)
            };
            match until {
                Some(until) if until > Instant::now() => {
                    // On a change or a timeout, check again.
                    let _ = tokio::time::timeout_at(until, changed).await;
                }
                _ => return,
            }
        }
    }

    /// Returns the status of a source, including problems with its offer, with secrets redacted.
    fn status_with_warnings(&self, catalog: &Catalog, source: &dyn Source) -> SourceStatus {
        let mut status = source.status();
        let of_offer = catalog.warnings().iter().filter(|(of, _)| of == source.name());
        status.warnings.extend(of_offer.map(|(_, text)| text.clone()));
        for text in status.reason.iter_mut().chain(&mut status.stderr) {
            if let Cow::Owned(hidden) = self.redaction.redact_text(text) {
                *text = hidden;
            }
        }
        status
    }

    pub(crate) fn status_changed(&self, source: &SourceName) {
        self.status.notify_waiters();
        self.events.publish(YardEvent::StatusChanged { source: source.clone() });
    }

    /// Returns the current limits.
    pub fn limits(&self) -> Arc<YardLimits> {
        self.limits.load_full()
    }

    /// Applies new limits. Calls in progress keep the limits that they started with.
    pub fn set_limits(&self, limits: YardLimits) {
        self.limits.store(Arc::new(limits));
    }

    pub fn quotas(&self) -> &Arc<Quotas> {
        &self.quotas
    }

    /// Charges a principal for a resource, or returns an error that names the exceeded limit.
    pub fn charge(
        &self,
        principal: &Principal,
        quota: Quota,
        amount: usize,
    ) -> Result<QuotaCharge, HubError> {
        self.quotas.charge(&self.limits.load().quotas, principal, quota, amount)
    }

    /// Checks whether this principal may receive a list. Lists count as calls in the rate limits of
    /// their caller.
    pub async fn admit_list(&self, principal: &Principal) -> Result<(), HubError> {
        let rates = caller_rates(&self.limits.load(), principal);
        if !rates.is_empty() {
            let (_, taken) = match &self.shared_limits {
                None => self.rates.take(rates),
                Some(shared) => {
                    let nothing = SharedPermitQueue::new(Arc::clone(shared), std::iter::empty());
                    self.count_shared(&**shared, rates, &nothing).await?.0
                }
            };
            taken?;
        }
        self.quotas.admit(&self.limits.load().quotas, principal)
    }

    /// Counts a call in rates that several replicas share. Takes its permits in the same step if
    /// it need not wait for them.
    pub(crate) async fn count_shared(
        &self,
        shared: &dyn SharedLimits,
        rates: Vec<(RateKey, RateLimit)>,
        queue: &SharedPermitQueue,
    ) -> Result<(RateVerdict, SharedTake), HubError> {
        let counted = shared_rates(&rates);
        let demand = SharedDemand { rates: &counted, permits: queue.immediate(), lost: &queue.lost };
        let admission = shared.admit(demand).await.map_err(|error| store_unavailable_error(&error))?;
        Ok((self.rates.shared_verdict(rates, &admission.rates), admission.permits))
    }

    /// Returns the call counters.
    pub fn metrics(&self) -> &CallMetrics {
        &self.metrics
    }

    pub fn events(&self) -> &EventBus {
        &self.events
    }

    pub(crate) fn shared_events(&self) -> Arc<EventBus> {
        Arc::clone(&self.events)
    }

    /// Returns the concurrency limiter. If its number of permits changed, calls in progress keep
    /// the old limiter.
    pub(crate) fn limiter(&self, of: LimiterKey, most: usize) -> Arc<ConcurrencyLimiter> {
        let mut places = self.lock_limiters();
        if let Some(known) = places.get(&of)
            && known.capacity() == most.max(1)
        {
            return Arc::clone(known);
        }
        if places.len() >= MANY_PLACES {
            places.retain(|_, places| Arc::strong_count(places) > 1);
        }
        let fresh = ConcurrencyLimiter::new(most);
        places.insert(of, Arc::clone(&fresh));
        fresh
    }

    fn remove_limiters(&self, source: &SourceName) {
        self.lock_limiters().retain(|of, _| match of {
            LimiterKey::Caller(_) => true,
            LimiterKey::Tool(name, _) | LimiterKey::Source(name) => name != source,
        });
    }

    fn lock_sources(&self) -> MutexGuard<'_, Vec<Arc<dyn Source>>> {
        self.sources.lock()
    }

    fn lock_limiters(&self) -> MutexGuard<'_, HashMap<LimiterKey, Arc<ConcurrencyLimiter>>> {
        self.limiters.lock()
    }
}

/// Returns the rate limits that apply to everything a caller does.
pub(crate) fn caller_rates(limits: &YardLimits, principal: &Principal) -> Vec<(RateKey, RateLimit)> {
    let caller = || Arc::clone(principal.shared_id());
    let of_yard = limits.rate.map(|rate| (RateKey::Caller(caller()), rate));
    let own = principal.limits().rate.map(|rate| (RateKey::Token(caller()), rate));
    of_yard.into_iter().chain(own).collect()
}

impl std::fmt::Debug for Yard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Yard").field("catalog", &self.catalog.load()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for YardSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("YardSettings").field("limits", &self.limits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
