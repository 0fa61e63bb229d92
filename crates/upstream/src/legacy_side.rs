//! The legacy connection to a server that supports both eras. The modern connection is always open.
//! The legacy one is opened when a legacy client first needs it, so that the server sees the era of
//! the client, as it would without the gateway.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use toolyard_hub::{SourceOffer, SourceState};
use toolyard_wire::Era;

use crate::settings::ServerSettings;
use crate::upstream::{Upstream, UpstreamState};

/// How long after a failed attempt the legacy era is tried again.
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
    /// The server does not support the legacy era, as of this time.
    Refused(Instant),
}

impl LegacySide {
    /// Returns the legacy connection, and opens it if necessary. Returns `None` if the server does
    /// not support the legacy era or the connection is broken; use the modern connection then.
    pub(crate) async fn get(&self, modern: &UpstreamState) -> Option<Arc<Upstream>> {
        let side = self.open(modern)?;
        side.inner().wait_settled().await;
        match side.inner().status().state {
            SourceState::Ready => Some(side),
            state => {
                // It never connected. Each further attempt would start a process.
                if state == SourceState::Failed {
                    self.mark_refused(&side);
                }
                None
            }
        }
    }

    /// Returns whether the offer for legacy clients is still unknown.
    pub(crate) fn is_undetermined(&self, modern: &UpstreamState) -> bool {
        may_support_legacy(modern)
            && match &*self.lock() {
                LegacySideState::Unopened => true,
                LegacySideState::Open(side) => !side.inner().status().startup_complete,
                LegacySideState::Refused(since) => since.elapsed() >= ASK_AGAIN,
            }
    }

    /// Returns the offer of the legacy side, if it is or was connected.
    pub(crate) fn offer(&self) -> Option<Arc<SourceOffer>> {
        let LegacySideState::Open(side) = &*self.lock() else { return None };
        let side = side.inner();
        let is_known = side.was_ready() || side.live.load().is_some();
        is_known.then(|| side.published.offer())
    }

    /// Returns the legacy side if it is a separate process, which needs subscriptions of its own.
    pub(crate) fn separate_process(&self) -> Option<Arc<Upstream>> {
        let LegacySideState::Open(side) = &*self.lock() else { return None };
        side.settings().transport.is_command().then(|| Arc::clone(side))
    }

    /// Removes the legacy side. The caller must stop it.
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

    fn mark_refused(&self, failed: &Arc<Upstream>) {
        let mut side = self.lock();
        if matches!(&*side, LegacySideState::Open(open) if Arc::ptr_eq(open, failed)) {
            *side = LegacySideState::Refused(Instant::now());
        }
    }

    fn lock(&self) -> MutexGuard<'_, LegacySideState> {
        self.inner.lock()
    }
}

/// Returns whether the server may also support the legacy era: it is connected in the modern era,
/// and the settings do not fix the era.
fn may_support_legacy(modern: &UpstreamState) -> bool {
    let is_modern = || modern.live.load().as_ref().is_some_and(|live| live.is_modern());
    modern.settings.era.is_none() && modern.dedicated_client.is_none() && is_modern()
}
