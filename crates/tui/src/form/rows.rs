//! The lines of a form, from top to bottom.

use super::node::{Node, NodeKind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// The way from the root to the field; for [`Role::Add`] to the list.
    pub(super) path: Vec<usize>,
    pub(super) pointer: String,
    pub(super) role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Field,
    /// Adds an item to a list.
    Add,
    /// Hands the form in.
    Button,
}

pub(super) fn rows(root: &Node) -> Vec<Row> {
    let mut rows = Vec::new();
    below(root, &mut Vec::new(), "", &mut rows);
    rows.push(Row { path: Vec::new(), pointer: String::new(), role: Role::Button });
    rows
}

fn below(node: &Node, path: &mut Vec<usize>, pointer: &str, rows: &mut Vec<Row>) {
    for (at, child) in node.children().iter().enumerate() {
        path.push(at);
        let pointer = format!("{pointer}/{}", child.name.replace('~', "~0").replace('/', "~1"));
        rows.push(Row { path: path.clone(), pointer: pointer.clone(), role: Role::Field });
        // What is not given has nothing inside.
        if child.given {
            below(child, path, &pointer, rows);
            if let NodeKind::Items { .. } = child.kind {
                rows.push(Row { path: path.clone(), pointer, role: Role::Add });
            }
        }
        path.pop();
    }
}
