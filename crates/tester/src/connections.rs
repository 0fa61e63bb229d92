//! The connections by caller: one per caller, limited in number, and closed when unused.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use toolyard_hub::{ErrorKind, HubError};

use crate::caller::TesterCaller;
use crate::connection::TesterConnection;

/// The maximum number of connections of all callers.
const MOST: usize = 64;
/// How long an unused connection is kept.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// At the limit, a connection that has been unused for this long is replaced.
const DISPENSABLE: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, Default)]
pub(crate) struct CallerConnections {
    taken: Mutex<HashMap<TesterCaller, ConnectionSlot>>,
}

#[derive(Debug)]
enum ConnectionSlot {
    /// Connecting to this target.
    Reserved(String),
    Taken(Arc<TesterConnection>),
}

/// A slot that is held while the connection is made. It is released if the connection fails.
#[derive(Debug)]
pub(crate) struct ConnectionReservation {
    connections: Arc<CallerConnections>,
    caller: Option<TesterCaller>,
}

impl CallerConnections {
    /// Reserves a slot for a new connection. Returns it with the connections that were removed to
    /// make room.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        caller: TesterCaller,
        url: &str,
    ) -> Result<(ConnectionReservation, Vec<Arc<TesterConnection>>), HubError> {
        let mut taken = self.lock();
        let mut ended = Vec::new();
        match taken.get(&caller) {
            Some(ConnectionSlot::Reserved(other)) => {
                let message = format!("already connecting to {other}");
                return Err(HubError::new(ErrorKind::CannotConnect, message)
                    .with_suggestion("wait until connect_to_server returns"));
            }
            // A connection whose server is gone may be replaced.
            Some(ConnectionSlot::Taken(connection)) if connection.link.disconnect_reason().is_none() => {
                return Err(already_connected_error(connection));
            }
            Some(ConnectionSlot::Taken(connection)) => ended.push(Arc::clone(connection)),
            None if taken.len() >= MOST => ended.push(make_room(&mut taken)?),
            None => {}
        }
        taken.insert(caller.clone(), ConnectionSlot::Reserved(url.to_owned()));
        Ok((ConnectionReservation { connections: Arc::clone(self), caller: Some(caller) }, ended))
    }

    /// Returns the caller's connection, if any. This does not count as use.
    pub(crate) fn peek(&self, caller: &TesterCaller) -> Option<Arc<TesterConnection>> {
        match self.lock().get(caller) {
            Some(ConnectionSlot::Taken(connection)) => Some(Arc::clone(connection)),
            Some(ConnectionSlot::Reserved(_)) | None => None,
        }
    }

    /// Returns the caller's connection.
    pub(crate) fn connection(&self, caller: &TesterCaller) -> Result<Arc<TesterConnection>, HubError> {
        match self.lock().get(caller) {
            Some(ConnectionSlot::Taken(connection)) => {
                connection.touch();
                Ok(Arc::clone(connection))
            }
            Some(ConnectionSlot::Reserved(url)) => {
                let message = format!("still connecting to {url}");
                Err(HubError::new(ErrorKind::NotConnected, message)
                    .with_suggestion("wait until connect_to_server returns"))
            }
            None => Err(HubError::new(ErrorKind::NotConnected, "not connected to any server")
                .with_suggestion("call connect_to_server first")),
        }
    }

    /// Removes the caller's connection.
    pub(crate) fn remove(&self, caller: &TesterCaller) -> Result<Arc<TesterConnection>, HubError> {
        let connection = self.connection(caller)?;
        self.lock().remove(caller);
        Ok(connection)
    }

    /// Removes this connection if the caller still has it.
    pub(crate) fn remove_if_same(&self, caller: &TesterCaller, connection: &Arc<TesterConnection>) {
        let mut taken = self.lock();
        if matches!(taken.get(caller), Some(ConnectionSlot::Taken(held)) if Arc::ptr_eq(held, connection)) {
            taken.remove(caller);
        }
    }

    /// Removes and returns the connections that have been unused for too long.
    pub(crate) fn take_idle(&self) -> Vec<Arc<TesterConnection>> {
        self.take_if(|connection| connection.idle_for() > IDLE)
    }

    pub(crate) fn take_all(&self) -> Vec<Arc<TesterConnection>> {
        self.take_if(|_| true)
    }

    fn take_if(&self, selects: impl Fn(&TesterConnection) -> bool) -> Vec<Arc<TesterConnection>> {
        let mut out = Vec::new();
        self.lock().retain(|_, seat| match seat {
            ConnectionSlot::Taken(connection) if selects(connection) => {
                out.push(Arc::clone(connection));
                false
            }
            ConnectionSlot::Taken(_) | ConnectionSlot::Reserved(_) => true,
        });
        out
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TesterCaller, ConnectionSlot>> {
        self.taken.lock()
    }
}

fn already_connected_error(connection: &TesterConnection) -> HubError {
    let message = format!("still connected to {}", connection.url);
    let details = json!({"server_url": connection.url, "connected_at": connection.connected_at()});
    HubError::new(ErrorKind::CannotConnect, message)
        .with_details(details)
        .with_suggestion("call disconnect first")
}

fn make_room(taken: &mut HashMap<TesterCaller, ConnectionSlot>) -> Result<Arc<TesterConnection>, HubError> {
    let used = taken.iter().filter_map(|(caller, seat)| match seat {
        ConnectionSlot::Taken(connection) => Some((connection.idle_for(), caller)),
        ConnectionSlot::Reserved(_) => None,
    });
    let oldest = used.filter(|(idle, _)| *idle > DISPENSABLE).max_by_key(|(idle, _)| *idle);
    let oldest = oldest.map(|(_, caller)| caller.clone());
    match oldest.and_then(|caller| taken.remove(&caller)) {
        Some(ConnectionSlot::Taken(connection)) => Ok(connection),
        Some(ConnectionSlot::Reserved(_)) | None => {
            let message =
                format!("the tester has reached its limit of {MOST} connections, and all are in use");
            Err(HubError::new(ErrorKind::CannotConnect, message)
                .with_suggestion("disconnect one, or retry later"))
        }
    }
}

impl ConnectionReservation {
    pub(crate) fn fill(mut self, connection: Arc<TesterConnection>) {
        if let Some(caller) = self.caller.take() {
            self.connections.lock().insert(caller, ConnectionSlot::Taken(connection));
        }
    }
}

impl Drop for ConnectionReservation {
    fn drop(&mut self) {
        if let Some(caller) = self.caller.take() {
            self.connections.lock().remove(&caller);
        }
    }
}
