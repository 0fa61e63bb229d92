//! The open connections, and who has to go when there are too many. Only connections that have not carried an
//! authenticated request are ever closed to make room; health checks have a reserve of their own.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::proxy::TrustedProxies;

/// How many connections may be about to close before the listener stops accepting. A listener that accepts faster than it
/// closes runs out of descriptors, and evicts connections whose request has arrived but is still unread.
const MOST_CLOSING: usize = 64;

/// How many connections there may be, and how long they may take.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectionLimits {
    /// Connections at once, the reserve not counted.
    pub total: usize,
    /// Connections at once that have not carried an authenticated request.
    pub unauthenticated: usize,
    /// The same from one IPv4 address or one IPv6 /64 network.
    pub unauthenticated_per_address: usize,
    /// Further connections that only answer health checks.
    pub health_reserve: usize,
    /// How long a client may take to send the head of a request.
    pub head_time: Duration,
    /// The same for unauthenticated connections while more than half of their number are open.
    pub pressed_head_time: Duration,
    /// Reverse proxies: the addresses that they forward count instead of their own.
    pub trusted_proxies: TrustedProxies,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            total: 2_048,
            unauthenticated: 1_024,
            unauthenticated_per_address: 256,
            health_reserve: 32,
            head_time: Duration::from_secs(30),
            pressed_head_time: Duration::from_secs(5),
            trusted_proxies: TrustedProxies::default(),
        }
    }
}

impl ConnectionLimits {
    /// The same within what the process may have open: a quarter of the file descriptors is for everything else.
    pub(crate) fn cap_to_open_files(self, descriptors: Option<u64>) -> Self {
        let Some(descriptors) = descriptors else { return self };
        let room = usize::try_from(descriptors - descriptors / 4).unwrap_or(usize::MAX);
        let total = self.total.min(room.saturating_sub(self.health_reserve)).max(1);
        if total < self.total {
            tracing::warn!(total, descriptors, "fewer connections are served: raise the limit of open files");
        }
        Self { total, unauthenticated: self.unauthenticated.min(total), ..self }
    }
}

/// What clients are counted by. Whoever has an IPv6 network has all of its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientAddress(IpAddr);

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from(network))
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

#[derive(Debug)]
pub(crate) struct ConnectionTable {
    limits: ConnectionLimits,
    began: Instant,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// By their number, so that the oldest comes first.
    all: BTreeMap<u64, Entry>,
    next: u64,
    unauthenticated: usize,
    reserved: usize,
    /// Closed to make room, but not gone yet.
    closing: usize,
    by_address: HashMap<ClientAddress, usize>,
}

#[derive(Debug)]
struct Entry {
    state: Arc<ConnectionState>,
    class: Class,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Counted for this address; `None` is a proxy of which no request has come yet.
    Unauthenticated(Option<ClientAddress>),
    Authenticated,
    Reserved,
}

/// What is known of one connection while it is open. Dropping the last handle of its task gives its place back.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    id: u64,
    table: Weak<ConnectionTable>,
    peer: IpAddr,
    reserved: bool,
    authenticated: AtomicBool,
    /// Requests being answered.
    busy: AtomicUsize,
    /// In milliseconds since the table was made.
    idle_since: AtomicU64,
    body_read: AtomicBool,
    evicted: CancellationToken,
}

