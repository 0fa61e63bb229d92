//! One field of a form, and its nested fields.

use std::sync::Arc;

use serde_json::Value;

use super::FormAction;
use super::build;
use crate::editor::Editor;
use crate::key::KeyPress;
use crate::text::clean;

#[derive(Debug, Clone)]
pub(super) struct FormNode {
    /// The name of the property, or the number of the list item.
    pub(super) name: String,
    pub(super) required: bool,
    /// Whether the field is part of the value.
    pub(super) given: bool,
    /// The type of the value, as shown.
    pub(super) word: String,
    pub(super) about: Option<String>,
    pub(super) remarks: String,
    pub(super) kind: FormNodeKind,
}

#[derive(Debug, Clone)]
pub(super) enum FormNodeKind {
    Text(Editor),
    Number(Editor),
    Flag(bool),
    Choice {
        values: Vec<Value>,
        labels: Vec<String>,
        chosen: Option<usize>,
    },
    /// Any other value, edited as JSON.
    Json(Editor),
    Members(Vec<FormNode>),
    Items {
        /// The schema of one item, and the document that contains it.
        shape: Arc<Value>,
        root: Arc<Value>,
        items: Vec<FormNode>,
    },
}

impl FormNode {
    /// Creates the root of a form without fields.
    pub(super) fn empty() -> Self {
        Self {
            name: String::new(),
            required: true,
            given: true,
            word: "object".to_owned(),
            about: None,
            remarks: String::new(),
            kind: FormNodeKind::Members(Vec::new()),
        }
    }

    pub(super) fn children(&self) -> &[Self] {
        match &self.kind {
            FormNodeKind::Members(nodes) | FormNodeKind::Items { items: nodes, .. } => nodes,
            _ => &[],
        }
    }

    pub(super) fn at(&self, path: &[usize]) -> Option<&Self> {
        path.iter().try_fold(self, |node, at| node.children().get(*at))
    }

    pub(super) fn at_mut(&mut self, path: &[usize]) -> Option<&mut Self> {
        path.iter().try_fold(self, |node, at| match &mut node.kind {
            FormNodeKind::Members(nodes) | FormNodeKind::Items { items: nodes, .. } => nodes.get_mut(*at),
            _ => None,
        })
    }

    pub(super) fn editor(&mut self) -> Option<&mut Editor> {
        match &mut self.kind {
            FormNodeKind::Text(editor) | FormNodeKind::Number(editor) | FormNodeKind::Json(editor) => {
                Some(editor)
            }
            _ => None,
        }
    }

    pub(super) fn choose(&mut self, at: usize) {
        if let FormNodeKind::Choice { chosen, .. } = &mut self.kind {
            *chosen = Some(at);
            self.given = true;
        }
    }

