//! Who is connected to what: one connection for each caller, bounded in number, ended when nobody uses it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use toolyard_hub::{Error, Kind};

use crate::caller::Caller;
use crate::connection::Connection;

/// How many connections there are at once, over all callers.
const MOST: usize = 64;
/// How long one is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// When there is no room, one that nobody has used for this long makes it.
const DISPENSABLE: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, Default)]
pub(crate) struct Seats {
    taken: Mutex<HashMap<Caller, Seat>>,
}

#[derive(Debug)]
enum Seat {
    /// Being connected, to this.
    Reserved(String),
    Taken(Arc<Connection>),
}

/// A seat that is held while the connection is made; it is free again if that comes to nothing.
#[derive(Debug)]
pub(crate) struct Reserved {
    seats: Arc<Seats>,
    caller: Option<Caller>,
}

impl Seats {
    /// Takes a seat for a connection that is about to be made, and hands back those that made room for it.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        caller: Caller,
        url: &str,
    ) -> Result<(Reserved, Vec<Arc<Connection>>), Error> {
        let mut taken = self.lock();
        let mut ended = Vec::new();
        match taken.get(&caller) {
            Some(Seat::Reserved(other)) => {
                let message = format!("a connection to {other} is being made");
                return Err(Error::new(Kind::CannotConnect, message).suggest("wait for it"));
            }
            // One whose server is gone is in nobody's way.
            Some(Seat::Taken(connection)) if connection.link.gone().is_none() => {
                return Err(still_connected(connection));
            }
            Some(Seat::Taken(connection)) => ended.push(Arc::clone(connection)),
            None if taken.len() >= MOST => ended.push(make_room(&mut taken)?),
            None => {}
        }
        taken.insert(caller.clone(), Seat::Reserved(url.to_owned()));
        Ok((Reserved { seats: Arc::clone(self), caller: Some(caller) }, ended))
    }

    /// The caller's connection, if there is one. To look at it is not to use it.
    pub(crate) fn look(&self, caller: &Caller) -> Option<Arc<Connection>> {
        match self.lock().get(caller) {
            Some(Seat::Taken(connection)) => Some(Arc::clone(connection)),
            Some(Seat::Reserved(_)) | None => None,
        }
    }

    /// The caller's connection.
    pub(crate) fn connection(&self, caller: &Caller) -> Result<Arc<Connection>, Error> {
        match self.lock().get(caller) {
            Some(Seat::Taken(connection)) => {
                connection.touch();
                Ok(Arc::clone(connection))
            }
            Some(Seat::Reserved(url)) => {
                let message = format!("the connection to {url} is still being made");
                Err(Error::new(Kind::NotConnected, message).suggest("wait for connect_to_server to answer"))
            }
            None => Err(Error::new(Kind::NotConnected, "not connected to any server")
                .suggest("call connect_to_server first")),
        }
    }

    /// Gives the caller's connection up.
    pub(crate) fn leave(&self, caller: &Caller) -> Result<Arc<Connection>, Error> {
        let connection = self.connection(caller)?;
        self.lock().remove(caller);
        Ok(connection)
    }

    /// Gives up this very connection, if the caller still has it.
    pub(crate) fn leave_this(&self, caller: &Caller, connection: &Arc<Connection>) {
        let mut taken = self.lock();
        if matches!(taken.get(caller), Some(Seat::Taken(held)) if Arc::ptr_eq(held, connection)) {
            taken.remove(caller);
        }
    }

    /// Those that nobody has used for too long; they are not connected any more.
    pub(crate) fn idle(&self) -> Vec<Arc<Connection>> {
        self.take_if(|connection| connection.idle_for() > IDLE)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Connection>> {
        self.take_if(|_| true)
    }

    fn take_if(&self, wanted: impl Fn(&Connection) -> bool) -> Vec<Arc<Connection>> {
        let mut out = Vec::new();
        self.lock().retain(|_, seat| match seat {
            Seat::Taken(connection) if wanted(connection) => {
                out.push(Arc::clone(connection));
                false
            }
            Seat::Taken(_) | Seat::Reserved(_) => true,
        });
        out
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Caller, Seat>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn still_connected(connection: &Connection) -> Error {
    let message = format!("still connected to {}", connection.url);
    let details = json!({"server_url": connection.url, "connected_at": connection.connected_at()});
    Error::new(Kind::CannotConnect, message).with_details(details).suggest("call disconnect first")
}

fn make_room(taken: &mut HashMap<Caller, Seat>) -> Result<Arc<Connection>, Error> {
    let used = taken.iter().filter_map(|(caller, seat)| match seat {
        Seat::Taken(connection) => Some((connection.idle_for(), caller)),
        Seat::Reserved(_) => None,
    });
    let oldest = used.filter(|(idle, _)| *idle > DISPENSABLE).max_by_key(|(idle, _)| *idle);
    let oldest = oldest.map(|(_, caller)| caller.clone());
    match oldest.and_then(|caller| taken.remove(&caller)) {
        Some(Seat::Taken(connection)) => Ok(connection),
        Some(Seat::Reserved(_)) | None => {
            let message = format!("all {MOST} connections of this tester are in use");
            Err(Error::new(Kind::CannotConnect, message).suggest("disconnect one, or try again later"))
        }
    }
}

impl Reserved {
    pub(crate) fn take(mut self, connection: Arc<Connection>) {
        if let Some(caller) = self.caller.take() {
            self.seats.lock().insert(caller, Seat::Taken(connection));
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(caller) = self.caller.take() {
            self.seats.lock().remove(&caller);
        }
    }
}
