//! What does not go one way: a request has no `readOnly` properties, an answer no `writeOnly` ones. A property may be
//! described in one branch of a composition and be required in another, so the names are gathered for all of a value.

use std::collections::HashSet;
use std::rc::Rc;

use super::interner::SchemaId;
use super::keyword_view::KeywordView;
use super::location::SpecPath;
use super::schema::{SchemaConverter, SchemaDirection};
use super::schema_node::SchemaNode;
use crate::document::{SpecNode, SpecObject};

/// Definitions that are written out where they stand, one inside the other, to leave out what they require.
const MOST_WRITTEN_OUT: usize = 8;

/// What a schema says about its value, all its branches included, but without what it refers to.
#[derive(Debug, Default)]
pub(super) struct HiddenProperties<'d> {
    hidden: Vec<&'d str>,
    required: Vec<&'d str>,
    /// The definitions that it refers to for the same value.
    further: Vec<SchemaId>,
}

impl<'d> SchemaConverter<'d> {
    /// Whether a property does not belong into what goes this way.
    pub(super) fn is_hidden(&mut self, value: &SpecNode, part: usize, direction: SchemaDirection) -> bool {
        let flag = match direction {
            SchemaDirection::Input => "readOnly",
            SchemaDirection::Output => "writeOnly",
        };
        let says = |value: &SpecNode| value.get(flag) == Some(&SpecNode::Bool(true));
        if says(value) {
            return true;
        }
        let Some(reference) = value.get("$ref").and_then(SpecNode::as_str) else { return false };
        let Ok(key) = self.interner.look_up(self.document, part, reference) else { return false };
        self.interner.value(key).is_some_and(says)
    }

    /// Does some work on a schema while it is known which properties of its value are hidden, wherever in its branches that
    /// is said.
    pub(super) fn with_hidden_properties<T>(
        &mut self,
        source: KeywordView<'d>,
        part: usize,
        direction: SchemaDirection,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        if !["$ref", "allOf", "anyOf", "oneOf", "if"].iter().any(|key| source.contains_key(key)) {
            return work(self);
        }
        let mut said = HiddenProperties::default();
        self.collect_hidden_properties(source, part, direction, &mut said);
        let names = self.hidden_names(&said, direction);
        if names.is_empty() {
            return work(self);
        }
        let before = self.hidden.clone();
        self.hidden.extend(names);
        let done = work(self);
        self.hidden = before;
        done
    }

    /// A definition as it is for a value of which more is hidden than the definition knows, if it requires some of that, or
    /// that has files among its members: it cannot be referred to then, since it is as it is for everybody else.
    pub(super) fn inline_definition(
        &mut self,
        key: SchemaId,
        at: &SpecPath<'_>,
        direction: SchemaDirection,
    ) -> Option<SchemaNode<'d>> {
        let most = self.inlined.len() >= MOST_WRITTEN_OUT || self.inlined.contains(&key);
        let hides =
            |schemas: &mut Self| !schemas.hidden.is_empty() && schemas.requires_hidden(key, direction);
        if most || !(self.parts || hides(self)) {
            return None;
        }
        let target = self.interner.target(key)?.clone();
        let value = self.interner.value(key)?;
        self.inlined.push(key);
        let converted = self.convert_schema(value, &SpecPath::from_target(&target).nested_in(at), direction);
        self.inlined.pop();
        Some(converted)
    }

    fn requires_hidden(&mut self, key: SchemaId, direction: SchemaDirection) -> bool {
        let all = self.reachable_hidden_properties(vec![key], direction);
        let known: HashSet<&str> = all.iter().flat_map(|said| &said.hidden).copied().collect();
        let mut required = all.iter().flat_map(|said| &said.required);
        required.any(|name| self.hidden.contains(name) && !known.contains(name))
    }

    fn hidden_names(&mut self, first: &HiddenProperties<'d>, direction: SchemaDirection) -> HashSet<&'d str> {
        let further = self.reachable_hidden_properties(first.further.clone(), direction);
        let all = first.hidden.iter().chain(further.iter().flat_map(|said| &said.hidden));
        all.copied().collect()
    }

    /// What definitions say, and those that they refer to for the same value.
    fn reachable_hidden_properties(
        &mut self,
        from: Vec<SchemaId>,
        direction: SchemaDirection,
    ) -> Vec<Rc<HiddenProperties<'d>>> {
        let mut waiting = from;
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        while let Some(key) = waiting.pop() {
            if seen.insert(key) {
                let said = self.hidden_properties(key, direction);
                waiting.extend(&said.further);
                all.push(said);
            }
        }
        all
    }

    fn hidden_properties(&mut self, key: SchemaId, direction: SchemaDirection) -> Rc<HiddenProperties<'d>> {
        if let Some(known) = self.hidden_cache.get(&(key, direction)) {
            return Rc::clone(known);
        }
        let mut said = HiddenProperties::default();
        if let Some(SpecNode::Object(source)) = self.interner.value(key) {
            self.collect_hidden_properties(
                KeywordView::all(source),
                self.interner.part(key),
                direction,
                &mut said,
            );
        }
        let said = Rc::new(said);
        self.hidden_cache.insert((key, direction), Rc::clone(&said));
        said
    }

    fn collect_hidden_properties(
        &mut self,
        source: KeywordView<'d>,
        part: usize,
        direction: SchemaDirection,
        said: &mut HiddenProperties<'d>,
    ) {
        let properties = source.get("properties").and_then(SpecNode::as_object);
        for (name, property) in properties.into_iter().flat_map(SpecObject::iter) {
            if self.is_hidden(property, part, direction) {
                said.hidden.push(name);
            }
        }
        let required = source.get("required").and_then(SpecNode::as_array).into_iter().flatten();
        said.required.extend(required.filter_map(SpecNode::as_str));
        if let Some(reference) = source.get("$ref").and_then(SpecNode::as_str)
            && let Ok(key) = self.interner.look_up(self.document, part, reference)
        {
            said.further.push(key);
        }
        let lists = ["allOf", "anyOf", "oneOf"];
        let lists = lists.iter().filter_map(|key| source.get(key).and_then(SpecNode::as_array)).flatten();
        let ones = ["then", "else"].iter().filter_map(|key| source.get(key));
        for branch in lists.chain(ones).filter_map(SpecNode::as_object) {
            self.collect_hidden_properties(KeywordView::all(branch), part, direction, said);
        }
    }
}
