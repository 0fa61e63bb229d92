//! Sessions of a client's own. A legacy server may ask questions only of the client whose call it is working on,
//! and on a shared connection nobody could tell whose that is. So a client that can be asked gets a connection
//! of its own to such a server: opened when first used, capped in number, ended when idle.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolyard_hub::{Abilities, Call, Error, Kind};

use crate::connect::{Alone, Credentials, connect_alone};
use crate::live::Live;
use crate::upstream::Inner;

/// How many sessions of clients' own one server has at once.
const MOST: usize = 16;
/// How long one is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(300);

#[derive(Debug, Default)]
pub(crate) struct OwnSessions {
    open: Mutex<Vec<Arc<Own>>>,
    /// One is opened at a time, so that two calls of one client do not open two.
    opening: tokio::sync::Mutex<()>,
}

/// Whose session it is.
#[derive(Debug, Clone, PartialEq)]
struct Owner {
    principal: String,
    session: Option<Arc<str>>,
    abilities: Abilities,
}

#[derive(Debug)]
pub(crate) struct Own {
    owner: Owner,
    live: Live,
    used: Mutex<Instant>,
}

/// A session in use.
#[derive(Debug)]
pub(crate) struct InUse<'a> {
    sessions: &'a OwnSessions,
    own: Arc<Own>,
}

impl InUse<'_> {
    pub(crate) fn live(&self) -> &Live {
        &self.own.live
    }

    /// It is gone: nobody should be given it again.
    pub(crate) fn forget(self) {
        self.sessions.lock().retain(|own| !Arc::ptr_eq(own, &self.own));
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        *self.own.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

impl OwnSessions {
    /// Only a legacy server asks on a connection; only a client that can be asked needs its own.
    pub(crate) fn wanted(&self, shared: &Live, call: &Call) -> bool {
        let abilities = call.client.abilities();
        let askable = abilities.elicit_form || abilities.elicit_url || abilities.sample || abilities.roots;
        askable && !shared.is_modern()
    }

    pub(crate) async fn take<'a>(
        &'a self,
        inner: &Inner,
        shared: &Live,
        call: &Call,
    ) -> Result<InUse<'a>, Error> {
        // Which log lines a client wants differs from call to call and does not need another session.
        let abilities = Abilities { log_level: None, ..call.client.abilities().clone() };
        let owner = Owner {
            principal: call.principal.id().to_owned(),
            session: call.context.session_id.clone(),
            abilities,
        };
        let _one_at_a_time = self.opening.lock().await;
        if let Some(own) = self.find(&owner) {
            return Ok(InUse { sessions: self, own });
        }
        self.make_room(&inner.settings.name.to_string())?;
        let cannot = |reason: &str| {
            let message = format!("no session of this client's own with {}: {reason}", inner.settings.name);
            Error::new(Kind::CannotConnect, message)
        };
        let alone = Alone {
            common: &inner.common,
            settings: &inner.settings,
            authoriser: &inner.authoriser,
            abilities: &owner.abilities,
            era: Some(shared.server.version.era()),
            tape: &inner.tape,
            credentials: Credentials::Granted,
        };
        let (live, _) = connect_alone(alone).await.map_err(|refused| cannot(&refused.reason))?;
        let own = Arc::new(Own { owner, live, used: Mutex::new(Instant::now()) });
        self.lock().push(Arc::clone(&own));
        Ok(InUse { sessions: self, own })
    }

    /// A client with a session with us shares one connection among its calls. One without is known by its
    /// principal alone, so a connection that is busy may be busy for another client of theirs.
    fn find(&self, owner: &Owner) -> Option<Arc<Own>> {
        let free = |own: &&Arc<Own>| owner.session.is_some() || own.live.calls.is_empty();
        self.lock().iter().filter(|own| own.owner == *owner).find(free).cloned()
    }

    fn make_room(&self, name: &str) -> Result<(), Error> {
        self.sweep();
        let mut open = self.lock();
        if open.len() < MOST {
            return Ok(());
        }
        let idle = open.iter().enumerate().filter(|(_, own)| own.live.calls.is_empty());
        let oldest = idle.min_by_key(|(_, own)| own.last_used()).map(|(at, _)| at);
        match oldest {
            Some(at) => drop(open.remove(at)),
            None => {
                let message = format!("all {MOST} sessions of clients' own with {name} are in use");
                return Err(Error::new(Kind::RateLimited, message).retry_after(Duration::from_secs(5)));
            }
        }
        Ok(())
    }

    /// Ends the sessions that nobody has used for a while; dropping one ends what was started for it.
    pub(crate) fn sweep(&self) {
        self.lock().retain(|own| !own.live.calls.is_empty() || own.last_used().elapsed() < IDLE);
    }

    pub(crate) fn end_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Own>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Own {
    fn last_used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
