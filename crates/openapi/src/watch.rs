//! Keeps a source in sync with its document: loads it, watches it, and loads it again when it
//! changes. A version that cannot be loaded only changes the status.

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

/// Polling interval for files. A change takes effect once a file is unchanged between two polls.
const LOOK: Duration = Duration::from_millis(500);
/// Initial and maximum delay before a document that could not be fetched is requested again.
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
    /// Loads and serves the document. Returns the file versions from just before it was read.
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
                // Logged at load time, so that the operator sees it before the first call fails.
                for warning in new.warnings.iter().filter(|warning| warning.starts_with(UNCALLABLE)) {
                    tracing::warn!(source = %self.inner.settings.name, %warning, "problem in an OpenAPI document");
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

    /// Reports a failure. The served version stays available.
    fn report_failure(&self, why: String) {
        let name = &self.inner.settings.name;
        tracing::warn!(source = %name, error = why, "cannot load an OpenAPI document");
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

    /// Waits until the document should be read again.
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
            // A text never changes.
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

const LOOK_AT_IT: &str = "check that `openapi` names the right document, and run `toolyard openapi DOCUMENT` to see what is wrong with it";

/// Prefix of the warning that is shown while the previous version is served.
const OLD: &str = "serving the previous version because the new one cannot be loaded";
