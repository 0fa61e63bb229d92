//! Resource subscriptions, counted by source and URI. A source watches a resource only while there
//! is a subscriber.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Weak};

use crate::name::SourceName;
use crate::principal::Principal;
use crate::scope::YardScope;
use crate::yard::Yard;
use parking_lot::{Mutex, MutexGuard};

/// Number of subscriptions per URI of each source.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionCounts {
    counts: Mutex<HashMap<SourceName, HashMap<Arc<str>, usize>>>,
}

impl SubscriptionCounts {
    fn lock(&self) -> MutexGuard<'_, HashMap<SourceName, HashMap<Arc<str>, usize>>> {
        self.counts.lock()
    }
}

/// A subscription to updates of a resource. It ends when dropped; the source stops watching when
/// the last one ends.
#[derive(Debug)]
pub struct ResourceSubscription {
    yard: Weak<Yard>,
    source: SourceName,
    uri: Arc<str>,
}

impl ResourceSubscription {
    /// Returns whether the subscription is for this URI of this source.
    pub fn is_for(&self, source: &SourceName, uri: &str) -> bool {
        self.source == *source && &*self.uri == uri
    }
}

impl Drop for ResourceSubscription {
    fn drop(&mut self) {
        if let Some(yard) = self.yard.upgrade() {
            yard.unsubscribe(&self.source, &self.uri);
        }
    }
}

impl Yard {
    /// Subscribes to the resource with this URI, if it is visible to the principal.
    pub fn subscribe(
        self: &Arc<Self>,
        principal: &Principal,
        reach: &YardScope,
        uri: &str,
    ) -> Option<ResourceSubscription> {
        let visibility = self.visibility(principal);
        let source = visibility.source_for_uri(uri, reach)?.clone();
        let uri: Arc<str> = uri.into();
        // Called under the lock, so that the source sees starts and ends in the order of the
        // counts.
        let mut held = self.subscriptions.lock();
        let count = held.entry(source.clone()).or_default().entry(Arc::clone(&uri)).or_default();
        *count += 1;
        if *count == 1
            && let Some(known) = self.source(&source)
        {
            known.watch(&uri);
        }
        drop(held);
        Some(ResourceSubscription { yard: Arc::downgrade(self), source, uri })
    }

    /// Returns the number of subscribed URIs of all sources.
    pub fn subscribed_uri_count(&self) -> usize {
        self.subscriptions.lock().values().map(HashMap::len).sum()
    }

    /// Forwards the existing subscriptions to a source that replaced another.
    pub(crate) fn resubscribe(&self, name: &SourceName) {
        let held = self.subscriptions.lock();
        if let (Some(addresses), Some(source)) = (held.get(name), self.source(name)) {
            addresses.keys().for_each(|uri| source.watch(uri));
        }
    }

    fn unsubscribe(&self, source: &SourceName, uri: &Arc<str>) {
        let mut held = self.subscriptions.lock();
        let Some(addresses) = held.get_mut(source) else { return };
        let Entry::Occupied(mut count) = addresses.entry(Arc::clone(uri)) else { return };
        *count.get_mut() -= 1;
        if *count.get() > 0 {
            return;
        }
        count.remove();
        if addresses.is_empty() {
            held.remove(source);
        }
        if let Some(known) = self.source(source) {
            known.unwatch(uri);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::fake::{ScriptedSource, principal_with, templates, yard};
    use crate::glob::Glob;
    use crate::principal::{AllowList, Principal};
    use crate::scope::YardScope;
    use crate::source::Source;

    #[test]
    fn a_source_watches_from_the_first_subscription_to_the_last() {
        let db = ScriptedSource::echo("db", templates(&["db://{id}"]));
        let yard = yard(&[&db]);
        let subscribe = |uri: &str| yard.subscribe(&Principal::owner(), &YardScope::All, uri).unwrap();
        let (one, two, other) = (subscribe("db://1"), subscribe("db://1"), subscribe("db://2"));
        assert_eq!(db.take_watch_log(), ["+db://1", "+db://2"]);
        drop(one);
        assert_eq!((db.take_watch_log(), yard.subscribed_uri_count()), (vec![], 2));
        drop((two, other));
        assert_eq!(db.take_watch_log(), ["-db://1", "-db://2"]);
        assert_eq!(yard.subscribed_uri_count(), 0);
    }

    #[test]
    fn twenty_thousand_subscriptions_leave_nothing_behind() {
        let db = ScriptedSource::echo("db", templates(&["db://{id}"]));
        let yard = yard(&[&db]);
        for number in 0..20_000 {
            let uri = format!("db://{number}");
            drop(yard.subscribe(&Principal::owner(), &YardScope::All, &uri).unwrap());
        }
        assert_eq!((db.take_watch_log().len(), yard.subscribed_uri_count()), (40_000, 0));
        assert!(yard.subscriptions.lock().is_empty());
    }

    #[test]
    fn a_replacement_source_watches_the_same_resources() {
        let before = ScriptedSource::echo("db", templates(&["db://{id}"]));
        let yard = yard(&[&before]);
        let held = yard.subscribe(&Principal::owner(), &YardScope::All, "db://1").unwrap();
        let after = ScriptedSource::echo("db", templates(&["db://{id}"]));
        yard.add(Arc::clone(&after) as Arc<dyn Source>);
        drop(held);
        assert_eq!(after.take_watch_log(), ["+db://1", "-db://1"]);
        // The subscription survives a removed source, and a source that outlives the yard is not
        // called.
        let held = yard.subscribe(&Principal::owner(), &YardScope::All, "db://2").unwrap();
        yard.remove(after.name());
        drop(yard);
        drop(held);
    }

    #[test]
    fn subscribing_requires_that_the_resource_is_visible() {
        let mut offer = templates(&["db://{id}"]);
        offer.templates[0].permissions = vec!["read".to_owned()];
        let db = ScriptedSource::echo("db", offer);
        let yard = yard(&[&db]);
        let lists = |sources: &[&str], tools: Option<Vec<Glob>>| AllowList {
            sources: Some(sources.iter().copied().map(Glob::from).collect()),
            tools,
        };
        let tools_only = AllowList { sources: None, tools: Some(vec!["*".into()]) };
        for (principal, expect) in [
            (principal_with(&[]), false),
            (principal_with(&["read"]), true),
            (principal_with(&["read"]).with_allow_list(lists(&["db"], None)), true),
            (principal_with(&["read"]).with_allow_list(lists(&["other"], None)), false),
            (principal_with(&["read"]).with_allow_list(tools_only), false),
        ] {
            assert_eq!(
                yard.subscribe(&principal, &YardScope::All, "db://1").is_some(),
                expect,
                "{principal:?}"
            );
        }
        assert_eq!(yard.subscribed_uri_count(), 0);
    }
}
