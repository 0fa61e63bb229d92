//! Ctrl-C and SIGTERM: the first lets calls in flight finish, the second ends at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Runs `work` until it is done. The first signal cancels `stop`; `None` means that a second one came.
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
