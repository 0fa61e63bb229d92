//! The legacy side of a server that knows both eras. Its modern side is always there; this one is opened when a client of
//! the legacy era first needs it, so that the server is spoken to as it would be without us.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolyard_hub::{Offer, State};
use toolyard_wire::Era;

use crate::settings::ServerSettings;
use crate::upstream::{Inner, Upstream};

/// How long after a server did not answer in the legacy era it is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(300);

#[derive(Debug, Default)]
pub(crate) struct LegacySide {
    inner: Mutex<Side>,
}

#[derive(Debug, Default)]
enum Side {
    /// No client has needed it.
    #[default]
    Unopened,
    Open(Arc<Upstream>),
    /// The server does not speak the legacy era, as far as is known.
    Refused(Instant),
}

impl LegacySide {
    /// The connection in the legacy era, opened if there is none; nothing if the server does not speak it, or if the
    /// connection is broken. Then the modern side has to do.
    pub(crate) async fn get(&self, modern: &Inner) -> Option<Arc<Upstream>> {
        let side = self.open(modern)?;
        side.inner().settled().await;
        match side.inner().status().state {
            State::Ready => Some(side),
            state => {
                // It was never connected to: trying again and again would start a process each time.
                if state == State::Failed {
                    self.refuse(&side);
                }
                None
            }
        }
    }

    /// Whether it is still to be found out what clients of the legacy era are offered.
    pub(crate) fn is_unmet(&self, modern: &Inner) -> bool {
        knows_other_era(modern)
            && match &*self.lock() {
                Side::Unopened => true,
                Side::Open(side) => !side.inner().status().settled,
                Side::Refused(since) => since.elapsed() >= ASK_AGAIN,
            }
    }

    /// What is offered there, if it is connected or has been.
    pub(crate) fn offer(&self) -> Option<Arc<Offer>> {
        let Side::Open(side) = &*self.lock() else { return None };
        let side = side.inner();
        let is_known = side.was_ready() || side.live.load().is_some();
        is_known.then(|| side.offer.load_full())
    }

    /// The side itself, where it is a process of its own that has to be told of subscriptions, too.
    pub(crate) fn with_own_state(&self) -> Option<Arc<Upstream>> {
        let Side::Open(side) = &*self.lock() else { return None };
        side.settings().transport.is_command().then(|| Arc::clone(side))
    }

    /// Takes it away; whoever is given it has to stop it.
    pub(crate) fn take(&self) -> Option<Arc<Upstream>> {
        match std::mem::take(&mut *self.lock()) {
            Side::Open(side) => Some(side),
            Side::Unopened | Side::Refused(_) => None,
        }
    }

    fn open(&self, modern: &Inner) -> Option<Arc<Upstream>> {
        if !knows_other_era(modern) {
            return None;
        }
        let mut side = self.lock();
        match &*side {
            Side::Open(open) => return Some(Arc::clone(open)),
            Side::Refused(since) if since.elapsed() < ASK_AGAIN => return None,
            Side::Unopened | Side::Refused(_) => {}
        }
        let settings = ServerSettings { era: Some(Era::Legacy), ..modern.settings.clone() };
        let opened = Upstream::start_legacy_side(settings, modern);
        *side = Side::Open(Arc::clone(&opened));
        Some(opened)
    }

    fn refuse(&self, refused: &Arc<Upstream>) {
        let mut side = self.lock();
        if matches!(&*side, Side::Open(open) if Arc::ptr_eq(open, refused)) {
            *side = Side::Refused(Instant::now());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Side> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the server may have a side that it is not spoken to on: it answered in the modern era, and nothing says that it
/// has to be that one.
fn knows_other_era(modern: &Inner) -> bool {
    let is_modern = || modern.live.load().as_ref().is_some_and(|live| live.is_modern());
    modern.settings.era.is_none() && modern.visitor.is_none() && is_modern()
}