impl ConnectionTable {
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, began: Instant::now(), open: Mutex::default() })
    }

    /// Takes a connection in; `None` if there is no room for it, not even in the reserve.
    pub(crate) fn admit(
        self: &Arc<Self>,
        peer: IpAddr,
        stop: &CancellationToken,
    ) -> Option<Arc<ConnectionState>> {
        let peer = peer.to_canonical();
        let address = self.client_address(peer);
        let mut open = self.lock();
        let class = if open.make_room(&self.limits, address) {
            Class::Unauthenticated(address)
        } else if open.reserved < self.limits.health_reserve || open.evict(|class| class == Class::Reserved) {
            Class::Reserved
        } else {
            return None;
        };
        let id = open.next;
        open.next += 1;
        let state = Arc::new(ConnectionState {
            id,
            table: Arc::downgrade(self),
            peer,
            reserved: class == Class::Reserved,
            authenticated: AtomicBool::new(false),
            busy: AtomicUsize::new(0),
            idle_since: AtomicU64::new(self.now()),
            body_read: AtomicBool::new(true),
            evicted: stop.child_token(),
        });
        open.insert(id, Entry { state: Arc::clone(&state), class });
        Some(state)
    }

    pub(crate) fn remove(&self, state: &ConnectionState) {
        let mut open = self.lock();
        if open.remove(state.id).is_none() {
            open.closing -= 1;
        }
    }

    /// Whether the listener should stop accepting until evicted connections are gone.
    pub(crate) fn is_behind(&self) -> bool {
        self.lock().closing >= MOST_CLOSING
    }

    /// Gives an evicted connection its place back if a request arrived before it was closed. Returns whether one did.
    pub(crate) fn reinstate(&self, state: &Arc<ConnectionState>) -> bool {
        if state.is_idle() {
            return false;
        }
        let class = if state.reserved {
            Class::Reserved
        } else if state.authenticated.load(Ordering::Relaxed) {
            Class::Authenticated
        } else {
            Class::Unauthenticated(self.client_address(state.peer))
        };
        let mut open = self.lock();
        if !open.all.contains_key(&state.id) {
            open.closing -= 1;
            open.insert(state.id, Entry { state: Arc::clone(state), class });
        }
        true
    }

    /// Whether so many connections are unauthenticated that they are given less time.
    pub(crate) fn is_under_pressure(&self) -> bool {
        2 * self.lock().unauthenticated > self.limits.unauthenticated
    }

    /// Closes the unauthenticated connections that have been idle for too long under pressure.
    pub(crate) fn sweep(&self) {
        let longest = u64::try_from(self.limits.pressed_head_time.as_millis()).unwrap_or(u64::MAX);
        let now = self.now();
        let mut open = self.lock();
        if 2 * open.unauthenticated <= self.limits.unauthenticated {
            return;
        }
        let late = |entry: &Entry| {
            let since = entry.state.idle_since.load(Ordering::Relaxed);
            !matches!(entry.class, Class::Authenticated)
                && entry.state.is_idle()
                && now.saturating_sub(since) >= longest
        };
        let late: Vec<u64> = open.all.iter().filter(|(_, entry)| late(entry)).map(|(id, _)| *id).collect();
        for id in late {
            open.close(id);
        }
    }

    /// How many connections are open, and how many of them are unauthenticated.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let open = self.lock();
        (open.all.len(), open.unauthenticated)
    }

    fn client_address(&self, peer: IpAddr) -> Option<ClientAddress> {
        (!self.limits.trusted_proxies.contains(peer)).then(|| ClientAddress::from(peer))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock()
    }
}

impl OpenConnections {
    /// Whether there is room for one more unauthenticated connection of this address, made by closing idle ones.
    fn make_room(&mut self, limits: &ConnectionLimits, address: Option<ClientAddress>) -> bool {
        let used = address.and_then(|address| self.by_address.get(&address)).copied().unwrap_or(0);
        if used >= limits.unauthenticated_per_address
            && !self.evict(|class| class == Class::Unauthenticated(address))
        {
            return false;
        }
        let full = |open: &Self| {
            open.unauthenticated >= limits.unauthenticated || open.all.len() - open.reserved >= limits.total
        };
        !full(self)
            || self
                .busiest_address()
                .is_some_and(|address| self.evict(|class| class == Class::Unauthenticated(Some(address))))
            || self.evict(|class| matches!(class, Class::Unauthenticated(_)))
    }

    /// The address with the most unauthenticated connections. Those make room first, so that a client that opens few is
    /// not closed before its request is read, however long that takes.
    fn busiest_address(&self) -> Option<ClientAddress> {
        self.by_address.iter().max_by_key(|(_, count)| **count).map(|(address, _)| *address)
    }

