//! A form generated from a JSON Schema: typed fields, defaults filled in, validated on every key
//! press. Values that a form cannot represent are edited as JSON, and so can be the whole value.

mod build;
mod draw;
mod node;
mod rows;
mod write;

use serde_json::Value;
use serde_json::value::RawValue;
use toolyard_hub::json::from_text;
use toolyard_hub::{Raw, Schema};

use self::node::{FormNode, FormNodeKind};
use self::rows::{FormRow, FormRowKind};
use crate::editor::Editor;
use crate::key::KeyPress;
use crate::list_cursor::ListCursor;
use crate::text::clean;

/// A form that is being filled in.
#[derive(Debug)]
pub(crate) struct SchemaForm {
    schema: Schema,
    root: FormNode,
    rows: Vec<FormRow>,
    pick: ListCursor,
    /// The open list of choices of the selected field.
    picking: Option<ChoiceList>,
    /// The editor for the whole value as JSON, instead of fields.
    raw: Option<Editor>,
    /// Why the schema cannot be shown as fields.
    no_fields: Option<String>,
    problems: Vec<FieldProblem>,
    /// Whether the user has tried to submit the form. Missing values are only marked as errors
    /// after that.
    submit_attempted: bool,
    button: &'static str,
}

#[derive(Debug, Default)]
struct ChoiceList {
    filter: Editor,
    pick: ListCursor,
}

/// A validation error of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldProblem {
    pointer: String,
    text: String,
}

/// The result of a key press.
#[derive(Debug)]
pub(crate) enum FormAction {
    Stay,
    Leave,
    /// Submit these values; they are valid.
    Submit(Raw),
    /// The user tried to submit the form, but it is invalid.
    Invalid(String),
    /// The form does not handle this key.
    Ignored,
}

impl SchemaForm {
    /// Creates a form with the defaults of the schema; `button` is the label of the submit button.
    pub(crate) fn new(schema: Raw, button: &'static str) -> Self {
        let built = build::build_root(&schema);
        let (root, no_fields) = match built {
            Ok(root) => (root, None),
            Err(why) => (FormNode::empty(), Some(why)),
        };
        let raw = no_fields.as_ref().map(|_| Editor::multi_line("{}"));
        let mut form = Self {
            schema: Schema::new(schema),
            root,
            rows: Vec::new(),
            pick: ListCursor::default(),
            picking: None,
            raw,
            no_fields,
            problems: Vec::new(),
            submit_attempted: false,
            button,
        };
        form.revalidate();
        form
    }

    /// Creates a form with these values, or as JSON if the fields cannot represent them.
    pub(crate) fn with_values(mut self, values: &Raw) -> Self {
        let read: Value = serde_json::from_str(values.get()).unwrap_or_default();
        if self.no_fields.is_some() || !self.root.fill(&read) {
            self.raw = Some(Editor::multi_line(pretty_json(values.get())));
        }
        self.revalidate();
        self
    }

    /// Returns the current values.
    pub(crate) fn value(&self) -> Raw {
        match &self.raw {
            Some(editor) => from_text(editor.text().to_owned()),
            None => from_text(write::write_json(&self.root).0),
        }
    }

