//! Writes the fields of a form as JSON text. Numbers are written as typed, so that long ones stay
//! exact.

use serde_json::value::RawValue;
use serde_json::{Number, Value};

use super::FieldProblem;
use super::node::{FormNode, FormNodeKind};

/// The value of a form, and the fields that could not be written.
pub(super) fn write_json(root: &FormNode) -> (String, Vec<FieldProblem>) {
    let mut writer = FormWriter { text: String::new(), problems: Vec::new() };
    writer.write(root, "");
    (writer.text, writer.problems)
}

struct FormWriter {
    text: String,
    problems: Vec<FieldProblem>,
}

impl FormWriter {
    fn write(&mut self, node: &FormNode, pointer: &str) {
        match &node.kind {
            FormNodeKind::Text(editor) => self.quote(editor.text()),
            FormNodeKind::Number(editor) => {
                let text = editor.text().trim();
                match serde_json::from_str::<Number>(text) {
                    Ok(_) => self.text.push_str(text),
                    Err(_) => self.push_problem(pointer, "is not a number"),
                }
            }
            FormNodeKind::Json(editor) => match serde_json::from_str::<&RawValue>(editor.text()) {
                Ok(value) => self.text.push_str(value.get()),
                Err(error) => self.push_problem(pointer, &format!("invalid JSON: {error}")),
            },
            FormNodeKind::Flag(value) => self.text.push_str(if *value { "true" } else { "false" }),
            FormNodeKind::Choice { values, chosen, .. } => match chosen.and_then(|at| values.get(at)) {
                Some(value) => self.text.push_str(&value.to_string()),
                None => self.push_problem(pointer, "no value selected"),
            },
            FormNodeKind::Members(nodes) => {
                self.text.push('{');
                let mut first = true;
                for child in nodes.iter().filter(|child| child.given) {
                    if !std::mem::take(&mut first) {
                        self.text.push(',');
                    }
                    self.quote(&child.name);
                    self.text.push(':');
                    self.write(child, &child_pointer(pointer, &child.name));
                }
                self.text.push('}');
            }
            FormNodeKind::Items { items, .. } => {
                self.text.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.text.push(',');
                    }
                    self.write(item, &child_pointer(pointer, &item.name));
                }
                self.text.push(']');
            }
        }
    }

    fn quote(&mut self, text: &str) {
        self.text.push_str(&Value::from(text).to_string());
    }

    fn push_problem(&mut self, pointer: &str, text: &str) {
        self.text.push_str("null");
        self.problems.push(FieldProblem::new(pointer, text));
    }
}

fn child_pointer(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
