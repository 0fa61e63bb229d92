//! Compares the servers of two configurations, so that a reload restarts only those that changed.

use toolyard_hub::SourceName;

use super::{Config, ServerEntry};

/// The servers that differ between two configurations.
#[derive(Debug, Default, PartialEq)]
pub struct ConfigDiff<'a> {
    pub added: Vec<&'a ServerEntry>,
    pub removed: Vec<&'a SourceName>,
    /// The new entries.
    pub changed: Vec<&'a ServerEntry>,
}

/// Compares the servers of two configurations by name and settings.
pub fn diff<'a>(old: &'a Config, new: &'a Config) -> ConfigDiff<'a> {
    let mut diff = ConfigDiff::default();
    for entry in new.servers() {
        match find_server(old, entry.name()) {
            None => diff.added.push(entry),
            Some(before) if before.is_equivalent(entry) => {}
            Some(_) => diff.changed.push(entry),
        }
    }
    let gone = |entry: &&ServerEntry| find_server(new, entry.name()).is_none();
    diff.removed = old.servers().iter().filter(gone).map(ServerEntry::name).collect();
    diff
}

fn find_server<'a>(config: &'a Config, name: &SourceName) -> Option<&'a ServerEntry> {
    config.servers().iter().find(|entry| entry.name() == name)
}

impl ServerEntry {
    /// Whether both entries behave the same. An error that moved to another line is not a change.
    fn is_equivalent(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ready(one), Self::Ready(other)) => one == other,
            (Self::Document(one), Self::Document(other)) => one == other,
            (Self::Broken(one), Self::Broken(other)) => {
                one.enabled == other.enabled
                    && one.permissions == other.permissions
                    && one.reason() == other.reason()
            }
            _ => false,
        }
    }
}
