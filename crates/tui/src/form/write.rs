//! From fields to JSON text. Numbers go out as they were typed, so that long ones stay exact.

use serde_json::value::RawValue;
use serde_json::{Number, Value};

use super::Problem;
use super::node::{Node, NodeKind};

/// The value of a form, and what of it could not be written.
pub(super) fn json(root: &Node) -> (String, Vec<Problem>) {
    let mut writer = Writer { text: String::new(), problems: Vec::new() };
    writer.write(root, "");
    (writer.text, writer.problems)
}

struct Writer {
    text: String,
    problems: Vec<Problem>,
}

impl Writer {
    fn write(&mut self, node: &Node, pointer: &str) {
        match &node.kind {
            NodeKind::Text(editor) => self.quote(editor.text()),
            NodeKind::Number(editor) => {
                let text = editor.text().trim();
                match serde_json::from_str::<Number>(text) {
                    Ok(_) => self.text.push_str(text),
                    Err(_) => self.wrong(pointer, "is no number"),
                }
            }
            NodeKind::Json(editor) => match serde_json::from_str::<&RawValue>(editor.text()) {
                Ok(value) => self.text.push_str(value.get()),
                Err(error) => self.wrong(pointer, &format!("is no JSON: {error}")),
            },
            NodeKind::Flag(value) => self.text.push_str(if *value { "true" } else { "false" }),
            NodeKind::Choice { values, chosen, .. } => match chosen.and_then(|at| values.get(at)) {
                Some(value) => self.text.push_str(&value.to_string()),
                None => self.wrong(pointer, "nothing is chosen"),
            },
            NodeKind::Members(nodes) => {
                self.text.push('{');
                let mut first = true;
                for child in nodes.iter().filter(|child| child.given) {
                    if !std::mem::take(&mut first) {
                        self.text.push(',');
                    }
                    self.quote(&child.name);
                    self.text.push(':');
                    self.write(child, &below(pointer, &child.name));
                }
                self.text.push('}');
            }
            NodeKind::Items { items, .. } => {
                self.text.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.text.push(',');
                    }
                    self.write(item, &below(pointer, &item.name));
                }
                self.text.push(']');
            }
        }
    }

    fn quote(&mut self, text: &str) {
        self.text.push_str(&Value::from(text).to_string());
    }

    fn wrong(&mut self, pointer: &str, text: &str) {
        self.text.push_str("null");
        self.problems.push(Problem::new(pointer, text));
    }
}

fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
