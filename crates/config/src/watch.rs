//! Tells when a file of the configuration has changed, or somebody sent SIGHUP. What to do about it is up to whoever
//! asked.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::Config;
use super::files::{FileSnapshot, FileStamp};

/// A change counts once the file has stayed the same from one look to the next: twice this is the longest wait.
const EVERY: Duration = Duration::from_millis(500);

/// Why the configuration should be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigChange {
    File(PathBuf),
    Sighup,
}

#[derive(Debug)]
pub struct ConfigWatcher {
    files: Vec<FileSnapshot>,
    /// What the files looked like when last looked at.
    latest: Vec<FileStamp>,
    ticks: Interval,
    sighup: Signal,
}

impl ConfigWatcher {
    /// From now on SIGHUP no longer ends this process.
    pub fn new(config: &Config) -> io::Result<Self> {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let hang_up = signal(SignalKind::hangup())?;
        Ok(Self { files: config.files.clone(), latest: stamps(&config.files), ticks, sighup: hang_up })
    }

    /// Waits for the next change. Dropping it half-way loses nothing.
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

    /// Watches the files of a configuration that was read since, instead of the ones before.
    pub fn set_config(&mut self, config: &Config) {
        self.latest = stamps(&config.files);
        self.files = config.files.clone();
    }

    /// The first file that has changed and settled; it is reported once, even if nobody reads it again.
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