    /// The label of the submit button.
    pub(crate) fn button(&self) -> &'static str {
        self.button
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(editor) = &mut self.raw {
            editor.insert_text(text);
        } else if let Some(picking) = &mut self.picking {
            picking.filter.insert_text(text);
        } else if let Some(node) = self.selected_mut()
            && let Some(editor) = node.editor()
        {
            editor.insert_text(text);
            node.given = true;
        }
        self.revalidate();
    }

    pub(crate) fn press(&mut self, key: KeyPress) -> FormAction {
        let filled = match key {
            KeyPress::Ctrl('s') => return self.submit(),
            KeyPress::Ctrl('r') if self.picking.is_none() => self.toggle_raw(),
            _ if self.picking.is_some() => self.press_choice(key),
            _ if self.raw.is_some() => self.press_raw(key),
            _ => self.press_field(key),
        };
        self.revalidate();
        filled
    }

    fn press_raw(&mut self, key: KeyPress) -> FormAction {
        match (key, &mut self.raw) {
            (KeyPress::Esc, _) => FormAction::Leave,
            (KeyPress::Tab, Some(editor)) => {
                editor.insert_text("  ");
                FormAction::Stay
            }
            (key, Some(editor)) => match editor.press(key) {
                true => FormAction::Stay,
                false => FormAction::Ignored,
            },
            (_, None) => FormAction::Ignored,
        }
    }

    fn press_choice(&mut self, key: KeyPress) -> FormAction {
        let Some(mut picking) = self.picking.take() else { return FormAction::Ignored };
        let choices = self.shown_choices(&picking);
        match key {
            KeyPress::Esc => return FormAction::Stay,
            KeyPress::Enter => {
                if let Some(at) = choices.get(picking.pick.at).copied()
                    && let Some(node) = self.selected_mut()
                {
                    node.choose(at);
                }
                return FormAction::Stay;
            }
            KeyPress::Up
            | KeyPress::Down
            | KeyPress::PageUp
            | KeyPress::PageDown
            | KeyPress::Home
            | KeyPress::End => {
                picking.pick.press(key, choices.len());
            }
            key => {
                if picking.filter.press(key) {
                    picking.pick = ListCursor::default();
                }
            }
        }
        self.picking = Some(picking);
        FormAction::Stay
    }

    fn press_field(&mut self, key: KeyPress) -> FormAction {
        let rows = self.rows.len();
        match key {
            KeyPress::Esc => return FormAction::Leave,
            KeyPress::Up | KeyPress::BackTab => self.pick.at = self.pick.at.saturating_sub(1),
            KeyPress::Down | KeyPress::Tab => self.pick.at = (self.pick.at + 1).min(rows - 1),
            KeyPress::PageUp | KeyPress::PageDown => {
                self.pick.press(key, rows);
            }
            KeyPress::Ctrl('n') => self.add_item(),
            KeyPress::Ctrl('d') => self.remove_item(),
            KeyPress::Ctrl('t') => {
                if let Some(node) = self.selected_mut() {
                    node.given = !node.given;
                }
            }
            KeyPress::Enter => return self.enter(),
            key => {
                let Some(node) = self.selected_mut() else {
                    return if matches!(key, KeyPress::Char(_)) {
                        FormAction::Stay
                    } else {
                        FormAction::Ignored
                    };
                };
                return node.press(key);
            }
        }
        FormAction::Stay
    }

    fn enter(&mut self) -> FormAction {
        let Some(row) = self.rows.get(self.pick.at) else { return FormAction::Stay };
        match row.role {
            FormRowKind::Button => return self.submit(),
            FormRowKind::Add => self.add_item(),
            FormRowKind::Field => {
                let last = self.rows.len() - 1;
                let at = self.pick.at;
                let Some(node) = self.selected_mut() else { return FormAction::Stay };
                match &mut node.kind {
                    FormNodeKind::Flag(_) => {
                        node.press(KeyPress::Char(' '));
                    }
                    FormNodeKind::Choice { chosen, .. } => {
                        let pick = ListCursor::at_index(chosen.unwrap_or(0));
                        self.picking = Some(ChoiceList { pick, ..ChoiceList::default() });
                    }
                    FormNodeKind::Members(_) => node.given = true,
                    FormNodeKind::Items { .. } => self.add_item(),
                    FormNodeKind::Text(_) | FormNodeKind::Number(_) | FormNodeKind::Json(_) => {
                        self.pick.at = (at + 1).min(last);
                    }
                }
            }
        }
        FormAction::Stay
    }

    fn submit(&mut self) -> FormAction {
        self.submit_attempted = true;
        self.revalidate();
        match self.problems.first() {
            None => FormAction::Submit(self.value()),
            Some(problem) => {
                let at = self.rows.iter().position(|row| row.pointer == problem.pointer);
                let text = problem.message();
                if let (Some(at), None) = (at, &self.raw) {
                    self.pick.at = at;
                }
                FormAction::Invalid(text)
            }
        }
    }

    /// Switches between fields and JSON.
    fn toggle_raw(&mut self) -> FormAction {
        let Some(editor) = &self.raw else {
            self.raw = Some(Editor::multi_line(pretty_json(self.value().get())));
            return FormAction::Stay;
        };
        if let Some(why) = &self.no_fields {
            return FormAction::Invalid(why.clone());
        }
        match serde_json::from_str::<Value>(editor.text()) {
            Ok(value) if self.root.fill(&value) => {
                self.raw = None;
                FormAction::Stay
            }
            Ok(_) => FormAction::Invalid("the form has no fields for some of these values".to_owned()),
            Err(error) => FormAction::Invalid(format!("invalid JSON: {error}")),
        }
    }

    /// Adds an item to the list at or around the cursor, and selects it.
    fn add_item(&mut self) {
        let Some(row) = self.rows.get(self.pick.at) else { return };
        let mut path = row.path.clone();
        loop {
            let added = match self.root.at_mut(&path) {
                Some(FormNode { kind: FormNodeKind::Items { shape, items, root }, given, .. }) => {
                    *given = true;
                    items.push(build::build_item(root, shape, items.len()));
                    Some(items.len() - 1)
                }
                _ => None,
            };
            if let Some(added) = added {
                self.revalidate();
                path.push(added);
                let first = self.rows.iter().position(|row| row.path == path);
                self.pick.at = first.unwrap_or(self.pick.at);
                return;
            }
            if path.pop().is_none() {
                return;
            }
        }
    }

    fn remove_item(&mut self) {
        let Some(row) = self.rows.get(self.pick.at) else { return };
        let mut path = row.path.clone();
        while let Some(at) = path.pop() {
            if let Some(FormNode { kind: FormNodeKind::Items { items, .. }, .. }) = self.root.at_mut(&path)
                && at < items.len()
            {
                items.remove(at);
                for (number, item) in items.iter_mut().enumerate() {
                    item.name = number.to_string();
                }
                return;
            }
        }
    }

    fn selected_mut(&mut self) -> Option<&mut FormNode> {
        let row = self.rows.get(self.pick.at).filter(|row| row.role == FormRowKind::Field)?;
        self.root.at_mut(&row.path)
    }

    fn selected(&self) -> Option<&FormNode> {
        let row = self.rows.get(self.pick.at).filter(|row| row.role == FormRowKind::Field)?;
        self.root.at(&row.path)
    }

    /// Returns the choices of the field that match the filter.
    fn shown_choices(&self, picking: &ChoiceList) -> Vec<usize> {
        let Some(FormNode { kind: FormNodeKind::Choice { labels, .. }, .. }) = self.selected() else {
            return Vec::new();
        };
        let query = picking.filter.text().to_lowercase();
        let fits = |(_, label): &(usize, &String)| label.to_lowercase().contains(&query);
        labels.iter().enumerate().filter(fits).map(|(at, _)| at).collect()
    }

    /// Recomputes the rows and the problems from the values.
    fn revalidate(&mut self) {
        self.rows = rows::rows(&self.root);
        self.pick.clamp(self.rows.len());
        let (text, mut problems) = match &self.raw {
            Some(editor) => {
                let wrong = serde_json::from_str::<&RawValue>(editor.text()).err();
                let problem =
                    |error: serde_json::Error| FieldProblem::new("", format!("invalid JSON: {error}"));
                (editor.text().to_owned(), wrong.map(problem).into_iter().collect())
            }
            None => write::write_json(&self.root),
        };
        if let (true, Ok(value)) = (problems.is_empty() || self.raw.is_none(), RawValue::from_string(text)) {
            let known: Vec<String> =
                problems.iter().map(|problem: &FieldProblem| problem.pointer.clone()).collect();
            let found = self.schema.violations(&value).into_iter();
            let new = found.filter(|violation| !known.contains(&violation.pointer));
            problems.extend(new.map(|violation| FieldProblem::new(&violation.pointer, violation.reason)));
        }
        self.problems = problems;
    }
}

impl FieldProblem {
    fn new(pointer: &str, text: impl Into<String>) -> Self {
        Self { pointer: pointer.to_owned(), text: clean(&text.into()).into_owned() }
    }

    fn message(&self) -> String {
        let field = self.pointer.trim_start_matches('/').replace('/', ".");
        if field.is_empty() { self.text.clone() } else { format!("{}: {}", clean(&field), self.text) }
    }
}

/// Formats JSON with line breaks; other text is returned unchanged.
pub(crate) fn pretty_json(text: &str) -> String {
    let read: Result<Value, _> = serde_json::from_str(text);
    read.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests;
