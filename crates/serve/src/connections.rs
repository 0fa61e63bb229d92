//! The open connections, and which of them are evicted when there are too many. Only connections
//! that have not carried an authenticated request are evicted. Health checks have a reserve of
//! their own.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::proxy::TrustedProxies;

/// Number of closing connections at which the listener stops accepting. A listener that accepts
/// faster than it closes runs out of file descriptors, and evicts connections whose request has
/// arrived but is still unread.
const MOST_CLOSING: usize = 64;

/// Limits on the number of connections and on their time.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectionLimits {
    /// Maximum number of connections, not counting the reserve.
    pub total: usize,
    /// Maximum number of connections that have not carried an authenticated request.
    pub unauthenticated: usize,
    /// Maximum number of these from one IPv4 address or one IPv6 /64 network.
    pub unauthenticated_per_address: usize,
    /// Number of additional connections that only answer health checks.
    pub health_reserve: usize,
    /// Time limit for sending a request head.
    pub head_time: Duration,
    /// The same limit for unauthenticated connections while more than half of their maximum are
    /// open.
    pub pressed_head_time: Duration,
    /// Reverse proxies. The addresses that they forward are counted instead of their own.
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
    /// Lowers the limits to three quarters of the file descriptors that the process may open. The
    /// rest is for everything else.
    pub(crate) fn cap_to_open_files(self, descriptors: Option<u64>) -> Self {
        let Some(descriptors) = descriptors else { return self };
        let room = usize::try_from(descriptors - descriptors / 4).unwrap_or(usize::MAX);
        let total = self.total.min(room.saturating_sub(self.health_reserve)).max(1);
        if total < self.total {
            tracing::warn!(total, descriptors, "connection limit lowered to fit the open file limit");
        }
        Self { total, unauthenticated: self.unauthenticated.min(total), ..self }
    }
}

/// The address by which clients are counted. One client has all addresses of an IPv6 /64 network.
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
    created: Instant,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// Connections by ID, oldest first.
    all: BTreeMap<u64, Entry>,
    next: u64,
    unauthenticated: usize,
    reserved: usize,
    /// Evicted connections that are not closed yet.
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
    /// Counted for this address. `None` is a proxy that has not sent a request yet.
    Unauthenticated(Option<ClientAddress>),
    Authenticated,
    Reserved,
}

/// The state of one open connection. Its task calls [`ConnectionTable::remove`] at the end.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    id: u64,
    table: Weak<ConnectionTable>,
    peer: IpAddr,
    reserved: bool,
    authenticated: AtomicBool,
    /// Number of requests in progress.
    busy: AtomicUsize,
    /// In milliseconds since the table was created.
    idle_since: AtomicU64,
    body_read: AtomicBool,
    evicted: CancellationToken,
}

impl ConnectionTable {
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, created: Instant::now(), open: Mutex::default() })
    }

    /// Adds a connection. Returns `None` if there is no room for it, not even in the reserve.
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

    /// Returns whether the listener should stop accepting until evicted connections are closed.
    pub(crate) fn is_behind(&self) -> bool {
        self.lock().closing >= MOST_CLOSING
    }

    /// Adds an evicted connection again if a request arrived before it was closed. Returns whether
    /// one did.
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

    /// Returns whether more than half of the allowed unauthenticated connections are open.
    pub(crate) fn is_under_pressure(&self) -> bool {
        2 * self.lock().unauthenticated > self.limits.unauthenticated
    }

    /// Under pressure, closes the unauthenticated connections that have been idle for too long.
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

    /// Returns the number of open connections and of unauthenticated connections among them.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let open = self.lock();
        (open.all.len(), open.unauthenticated)
    }

    fn client_address(&self, peer: IpAddr) -> Option<ClientAddress> {
        (!self.limits.trusted_proxies.contains(peer)).then(|| ClientAddress::from(peer))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock()
    }
}

impl OpenConnections {
    /// Makes room for one more unauthenticated connection from this address by closing idle ones.
    /// Returns whether there is room.
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

    /// Returns the address with the most unauthenticated connections. They are evicted first, so
    /// that a client with few connections is not evicted before its request is read, however long
    /// that takes.
    fn busiest_address(&self) -> Option<ClientAddress> {
        self.by_address.iter().max_by_key(|(_, count)| **count).map(|(address, _)| *address)
    }

    /// Closes the oldest idle connection whose class matches. Returns whether there was one.
    fn evict(&mut self, matches_class: impl Fn(Class) -> bool) -> bool {
        let oldest = self.all.iter().find(|(_, entry)| matches_class(entry.class) && entry.state.is_idle());
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

    /// Returns whether this connection belongs to the reserve and only answers health checks.
    pub(crate) fn is_reserved(&self) -> bool {
        self.reserved
    }

    /// Returns the token that is canceled when the server stops or this connection is evicted.
    pub(crate) fn closed_token(&self) -> &CancellationToken {
        &self.evicted
    }

    /// Marks the connection as authenticated, so that it is no longer evicted.
    pub(crate) fn mark_authenticated(&self) {
        if self.reserved || self.authenticated.load(Ordering::Relaxed) {
            return;
        }
        self.authenticated.store(true, Ordering::Relaxed);
        if let Some(table) = self.table.upgrade() {
            table.lock().reclassify(self.id, Class::Authenticated);
        }
    }

    /// Counts an unauthenticated request that a trusted proxy forwarded for this address. Returns
    /// false if the address already has too many connections and none of them is idle.
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

    /// Returns the number of open connections and of unauthenticated connections among them.
    pub(crate) fn counts(&self) -> Option<(usize, usize)> {
        Some(self.table.upgrade()?.counts())
    }

    pub(crate) fn trusted_proxies(&self) -> Option<TrustedProxies> {
        Some(self.table.upgrade()?.limits.trusted_proxies.clone())
    }

    /// Marks the connection as busy until [`ConnectionState::end_request`].
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

    /// Returns whether the body of the last request was read to the end.
    pub(crate) fn has_read_body(&self) -> bool {
        self.body_read.load(Ordering::Relaxed)
    }

    fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests;
