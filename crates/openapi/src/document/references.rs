//! Resolves a `$ref`: to a location in the same file, in another file, or to a schema that declares
//! the name itself.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use percent_encoding::percent_decode_str;

use super::SpecFile;
use super::node::SpecNode;

/// A location in one of the files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ReferenceTarget {
    pub(crate) part: usize,
    /// A JSON pointer, with only the escapes of JSON pointers.
    pub(crate) pointer: String,
}

/// The identifiers by which files refer to each other.
#[derive(Debug, Default)]
pub(crate) struct FileLinks {
    links: HashMap<(usize, String), FileLink>,
    ids: HashMap<String, ReferenceTarget>,
    anchors: HashMap<(usize, String), String>,
}

#[derive(Debug)]
pub(super) enum FileLink {
    Part(usize),
    Missing(String),
}

impl FileLinks {
    pub(super) fn link(&mut self, from: usize, name: String, link: FileLink) {
        self.links.insert((from, name), link);
    }

    pub(super) fn is_id(&self, name: &str) -> bool {
        self.ids.contains_key(name)
    }
}

/// Resolves references.
#[derive(Debug)]
pub(crate) struct ReferenceIndex {
    addresses: FileLinks,
}

impl ReferenceIndex {
    pub(super) fn new(addresses: FileLinks) -> Self {
        Self { addresses }
    }

    /// Returns the location that a reference in `part` resolves to, or why it does not resolve.
    pub(crate) fn find(
        &self,
        parts: &[SpecFile],
        from: usize,
        reference: &str,
    ) -> Result<ReferenceTarget, String> {
        let (name, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let (part, below) = if name.is_empty() {
            (from, String::new())
        } else if let Some(target) = self.addresses.ids.get(name) {
            (target.part, target.pointer.clone())
        } else {
            match self.addresses.links.get(&(from, name.to_owned())) {
                Some(FileLink::Part(part)) => (*part, String::new()),
                Some(FileLink::Missing(reason)) => {
                    return find_by_name(parts, from, reference).ok_or_else(|| reason.clone());
                }
                None => {
                    return find_by_name(parts, from, reference)
                        .ok_or_else(|| "no schema declares this name".to_owned());
                }
            }
        };
        let Some(document) = parts.get(part).map(|part| &part.value) else {
            return Err("no schema declares this name".to_owned());
        };
        let exists = |pointer: &str| document.pointer(pointer).is_some();
        if fragment.is_empty() {
            return Ok(ReferenceTarget { part, pointer: below });
        }
        for fragment in [percent_decode(fragment), fragment.to_owned()] {
            let pointer = if fragment.starts_with('/') {
                format!("{below}{fragment}")
            } else if let Some(anchor) = self.addresses.anchors.get(&(part, fragment.clone())) {
                anchor.clone()
            } else {
                format!("{below}/{fragment}")
            };
            if exists(&pointer) {
                return Ok(ReferenceTarget { part, pointer });
            }
        }
        Err("the target does not exist".to_owned())
    }
}

/// Some documents refer to a schema by its bare name.
fn find_by_name(parts: &[SpecFile], part: usize, name: &str) -> Option<ReferenceTarget> {
    let document = &parts.get(part)?.value;
    ["/components/schemas", "/definitions"].iter().find_map(|folder| {
        let mut pointer = (*folder).to_owned();
        push_segment(&mut pointer, name);
        document.pointer(&pointer).map(|_| ReferenceTarget { part, pointer })
    })
}

/// Returns the files that a value refers to, and records the identifiers that it declares.
pub(super) fn collect_references(part: usize, value: &SpecNode, addresses: &mut FileLinks) -> Vec<String> {
    let mut names = Vec::new();
    let mut seen = HashSet::new();
    // Paths are kept separate from the values, so that a pointer is only built for a value with an
    // identifier.
    let mut ways: Vec<(PointerStep<'_>, usize)> = vec![(PointerStep::Root, 0)];
    let mut waiting = vec![(value, 0_usize)];
    while let Some((value, place)) = waiting.pop() {
        match value {
            SpecNode::Object(members) => {
                for (key, member) in members.iter() {
                    match (key, member) {
                        ("$ref" | "$dynamicRef", SpecNode::String(reference)) => {
                            let name = reference.split('#').next().unwrap_or_default();
                            if !name.is_empty() && seen.insert(name) {
                                names.push(name.to_owned());
                            }
                        }
                        ("$id" | "$self", SpecNode::String(id)) => {
                            let id = id.trim_end_matches('#').to_owned();
                            let target = ReferenceTarget { part, pointer: build_pointer(&ways, place) };
                            addresses.ids.entry(id).or_insert(target);
                        }
                        ("$anchor" | "$dynamicAnchor", SpecNode::String(anchor)) => {
                            let pointer = build_pointer(&ways, place);
                            addresses.anchors.entry((part, anchor.to_string())).or_insert(pointer);
                        }
                        (_, SpecNode::Object(_) | SpecNode::Array(_)) => {
                            ways.push((PointerStep::Key(key), place));
                            waiting.push((member, ways.len() - 1));
                        }
                        _ => {}
                    }
                }
            }
            SpecNode::Array(values) => {
                for (at, value) in values.iter().enumerate() {
                    if matches!(value, SpecNode::Object(_) | SpecNode::Array(_)) {
                        ways.push((PointerStep::At(at), place));
                        waiting.push((value, ways.len() - 1));
                    }
                }
            }
            _ => {}
        }
    }
    names
}

#[derive(Debug, Clone, Copy)]
enum PointerStep<'a> {
    Root,
    Key(&'a str),
    At(usize),
}

fn build_pointer(ways: &[(PointerStep<'_>, usize)], place: usize) -> String {
    let mut steps = Vec::new();
    let mut at = place;
    while let Some((way, parent)) = ways.get(at) {
        match way {
            PointerStep::Root => break,
            PointerStep::Key(key) => steps.push((*key).to_owned()),
            PointerStep::At(index) => steps.push(index.to_string()),
        }
        at = *parent;
    }
    let mut pointer = String::new();
    for step in steps.iter().rev() {
        push_segment(&mut pointer, step);
    }
    pointer
}

/// Appends one segment to a JSON pointer.
pub(crate) fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    if segment.contains(['~', '/']) {
        pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
    } else {
        pointer.push_str(segment);
    }
}

/// Decodes percent-encoded bytes such as `%20`. Anything else stays unchanged.
pub(crate) fn percent_decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}
