//! Handing over to the other replicas before this one stops: sessions move as soon as they are idle,
//! and servers that run on one replica only as soon as their calls have ended.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::ReplicaRouter;
use crate::fronts::Fronts;

/// The interval between two searches for idle sessions.
const SEARCH: Duration = Duration::from_millis(50);
/// How long the other replicas may take to notice that this one is draining. They notice it at their
/// next beat, which is sent every second.
const UNNOTICED: Duration = Duration::from_millis(1_500);
/// How long a request can be on its way after its session was given up.
const IN_TRANSIT: Duration = Duration::from_millis(200);

impl ReplicaRouter {
    /// Gives up servers, and sessions as they become idle. Waits until none are left and no call is
    /// parked, up to `longest`. Requests are still accepted meanwhile.
    pub(crate) async fn drain(&self, fronts: &Arc<Fronts>, longest: Duration) {
        let until = Instant::now() + longest;
        self.replicas.start_draining().await;
        tokio::join!(self.hand_over_sessions(fronts, until), self.placed.hand_over(until));
    }

    /// Also waits until no other replica forwards requests to this one. A request that is sent
    /// while its connection is being closed fails, and might have been executed.
    async fn hand_over_sessions(&self, fronts: &Arc<Fronts>, until: Instant) {
        let mut quiet_at = Instant::now() + UNNOTICED;
        loop {
            let has_successor = self.other_replica().is_some();
            let mut left = fronts.parked_calls();
            for sessions in fronts.sessions() {
                for (_, session) in sessions.all() {
                    // Without another replica, sessions stay until the end.
                    if has_successor && sessions.close_unless_busy(session.id()) {
                        // If the store is away, the session moves when this replica is gone.
                        let _ = self.replicas.release_session(session.label()).await;
                        quiet_at = quiet_at.max(Instant::now() + IN_TRANSIT);
                    } else if has_successor {
                        left += 1;
                    }
                }
            }
            let is_quiet = !has_successor || Instant::now() >= quiet_at;
            if left == 0 && is_quiet || Instant::now() >= until {
                return;
            }
            tokio::time::sleep(SEARCH).await;
        }
    }
}
