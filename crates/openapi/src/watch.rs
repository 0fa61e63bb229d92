//! Keeps a source in step with its document: reads it, watches it, and reads it again when it has changed. A version
//! that cannot be used changes nothing but the status.

mod file_versions;
mod load;
mod offer;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use toolyard_hub::{SourceState, SourceStatus};

use crate::document::DocumentLocation;
use crate::source::OpenApiState;
use file_versions::FileVersions;
use load::{DocumentLoader, LoadOutcome};
use offer::UNCALLABLE;

/// How often files are looked at. A change counts once a file has stayed the same from one look to the next.
const LOOK: Duration = Duration::from_millis(500);
/// The first and the longest wait before a document that could not be had is asked for again.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

pub(crate) async fn watch_document(inner: Arc<OpenApiState>, stop: CancellationToken) {
    let following = async {
        let mut follower = DocumentWatcher { loader: DocumentLoader::default(), failures: 0, inner };
        loop {
            let before = follower.file_versions();
            let stamps = follower.read().await;
            follower.wait(stamps.unwrap_or(before)).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = following => {}
    }
}

struct DocumentWatcher {
    inner: Arc<OpenApiState>,
    loader: DocumentLoader,
    failures: u32,
}

impl DocumentWatcher {
    /// Reads the document and serves it; gives back what its files looked like just before.
    async fn read(&mut self) -> Option<FileVersions> {
        let brought = self.loader.load(&self.inner).await;
        match brought {
            Ok(LoadOutcome::Unchanged) => {
                self.failures = 0;
                self.clear_failure();
                None
            }
            Ok(LoadOutcome::New(new)) => {
                self.failures = 0;
                // Told now, not only to whoever calls the first of them.
                for warning in new.warnings.iter().filter(|warning| warning.starts_with(UNCALLABLE)) {
                    tracing::warn!(source = %self.inner.settings.name, "{warning}");
                }
                let ready =
                    SourceStatus { warnings: new.warnings, ..SourceStatus::new(SourceState::Ready, true) };
                self.inner.serve(new.served, new.offer);
                self.inner.set_status(ready);
                Some(new.file_versions)
            }
            Err(why) => {
                self.failures = self.failures.saturating_add(1);
                self.report_failure(why);
                None
            }
        }
    }

    /// What is served stays served; what could not be had is told.
    fn report_failure(&self, why: String) {
        let name = &self.inner.settings.name;
        tracing::warn!(source = %name, why, "the document cannot be used");
        if self.inner.is_serving() {
            let mut status = self.inner.status();
            status.warnings.retain(|warning| !warning.starts_with(OLD));
            status.warnings.insert(0, format!("{OLD}: {why}"));
            self.inner.set_status(status);
            return;
        }
        let retry_at = Instant::now() + self.next_delay();
        let failed = SourceStatus {
            reason: Some(why),
            suggestion: Some(LOOK_AT_IT.to_owned()),
            retry_at: Some(retry_at),
            ..SourceStatus::new(SourceState::Retrying, true)
        };
        self.inner.set_status(failed);
    }

    fn clear_failure(&self) {
        let mut status = self.inner.status();
        let before = status.warnings.len();
        status.warnings.retain(|warning| !warning.starts_with(OLD));
        if status.warnings.len() != before {
            self.inner.set_status(status);
        }
    }

    /// Until the document should be read again.
    async fn wait(&self, seen: FileVersions) {
        match &self.inner.settings.location {
            DocumentLocation::File(_) => {
                let mut latest = seen.clone();
                loop {
                    sleep(LOOK).await;
                    let now = seen.reread();
                    let settled = now == latest;
                    latest = now;
                    if settled && latest != seen {
                        return;
                    }
                }
            }
            DocumentLocation::Url(_) => sleep(self.next_delay()).await,
            // A text does not change.
            DocumentLocation::Text { .. } => std::future::pending().await,
        }
    }

    fn next_delay(&self) -> Duration {
        match (self.failures, &self.inner.settings.location) {
            (0, _) => self.inner.settings.reload_every,
            (_, DocumentLocation::File(_)) => LOOK,
            (failures, _) => FIRST_WAIT.saturating_mul(1 << (failures - 1).min(6)).min(LONGEST_WAIT),
        }
    }

    fn file_versions(&self) -> FileVersions {
        match &self.inner.settings.location {
            DocumentLocation::File(path) => FileVersions::read(std::slice::from_ref(path)),
            DocumentLocation::Url(_) | DocumentLocation::Text { .. } => FileVersions::default(),
        }
    }
}

const LOOK_AT_IT: &str = "see whether `openapi` names the right document; `toolyard openapi DOCUMENT` shows what is wrong with one";

/// How the warning begins that is shown while an older version is served.
const OLD: &str = "an older version is served, because the new one cannot be used";
