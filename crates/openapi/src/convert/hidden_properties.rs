//! Properties that are hidden in one direction: `readOnly` ones in requests, `writeOnly` ones in
//! responses. One branch of a composition may describe a property that another one requires, so the
//! names are collected for the whole value.

use std::collections::HashSet;
use std::rc::Rc;

use super::interner::SchemaId;
use super::keyword_view::KeywordView;
use super::location::SpecPath;
use super::schema::{SchemaConverter, SchemaDirection};
use super::schema_node::SchemaNode;
use crate::document::{SpecNode, SpecObject};

/// Maximum number of nested definitions that are inlined to drop required properties.
const MOST_WRITTEN_OUT: usize = 8;

/// The hidden and required properties of a schema, including its branches but not its references.
#[derive(Debug, Default)]
pub(super) struct HiddenProperties<'d> {
    hidden: Vec<&'d str>,
    required: Vec<&'d str>,
    /// The definitions that it refers to for the same value.
    further: Vec<SchemaId>,
}

impl<'d> SchemaConverter<'d> {
    /// Whether a property is hidden in this direction.
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

    /// Runs `work` with the hidden properties of the schema's value, wherever its branches describe
    /// them.
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
        let mut properties = HiddenProperties::default();
        self.collect_hidden_properties(source, part, direction, &mut properties);
        let names = self.hidden_names(&properties, direction);
        if names.is_empty() {
            return work(self);
        }
        let before = self.hidden.clone();
        self.hidden.extend(names);
        let done = work(self);
        self.hidden = before;
        done
    }

    /// Converts a definition inline instead of referring to it. This is needed if the definition
    /// requires properties that are hidden here, or if the value contains files: the shared
    /// definition has to stay valid for its other uses.
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
        let known: HashSet<&str> = all.iter().flat_map(|properties| &properties.hidden).copied().collect();
        let mut required = all.iter().flat_map(|properties| &properties.required);
        required.any(|name| self.hidden.contains(name) && !known.contains(name))
    }

    fn hidden_names(&mut self, first: &HiddenProperties<'d>, direction: SchemaDirection) -> HashSet<&'d str> {
        let further = self.reachable_hidden_properties(first.further.clone(), direction);
        let all = first.hidden.iter().chain(further.iter().flat_map(|properties| &properties.hidden));
        all.copied().collect()
    }

    /// Returns the properties of definitions and of those that they refer to for the same value.
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
                let properties = self.hidden_properties(key, direction);
                waiting.extend(&properties.further);
                all.push(properties);
            }
        }
        all
    }

    fn hidden_properties(&mut self, key: SchemaId, direction: SchemaDirection) -> Rc<HiddenProperties<'d>> {
        if let Some(known) = self.hidden_cache.get(&(key, direction)) {
            return Rc::clone(known);
        }
        let mut properties = HiddenProperties::default();
        if let Some(SpecNode::Object(source)) = self.interner.value(key) {
            self.collect_hidden_properties(
                KeywordView::all(source),
                self.interner.part(key),
                direction,
                &mut properties,
            );
        }
        let properties = Rc::new(properties);
        self.hidden_cache.insert((key, direction), Rc::clone(&properties));
        properties
    }

    fn collect_hidden_properties(
        &mut self,
        source: KeywordView<'d>,
        part: usize,
        direction: SchemaDirection,
        out: &mut HiddenProperties<'d>,
    ) {
        let properties = source.get("properties").and_then(SpecNode::as_object);
        for (name, property) in properties.into_iter().flat_map(SpecObject::iter) {
            if self.is_hidden(property, part, direction) {
                out.hidden.push(name);
            }
        }
        let required = source.get("required").and_then(SpecNode::as_array).into_iter().flatten();
        out.required.extend(required.filter_map(SpecNode::as_str));
        if let Some(reference) = source.get("$ref").and_then(SpecNode::as_str)
            && let Ok(key) = self.interner.look_up(self.document, part, reference)
        {
            out.further.push(key);
        }
        let lists = ["allOf", "anyOf", "oneOf"];
        let lists = lists.iter().filter_map(|key| source.get(key).and_then(SpecNode::as_array)).flatten();
        let ones = ["then", "else"].iter().filter_map(|key| source.get(key));
        for branch in lists.chain(ones).filter_map(SpecNode::as_object) {
            self.collect_hidden_properties(KeywordView::all(branch), part, direction, out);
        }
    }
}
