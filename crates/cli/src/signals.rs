//! Ctrl-C and SIGTERM: the first signal lets calls in flight finish, the second ends the process
//! immediately.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Runs `work` to completion. The first signal cancels `stop`. Returns `None` after a second
/// signal.
pub(crate) async fn until_stopped<T>(
    stop: CancellationToken,
    work: impl Future<Output = T>,
) -> anyhow::Result<Option<T>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok(Some(done)),
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if stop.is_cancelled() {
            return Ok(None);
        }
        stop.cancel();
    }
}
