//! The legacy side of a server that knows both eras. Its modern side is always there; this one is opened when a client of
//! the legacy era first needs it, so that the server is spoken to as it would be without us.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use toolyard_hub::{SourceOffer, SourceState};
use toolyard_wire::Era;

use crate::settings::ServerSettings;
use crate::upstream::{Upstream, UpstreamState};

/// How long after a server did not answer in the legacy era it is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(300);

#[derive(Debug, Default)]
pub(crate) struct LegacySide {
    inner: Mutex<LegacySideState>,
}

#[derive(Debug, Default)]
enum LegacySideState {
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
    pub(crate) async fn get(&self, modern: &UpstreamState) -> Option<Arc<Upstream>> {
        let side = self.open(modern)?;
        side.inner().wait_settled().await;
        match side.inner().status().state {
            SourceState::Ready => Some(side),
            state => {
                // It was never connected to: trying again and again would start a process each time.
                if state == SourceState::Failed {
                    self.mark_refused(&side);
                }
                None
            }
        }
    }

    /// Whether it is still to be found out what clients of the legacy era are offered.
    pub(crate) fn is_undetermined(&self, modern: &UpstreamState) -> bool {
        may_support_legacy(modern)
            && match &*self.lock() {
                LegacySideState::Unopened => true,
                LegacySideState::Open(side) => !side.inner().status().startup_complete,
                LegacySideState::Refused(since) => since.elapsed() >= ASK_AGAIN,
            }
    }

    /// What is offered there, if it is connected or has been.
    pub(crate) fn offer(&self) -> Option<Arc<SourceOffer>> {
        let LegacySideState::Open(side) = &*self.lock() else { return None };
        let side = side.inner();
        let is_known = side.was_ready() || side.live.load().is_some();
        is_known.then(|| side.published.offer())
    }

    /// The side itself, where it is a process of its own that has to be told of subscriptions, too.
    pub(crate) fn separate_process(&self) -> Option<Arc<Upstream>> {
        let LegacySideState::Open(side) = &*self.lock() else { return None };
        side.settings().transport.is_command().then(|| Arc::clone(side))
    }

    /// Takes it away; whoever is given it has to stop it.
    pub(crate) fn take(&self) -> Option<Arc<Upstream>> {
        match std::mem::take(&mut *self.lock()) {
            LegacySideState::Open(side) => Some(side),
            LegacySideState::Unopened | LegacySideState::Refused(_) => None,
        }
    }

    fn open(&self, modern: &UpstreamState) -> Option<Arc<Upstream>> {
        if !may_support_legacy(modern) {
            return None;
        }
        let mut side = self.lock();
        match &*side {
            LegacySideState::Open(open) => return Some(Arc::clone(open)),
            LegacySideState::Refused(since) if since.elapsed() < ASK_AGAIN => return None,
            LegacySideState::Unopened | LegacySideState::Refused(_) => {}
        }
        let settings = ServerSettings { era: Some(Era::Legacy), ..modern.settings.clone() };
        let opened = Upstream::start_legacy_side(settings, modern);
        *side = LegacySideState::Open(Arc::clone(&opened));
        Some(opened)
    }

    fn mark_refused(&self, refused: &Arc<Upstream>) {
        let mut side = self.lock();
        if matches!(&*side, LegacySideState::Open(open) if Arc::ptr_eq(open, refused)) {
            *side = LegacySideState::Refused(Instant::now());
        }
    }

    fn lock(&self) -> MutexGuard<'_, LegacySideState> {
        self.inner.lock()
    }
}

/// Whether the server may have a side that it is not spoken to on: it answered in the modern era, and nothing says that it
/// has to be that one.
fn may_support_legacy(modern: &UpstreamState) -> bool {
    let is_modern = || modern.live.load().as_ref().is_some_and(|live| live.is_modern());
    modern.settings.era.is_none() && modern.dedicated_client.is_none() && is_modern()
}
