//! The resources of a server that clients of all replicas are subscribed to.

use std::collections::{BTreeSet, HashMap};

use toolyard_hub::ReplicaId;

#[derive(Debug, Default)]
pub(super) struct WatchedResources {
    local: BTreeSet<String>,
    followers: HashMap<ReplicaId, FollowedResources>,
    last_number: u64,
}

/// The resources of one replica, as long as its stream with this number is open.
#[derive(Debug)]
struct FollowedResources {
    number: u64,
    uris: BTreeSet<String>,
}

impl WatchedResources {
    pub(super) fn local(&self) -> &BTreeSet<String> {
        &self.local
    }

    pub(super) fn uris_of(&self, replica: &ReplicaId) -> BTreeSet<String> {
        self.followers.get(replica).map(|followed| followed.uris.clone()).unwrap_or_default()
    }

    pub(super) fn all(&self) -> BTreeSet<String> {
        let followed = self.followers.values().flat_map(|followed| &followed.uris);
        self.local.iter().chain(followed).cloned().collect()
    }

    pub(super) fn add(&mut self, uri: &str) {
        self.local.insert(uri.to_owned());
    }

    pub(super) fn remove(&mut self, uri: &str) {
        self.local.remove(uri);
    }

    /// Adds a replica, or replaces its earlier stream. Returns the number of the stream.
    pub(super) fn add_follower(&mut self, replica: &ReplicaId, uris: BTreeSet<String>) -> u64 {
        self.last_number += 1;
        self.followers.insert(replica.clone(), FollowedResources { number: self.last_number, uris });
        self.last_number
    }

    pub(super) fn replace(&mut self, replica: &ReplicaId, uris: BTreeSet<String>) {
        if let Some(followed) = self.followers.get_mut(replica) {
            followed.uris = uris;
        }
    }

    /// Removes a replica unless it has opened another stream.
    pub(super) fn remove_follower(&mut self, replica: &ReplicaId, number: u64) {
        if self.followers.get(replica).is_some_and(|followed| followed.number == number) {
            self.followers.remove(replica);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use toolyard_hub::ReplicaId;

    use super::WatchedResources;

    #[test]
    fn a_resource_is_watched_as_long_as_one_replica_is_subscribed() {
        let uris = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let (b, c) = (ReplicaId::new("b"), ReplicaId::new("c"));
        let mut watches = WatchedResources::default();
        watches.add("x");
        let old = watches.add_follower(&b, uris(&["x", "y"]));
        let new = watches.add_follower(&b, uris(&["x", "z"]));
        watches.remove_follower(&b, old);
        assert_eq!(watches.all(), uris(&["x", "z"]), "the older stream of a replica ends later");
        watches.add_follower(&c, uris(&["z"]));
        watches.replace(&c, uris(&["w"]));
        watches.replace(&ReplicaId::new("unknown"), uris(&["u"]));
        watches.remove("x");
        watches.remove_follower(&b, new);
        assert_eq!((watches.all(), watches.uris_of(&c)), (uris(&["w"]), uris(&["w"])));
        assert!(watches.local().is_empty());
    }
}
