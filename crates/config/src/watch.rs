//! Reports changes to configuration files, and SIGHUP. The caller decides what to do about them.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::Config;
use super::files::{FileSnapshot, FileStamp};

/// Polling interval. A change is reported once the file is the same in two consecutive polls, so
/// the maximum delay is twice this interval.
const EVERY: Duration = Duration::from_millis(500);

/// Why the configuration should be loaded again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigChange {
    File(PathBuf),
    Sighup,
}

/// Watches the files of a configuration.
#[derive(Debug)]
pub struct ConfigWatcher {
    files: Vec<FileSnapshot>,
    /// State of the files at the last poll.
    latest: Vec<FileStamp>,
    ticks: Interval,
    sighup: Signal,
}

impl ConfigWatcher {
    /// Starts watching. From now on, SIGHUP no longer terminates the process.
    pub fn new(config: &Config) -> io::Result<Self> {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let hang_up = signal(SignalKind::hangup())?;
        Ok(Self { files: config.files.clone(), latest: stamps(&config.files), ticks, sighup: hang_up })
    }

    /// Waits for the next change. Cancel safe.
    pub async fn changed(&mut self) -> ConfigChange {
        loop {
            tokio::select! {
                Some(()) = self.sighup.recv() => return ConfigChange::Sighup,
                _ = self.ticks.tick() => {}
            }
            if let Some(path) = self.poll_files() {
                return ConfigChange::File(path);
            }
        }
    }

    /// Watches the files of a newly loaded configuration instead of the previous ones.
    pub fn set_config(&mut self, config: &Config) {
        self.latest = stamps(&config.files);
        self.files = config.files.clone();
    }

    /// Returns the first file that changed and has settled. Each change is reported once, even if
    /// the configuration is not loaded again.
    fn poll_files(&mut self) -> Option<PathBuf> {
        let now = stamps(&self.files);
        let before = std::mem::replace(&mut self.latest, now);
        let settled = self.latest == before;
        let changed = |(file, now): &(&FileSnapshot, &FileStamp)| file.stamp != **now;
        let (file, _) = self.files.iter().zip(&self.latest).find(changed).filter(|_| settled)?;
        let path = file.path.clone();
        for (file, now) in self.files.iter_mut().zip(&self.latest) {
            file.stamp = *now;
        }
        Some(path)
    }
}

fn stamps(files: &[FileSnapshot]) -> Vec<FileStamp> {
    files.iter().map(|file| FileStamp::read(&file.path)).collect()
}