    /// Handles a key for this field alone.
    pub(super) fn press(&mut self, key: KeyPress) -> FormAction {
        let given = self.given;
        match &mut self.kind {
            FormNodeKind::Text(editor) | FormNodeKind::Number(editor) | FormNodeKind::Json(editor) => {
                // Deleting in an empty field omits the field.
                if editor.is_empty() && matches!(key, KeyPress::Backspace | KeyPress::Delete) {
                    self.given = false;
                } else if editor.press(key) {
                    self.given = given || !editor.is_empty();
                } else {
                    return FormAction::Ignored;
                }
            }
            FormNodeKind::Flag(value) => match key {
                KeyPress::Char(' ') | KeyPress::Left | KeyPress::Right => {
                    *value = if given { !*value } else { true };
                    self.given = true;
                }
                KeyPress::Char(c @ ('t' | 'y' | 'f' | 'n')) => {
                    *value = matches!(c, 't' | 'y');
                    self.given = true;
                }
                KeyPress::Backspace | KeyPress::Delete => self.given = false,
                KeyPress::Char(_) => {}
                _ => return FormAction::Ignored,
            },
            FormNodeKind::Choice { values, labels, chosen } => {
                let most = values.len().saturating_sub(1);
                match key {
                    KeyPress::Right | KeyPress::Char(' ') => {
                        *chosen = Some(chosen.map_or(0, |at| if at == most { 0 } else { at + 1 }))
                    }
                    KeyPress::Left => {
                        *chosen = Some(chosen.map_or(most, |at| at.checked_sub(1).unwrap_or(most)))
                    }
                    KeyPress::Char(c) => {
                        let starts =
                            |label: &&String| label.to_lowercase().starts_with(c.to_ascii_lowercase());
                        let from = chosen.map_or(0, |at| at + 1);
                        let around = labels.iter().enumerate().cycle().skip(from).take(labels.len());
                        if let Some((at, _)) = around.into_iter().find(|(_, label)| starts(label)) {
                            *chosen = Some(at);
                        } else {
                            return FormAction::Stay;
                        }
                    }
                    KeyPress::Backspace | KeyPress::Delete => {
                        *chosen = None;
                        self.given = false;
                        return FormAction::Stay;
                    }
                    _ => return FormAction::Ignored,
                }
                self.given = true;
            }
            FormNodeKind::Members(_) | FormNodeKind::Items { .. } => match key {
                KeyPress::Backspace | KeyPress::Delete if !self.required => self.given = false,
                KeyPress::Char(' ') => self.given = true,
                KeyPress::Char(_) => {}
                _ => return FormAction::Ignored,
            },
        }
        FormAction::Stay
    }

    /// Sets a value; returns whether the fields can represent all of it.
    pub(super) fn fill(&mut self, value: &Value) -> bool {
        self.given = true;
        match (&mut self.kind, value) {
            (FormNodeKind::Text(editor), Value::String(text)) => {
                *editor = Editor::single_line(text.clone());
                // A single-line editor cannot hold line breaks.
                !text.contains('\n')
            }
            (FormNodeKind::Number(editor), Value::Number(number)) => {
                *editor = Editor::single_line(number.to_string());
                true
            }
            (FormNodeKind::Flag(flag), Value::Bool(value)) => {
                *flag = *value;
                true
            }
            (FormNodeKind::Choice { values, chosen, .. }, value) => {
                *chosen = values.iter().position(|one| one == value);
                chosen.is_some()
            }
            (FormNodeKind::Json(editor), value) => {
                *editor = Editor::single_line(value.to_string());
                true
            }
            (FormNodeKind::Members(nodes), Value::Object(object)) => {
                let mut known = true;
                for node in nodes.iter_mut() {
                    match object.get(&node.name) {
                        Some(value) => known &= node.fill(value),
                        None => node.given = node.required && matches!(node.kind, FormNodeKind::Members(_)),
                    }
                }
                known && object.keys().all(|key| nodes.iter().any(|node| node.name == *key))
            }
            (FormNodeKind::Items { shape, root, items }, Value::Array(values)) => {
                items.clear();
                let mut known = true;
                for (at, value) in values.iter().enumerate() {
                    let mut item = build::build_item(root, shape, at);
                    known &= item.fill(value);
                    items.push(item);
                }
                known
            }
            _ => false,
        }
    }

    /// Returns the value as shown in one line.
    pub(super) fn display_value(&self) -> String {
        if !self.given {
            return String::new();
        }
        match &self.kind {
            FormNodeKind::Text(editor) if editor.is_empty() => "(empty string)".to_owned(),
            FormNodeKind::Text(editor) | FormNodeKind::Number(editor) | FormNodeKind::Json(editor) => {
                clean(editor.text()).into_owned()
            }
            FormNodeKind::Flag(true) => "true".to_owned(),
            FormNodeKind::Flag(false) => "false".to_owned(),
            FormNodeKind::Choice { labels, chosen, .. } => chosen
                .and_then(|at| labels.get(at))
                .map(|label| clean(label).into_owned())
                .unwrap_or_default(),
            FormNodeKind::Members(_) => String::new(),
            FormNodeKind::Items { items, .. } => crate::text::format_count(items.len(), "item"),
        }
    }
}
