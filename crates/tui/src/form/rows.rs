//! The rows of a form, from top to bottom.

use super::node::{FormNode, FormNodeKind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormRow {
    /// The path from the root to the field, or to the list for [`FormRowKind::Add`].
    pub(super) path: Vec<usize>,
    pub(super) pointer: String,
    pub(super) role: FormRowKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormRowKind {
    Field,
    /// Adds an item to a list.
    Add,
    /// Submits the form.
    Button,
}

pub(super) fn rows(root: &FormNode) -> Vec<FormRow> {
    let mut rows = Vec::new();
    push_child_rows(root, &mut Vec::new(), "", &mut rows);
    rows.push(FormRow { path: Vec::new(), pointer: String::new(), role: FormRowKind::Button });
    rows
}

fn push_child_rows(node: &FormNode, path: &mut Vec<usize>, pointer: &str, rows: &mut Vec<FormRow>) {
    for (at, child) in node.children().iter().enumerate() {
        path.push(at);
        let pointer = format!("{pointer}/{}", child.name.replace('~', "~0").replace('/', "~1"));
        rows.push(FormRow { path: path.clone(), pointer: pointer.clone(), role: FormRowKind::Field });
        // An omitted field has no nested rows.
        if child.given {
            push_child_rows(child, path, &pointer, rows);
            if let FormNodeKind::Items { .. } = child.kind {
                rows.push(FormRow { path: path.clone(), pointer, role: FormRowKind::Add });
            }
        }
        path.pop();
    }
}
