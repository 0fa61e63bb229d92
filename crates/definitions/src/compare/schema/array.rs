//! Compares the items of arrays: by position, and the rest.

use super::kinds::Kinds;
use super::node::Node;
use super::{Comparison, SchemaChange};

impl<'a> Comparison<'a, '_> {
    pub(super) fn compare_arrays(
        &mut self,
        old: &Node<'a>,
        new: &Node<'a>,
        shared: Kinds,
        changes: &mut Vec<SchemaChange<'a>>,
    ) {
        if !shared.intersects(Kinds::ARRAY) {
            return;
        }
        let positions = old.prefix_length().max(new.prefix_length());
        for position in (0..positions).map(Some).chain([None]) {
            let (before, after) = (old.item(position), new.item(position));
            if !before.is_empty() || !after.is_empty() {
                self.compare_lists(before, after, &format!("{}/items", new.pointer), changes);
            }
        }
    }
}
