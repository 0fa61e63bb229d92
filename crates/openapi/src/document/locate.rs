//! Where a `$ref` leads: to a place in this file, in another one, or to something that carries the name itself.

use std::collections::{HashMap, HashSet};

use super::Part;
use super::node::Node;

/// A place in one of the files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) part: usize,
    /// A JSON pointer, with nothing encoded but what pointers encode.
    pub(crate) pointer: String,
}

/// What files name each other by.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    links: HashMap<(usize, String), Link>,
    ids: HashMap<String, Target>,
    anchors: HashMap<(usize, String), String>,
}

#[derive(Debug)]
pub(super) enum Link {
    Part(usize),
    Missing(String),
}

impl Addresses {
    pub(super) fn link(&mut self, from: usize, name: String, link: Link) {
        self.links.insert((from, name), link);
    }

    pub(super) fn is_id(&self, name: &str) -> bool {
        self.ids.contains_key(name)
    }
}

/// Finds what references mean.
#[derive(Debug)]
pub(crate) struct Index {
    addresses: Addresses,
}

impl Index {
    pub(super) fn of(addresses: Addresses) -> Self {
        Self { addresses }
    }

    /// The place that a reference in `part` leads to, or why it leads nowhere.
    pub(crate) fn find(&self, parts: &[Part], from: usize, reference: &str) -> Result<Target, String> {
        let (name, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let (part, below) = if name.is_empty() {
            (from, String::new())
        } else if let Some(target) = self.addresses.ids.get(name) {
            (target.part, target.pointer.clone())
        } else {
            match self.addresses.links.get(&(from, name.to_owned())) {
                Some(Link::Part(part)) => (*part, String::new()),
                Some(Link::Missing(reason)) => {
                    return by_name(parts, from, reference).ok_or_else(|| reason.clone());
                }
                None => {
                    return by_name(parts, from, reference).ok_or_else(|| "nothing has that name".to_owned());
                }
            }
        };
        let Some(document) = parts.get(part).map(|part| &part.value) else {
            return Err("nothing has that name".to_owned());
        };
        let exists = |pointer: &str| document.pointer(pointer).is_some();
        if fragment.is_empty() {
            return Ok(Target { part, pointer: below });
        }
        for fragment in [percent_decoded(fragment), fragment.to_owned()] {
            let pointer = if fragment.starts_with('/') {
                format!("{below}{fragment}")
            } else if let Some(anchor) = self.addresses.anchors.get(&(part, fragment.clone())) {
                anchor.clone()
            } else {
                format!("{below}/{fragment}")
            };
            if exists(&pointer) {
                return Ok(Target { part, pointer });
            }
        }
        Err("there is nothing at that place".to_owned())
    }
}

/// Some documents name a schema by its bare name.
fn by_name(parts: &[Part], part: usize, name: &str) -> Option<Target> {
    let document = &parts.get(part)?.value;
    ["/components/schemas", "/definitions"].iter().find_map(|folder| {
        let mut pointer = (*folder).to_owned();
        push_segment(&mut pointer, name);
        document.pointer(&pointer).map(|_| Target { part, pointer })
    })
}

/// The files that a value names in references; on the way, remembers what carries a name of its own.
pub(super) fn collect(part: usize, value: &Node, addresses: &mut Addresses) -> Vec<String> {
    let mut names = Vec::new();
    let mut seen = HashSet::new();
    // The ways are kept apart from the values, so that a pointer is only built for what has a name.
    let mut ways: Vec<(Way<'_>, usize)> = vec![(Way::Root, 0)];
    let mut waiting = vec![(value, 0_usize)];
    while let Some((value, place)) = waiting.pop() {
        match value {
            Node::Object(members) => {
                for (key, member) in members.iter() {
                    match (key, member) {
                        ("$ref" | "$dynamicRef", Node::String(reference)) => {
                            let name = reference.split('#').next().unwrap_or_default();
                            if !name.is_empty() && seen.insert(name) {
                                names.push(name.to_owned());
                            }
                        }
                        ("$id" | "$self", Node::String(id)) => {
                            let id = id.trim_end_matches('#').to_owned();
                            let target = Target { part, pointer: pointer_of(&ways, place) };
                            addresses.ids.entry(id).or_insert(target);
                        }
                        ("$anchor" | "$dynamicAnchor", Node::String(anchor)) => {
                            let pointer = pointer_of(&ways, place);
                            addresses.anchors.entry((part, anchor.to_string())).or_insert(pointer);
                        }
                        (_, Node::Object(_) | Node::Array(_)) => {
                            ways.push((Way::Key(key), place));
                            waiting.push((member, ways.len() - 1));
                        }
                        _ => {}
                    }
                }
            }
            Node::Array(values) => {
                for (at, value) in values.iter().enumerate() {
                    if matches!(value, Node::Object(_) | Node::Array(_)) {
                        ways.push((Way::At(at), place));
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
enum Way<'a> {
    Root,
    Key(&'a str),
    At(usize),
}

fn pointer_of(ways: &[(Way<'_>, usize)], place: usize) -> String {
    let mut steps = Vec::new();
    let mut at = place;
    while let Some((way, parent)) = ways.get(at) {
        match way {
            Way::Root => break,
            Way::Key(key) => steps.push((*key).to_owned()),
            Way::At(index) => steps.push(index.to_string()),
        }
        at = *parent;
    }
    let mut pointer = String::new();
    for step in steps.iter().rev() {
        push_segment(&mut pointer, step);
    }
    pointer
}

/// Adds one step to a JSON pointer.
pub(crate) fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    if segment.contains(['~', '/']) {
        pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
    } else {
        pointer.push_str(segment);
    }
}

/// `%20` and its like as the bytes that they stand for; what is no such thing stays.
pub(crate) fn percent_decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let pair = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(meant) if byte == b'%' => {
                decoded.push(meant);
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}
