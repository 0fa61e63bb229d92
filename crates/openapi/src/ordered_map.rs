//! A map from names to values in document order. Most maps of a document have a handful of names,
//! and most lookups are for names that they do not have. A linear search is faster than hashing for
//! those and needs less memory. Names are untrusted, so large maps have a hash table.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use serde::ser::{Serialize, Serializer};

/// Maps with up to this many names are searched linearly.
const FEW: usize = 16;

#[derive(Debug, Clone)]
pub(crate) struct OrderedMap<K, V> {
    entries: Vec<(K, V)>,
    /// The index of each name in a large map.
    #[expect(clippy::box_collection, reason = "most maps have none, and there are very many maps")]
    positions: Option<Box<HashMap<K, usize>>>,
}

impl<K, V> Default for OrderedMap<K, V> {
    fn default() -> Self {
        Self { entries: Vec::new(), positions: None }
    }
}

impl<K: Borrow<str> + Clone + Eq + Hash, V> OrderedMap<K, V> {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&V> {
        self.entries.get(self.position(name)?).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        let place = self.position(name)?;
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    pub(crate) fn contains_key(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.entries.iter().map(|(name, value)| (name.borrow(), value))
    }

    /// Like `iter`, with the names as they are stored.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(name, value)| (name, value))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.borrow())
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// Inserts a value. Replaces and returns the previous value of the name.
    pub(crate) fn insert(&mut self, name: K, value: V) -> Option<V> {
        if let Some(there) = self.get_mut(name.borrow()) {
            return Some(std::mem::replace(there, value));
        }
        if let Some(places) = &mut self.positions {
            places.insert(name.clone(), self.entries.len());
        }
        self.entries.push((name, value));
        if self.positions.is_none() && self.entries.len() > FEW {
            self.index_entries();
        }
        None
    }

    /// Removes a value. The values after it move up.
    pub(crate) fn remove(&mut self, name: &str) -> Option<V> {
        let (_, value) = self.entries.remove(self.position(name)?);
        if self.positions.is_some() {
            self.index_entries();
        }
        Some(value)
    }

    /// Removes a value and moves the last one to its position, which takes constant time in a large
    /// map.
    pub(crate) fn swap_remove(&mut self, name: &str) -> Option<V> {
        let place = self.position(name)?;
        let (_, value) = self.entries.swap_remove(place);
        if let Some(places) = &mut self.positions {
            places.remove(name);
            if let Some((moved, _)) = self.entries.get(place) {
                places.insert(moved.clone(), place);
            }
        }
        Some(value)
    }

    fn position(&self, name: &str) -> Option<usize> {
        match &self.positions {
            None => self.entries.iter().position(|(known, _)| known.borrow() == name),
            Some(places) => places.get(name).copied(),
        }
    }

    fn index_entries(&mut self) {
        let places = self.entries.iter().enumerate().map(|(place, (name, _))| (name.clone(), place));
        self.positions = Some(Box::new(places.collect()));
    }
}

/// Order does not matter, as in JSON objects.
impl<K: Borrow<str> + Clone + Eq + Hash, V: PartialEq> PartialEq for OrderedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.iter().all(|(name, value)| other.get(name).is_some_and(|same| same == value))
    }
}

impl<K, V> IntoIterator for OrderedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<K: Borrow<str> + Clone + Eq + Hash, V> FromIterator<(K, V)> for OrderedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        for (name, value) in entries {
            map.insert(name, value);
        }
        map
    }
}

impl<K: Serialize, V: Serialize> Serialize for OrderedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.entries.iter().map(|(name, value)| (name, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW, OrderedMap};

    fn numbered(many: usize) -> OrderedMap<Box<str>, usize> {
        (0..many).map(|n| (format!("n{n}").into(), n)).collect()
    }

    #[test]
    fn names_are_found_however_many_there_are() {
        for many in [1, FEW, FEW + 1, 10 * FEW] {
            let mut map = numbered(many);
            assert!((0..many).all(|n| map.get(&format!("n{n}")) == Some(&n)), "{many}");
            assert_eq!(map.get("n"), None);
            assert_eq!(map.insert("n0".into(), 7), Some(0));
            assert_eq!((map.get("n0"), map.len()), (Some(&7), many));
        }
    }

    #[test]
    fn what_is_taken_out_is_gone_and_the_rest_is_found() {
        for many in [3, FEW + 1, FEW + 2, 10 * FEW] {
            let mut map = numbered(many);
            assert_eq!((map.remove("n1"), map.remove("n1")), (Some(1), None));
            assert_eq!(map.keys().take(2).collect::<Vec<_>>(), ["n0", "n2"]);
            let mut map = numbered(many);
            assert_eq!((map.swap_remove("n0"), map.swap_remove("n0")), (Some(0), None));
            assert_eq!(map.values().next(), Some(&(many - 1)));
            assert!((1..many).all(|n| map.get(&format!("n{n}")) == Some(&n)), "{many}");
        }
    }

    #[test]
    fn the_order_does_not_count_in_a_comparison() {
        let backwards = (0..40).rev().map(|n| (format!("n{n}").into(), n)).collect();
        assert_eq!(numbered(40), backwards);
        assert_ne!(numbered(40), numbered(39));
    }
}