    /// Closes the oldest idle connection of such a class; false if there is none.
    fn evict(&mut self, wanted: impl Fn(Class) -> bool) -> bool {
        let oldest = self.all.iter().find(|(_, entry)| wanted(entry.class) && entry.state.is_idle());
        let Some(id) = oldest.map(|(id, _)| *id) else { return false };
        self.close(id);
        true
    }

    fn close(&mut self, id: u64) {
        if let Some(entry) = self.remove(id) {
            self.closing += 1;
            entry.state.evicted.cancel();
        }
    }

    fn insert(&mut self, id: u64, entry: Entry) {
        self.increment(entry.class);
        self.all.insert(id, entry);
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.all.remove(&id)?;
        self.decrement(entry.class);
        Some(entry)
    }

    fn reclassify(&mut self, id: u64, class: Class) {
        if let Some(mut entry) = self.remove(id) {
            entry.class = class;
            self.insert(id, entry);
        }
    }

    fn increment(&mut self, class: Class) {
        match class {
            Class::Unauthenticated(address) => {
                self.unauthenticated += 1;
                if let Some(address) = address {
                    *self.by_address.entry(address).or_default() += 1;
                }
            }
            Class::Reserved => self.reserved += 1,
            Class::Authenticated => {}
        }
    }

    fn decrement(&mut self, class: Class) {
        match class {
            Class::Unauthenticated(address) => {
                self.unauthenticated -= 1;
                if let Some(address) = address
                    && let Some(count) = self.by_address.get_mut(&address)
                {
                    *count -= 1;
                    if *count == 0 {
                        self.by_address.remove(&address);
                    }
                }
            }
            Class::Reserved => self.reserved -= 1,
            Class::Authenticated => {}
        }
    }
}

impl ConnectionState {
    pub(crate) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Whether this connection is of the reserve, and only answers health checks.
    pub(crate) fn is_reserved(&self) -> bool {
        self.reserved
    }

    /// Cancelled when the server stops, or this connection has to make room.
    pub(crate) fn closed_token(&self) -> &CancellationToken {
        &self.evicted
    }

    /// A request on this connection was of a known principal: it is not closed to make room any more.
    pub(crate) fn mark_authenticated(&self) {
        if self.reserved || self.authenticated.load(Ordering::Relaxed) {
            return;
        }
        self.authenticated.store(true, Ordering::Relaxed);
        if let Some(table) = self.table.upgrade() {
            table.lock().reclassify(self.id, Class::Authenticated);
        }
    }

    /// A request that was not authenticated came through a trusted proxy for this address. False if the address has
    /// too many connections already, none of which is idle.
    pub(crate) fn admit_forwarded(&self, address: IpAddr) -> bool {
        if self.reserved || self.authenticated.load(Ordering::Relaxed) {
            return true;
        }
        let Some(table) = self.table.upgrade() else { return true };
        let address = ClientAddress::from(address);
        let mut open = table.lock();
        open.reclassify(self.id, Class::Unauthenticated(None));
        let used = open.by_address.get(&address).copied().unwrap_or(0);
        let fits = used < table.limits.unauthenticated_per_address
            || open.evict(|class| class == Class::Unauthenticated(Some(address)));
        open.reclassify(self.id, Class::Unauthenticated(Some(address)));
        fits
    }

    /// How many connections are open, and how many of them are unauthenticated.
    pub(crate) fn counts(&self) -> Option<(usize, usize)> {
        Some(self.table.upgrade()?.counts())
    }

    pub(crate) fn trusted_proxies(&self) -> Option<TrustedProxies> {
        Some(self.table.upgrade()?.limits.trusted_proxies.clone())
    }

    /// A request has come; it is being answered until [`ConnectionState::end_request`].
    pub(crate) fn begin_request(&self, has_body: bool) {
        self.body_read.store(!has_body, Ordering::Relaxed);
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_request(&self) {
        if let Some(table) = self.table.upgrade() {
            self.idle_since.store(table.now(), Ordering::Relaxed);
        }
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn mark_body_read(&self) {
        self.body_read.store(true, Ordering::Relaxed);
    }

    /// Whether all of the last request was read.
    pub(crate) fn has_read_body(&self) -> bool {
        self.body_read.load(Ordering::Relaxed)
    }

    fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests;
