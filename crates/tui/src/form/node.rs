//! One field of a form, and the fields within it.

use std::sync::Arc;

use serde_json::Value;

use super::Filled;
use super::build;
use crate::edit::Editor;
use crate::key::Key;
use crate::text::clean;

#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The name of the member, or the number of the item.
    pub(super) name: String,
    pub(super) required: bool,
    /// Whether it is part of the value at all.
    pub(super) given: bool,
    /// What kind of value it is, in words.
    pub(super) word: String,
    pub(super) about: Option<String>,
    pub(super) remarks: String,
    pub(super) kind: NodeKind,
}

#[derive(Debug, Clone)]
pub(super) enum NodeKind {
    Text(Editor),
    Number(Editor),
    Flag(bool),
    Choice {
        values: Vec<Value>,
        labels: Vec<String>,
        chosen: Option<usize>,
    },
    /// Anything else, as JSON.
    Json(Editor),
    Members(Vec<Node>),
    Items {
        /// The schema of one item, and the document that it is from.
        shape: Arc<Value>,
        root: Arc<Value>,
        items: Vec<Node>,
    },
}

impl Node {
    /// The root of a form without fields.
    pub(super) fn empty() -> Self {
        Self {
            name: String::new(),
            required: true,
            given: true,
            word: "object".to_owned(),
            about: None,
            remarks: String::new(),
            kind: NodeKind::Members(Vec::new()),
        }
    }

    pub(super) fn children(&self) -> &[Self] {
        match &self.kind {
            NodeKind::Members(nodes) | NodeKind::Items { items: nodes, .. } => nodes,
            _ => &[],
        }
    }

    pub(super) fn at(&self, path: &[usize]) -> Option<&Self> {
        path.iter().try_fold(self, |node, at| node.children().get(*at))
    }

    pub(super) fn at_mut(&mut self, path: &[usize]) -> Option<&mut Self> {
        path.iter().try_fold(self, |node, at| match &mut node.kind {
            NodeKind::Members(nodes) | NodeKind::Items { items: nodes, .. } => nodes.get_mut(*at),
            _ => None,
        })
    }

    pub(super) fn editor(&mut self) -> Option<&mut Editor> {
        match &mut self.kind {
            NodeKind::Text(editor) | NodeKind::Number(editor) | NodeKind::Json(editor) => Some(editor),
            _ => None,
        }
    }

    pub(super) fn choose(&mut self, at: usize) {
        if let NodeKind::Choice { chosen, .. } = &mut self.kind {
            *chosen = Some(at);
            self.given = true;
        }
    }

    /// A key for this field alone.
    pub(super) fn press(&mut self, key: Key) -> Filled {
        let given = self.given;
        match &mut self.kind {
            NodeKind::Text(editor) | NodeKind::Number(editor) | NodeKind::Json(editor) => {
                // Taking away from nothing takes the field itself away.
                if editor.is_empty() && matches!(key, Key::Backspace | Key::Delete) {
                    self.given = false;
                } else if editor.press(key) {
                    self.given = given || !editor.is_empty();
                } else {
                    return Filled::Ignored;
                }
            }
            NodeKind::Flag(value) => match key {
                Key::Char(' ') | Key::Left | Key::Right => {
                    *value = if given { !*value } else { true };
                    self.given = true;
                }
                Key::Char(c @ ('t' | 'y' | 'f' | 'n')) => {
                    *value = matches!(c, 't' | 'y');
                    self.given = true;
                }
                Key::Backspace | Key::Delete => self.given = false,
                Key::Char(_) => {}
                _ => return Filled::Ignored,
            },
            NodeKind::Choice { values, labels, chosen } => {
                let most = values.len().saturating_sub(1);
                match key {
                    Key::Right | Key::Char(' ') => {
                        *chosen = Some(chosen.map_or(0, |at| if at == most { 0 } else { at + 1 }))
                    }
                    Key::Left => *chosen = Some(chosen.map_or(most, |at| at.checked_sub(1).unwrap_or(most))),
                    Key::Char(c) => {
                        let starts =
                            |label: &&String| label.to_lowercase().starts_with(c.to_ascii_lowercase());
                        let from = chosen.map_or(0, |at| at + 1);
                        let around = labels.iter().enumerate().cycle().skip(from).take(labels.len());
                        if let Some((at, _)) = around.into_iter().find(|(_, label)| starts(label)) {
                            *chosen = Some(at);
                        } else {
                            return Filled::Stay;
                        }
                    }
                    Key::Backspace | Key::Delete => {
                        *chosen = None;
                        self.given = false;
                        return Filled::Stay;
                    }
                    _ => return Filled::Ignored,
                }
                self.given = true;
            }
            NodeKind::Members(_) | NodeKind::Items { .. } => match key {
                Key::Backspace | Key::Delete if !self.required => self.given = false,
                Key::Char(' ') => self.given = true,
                Key::Char(_) => {}
                _ => return Filled::Ignored,
            },
        }
        Filled::Stay
    }

    /// Takes a value over. Whether all of it has a place here.
    pub(super) fn fill(&mut self, value: &Value) -> bool {
        self.given = true;
        match (&mut self.kind, value) {
            (NodeKind::Text(editor), Value::String(text)) => {
                *editor = Editor::line(text.clone());
                // A line cannot hold what has several.
                !text.contains('\n')
            }
            (NodeKind::Number(editor), Value::Number(number)) => {
                *editor = Editor::line(number.to_string());
                true
            }
            (NodeKind::Flag(flag), Value::Bool(value)) => {
                *flag = *value;
                true
            }
            (NodeKind::Choice { values, chosen, .. }, value) => {
                *chosen = values.iter().position(|one| one == value);
                chosen.is_some()
            }
            (NodeKind::Json(editor), value) => {
                *editor = Editor::line(value.to_string());
                true
            }
            (NodeKind::Members(nodes), Value::Object(object)) => {
                let mut known = true;
                for node in nodes.iter_mut() {
                    match object.get(&node.name) {
                        Some(value) => known &= node.fill(value),
                        None => node.given = node.required && matches!(node.kind, NodeKind::Members(_)),
                    }
                }
                known && object.keys().all(|key| nodes.iter().any(|node| node.name == *key))
            }
            (NodeKind::Items { shape, root, items }, Value::Array(values)) => {
                items.clear();
                let mut known = true;
                for (at, value) in values.iter().enumerate() {
                    let mut item = build::item(root, shape, at);
                    known &= item.fill(value);
                    items.push(item);
                }
                known
            }
            _ => false,
        }
    }

    /// The value in one line, where it is shown as one.
    pub(super) fn shown(&self) -> String {
        if !self.given {
            return String::new();
        }
        match &self.kind {
            NodeKind::Text(editor) if editor.is_empty() => "(empty text)".to_owned(),
            NodeKind::Text(editor) | NodeKind::Number(editor) | NodeKind::Json(editor) => {
                clean(editor.text()).into_owned()
            }
            NodeKind::Flag(true) => "yes".to_owned(),
            NodeKind::Flag(false) => "no".to_owned(),
            NodeKind::Choice { labels, chosen, .. } => chosen
                .and_then(|at| labels.get(at))
                .map(|label| clean(label).into_owned())
                .unwrap_or_default(),
            NodeKind::Members(_) => String::new(),
            NodeKind::Items { items, .. } => crate::text::count(items.len(), "item"),
        }
    }
}
