//! A temporary directory for one test, and the trace files that tools leave in it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::within_timeout;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A directory that is deleted when this value is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        let name = format!("toolyard-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Returns a name under which `wait_until_cancelled` leaves its trace files.
    pub fn traces(&self, name: &str) -> Traces {
        Traces(self.path(name))
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Leftovers are in the directory for temporary files anyway.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The trace files of one call of `wait_until_cancelled`.
pub struct Traces(PathBuf);

impl Traces {
    /// Returns the arguments to call the tool with.
    pub fn arguments(&self) -> serde_json::Value {
        serde_json::json!({"file": self.0})
    }

    pub async fn wait_started(&self) {
        within_timeout("the call to begin", wait_for_file(&self.0.with_extension("started"))).await;
    }

    pub async fn wait_cancelled(&self) {
        within_timeout("the call to be cancelled", wait_for_file(&self.0.with_extension("cancelled"))).await;
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.with_extension("cancelled").exists()
    }
}

/// Polls, because another process writes the file.
async fn wait_for_file(path: &Path) {
    while !path.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
