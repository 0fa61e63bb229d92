//! What `help` says about a tool: its signature, its own description, and what its parameters and results are made of.

use std::fmt::Write;

use toolyard_hub::printable;

use super::{Entry, PythonType, Signature};

/// How deep objects within objects are described.
pub(super) const DEEPEST: usize = 4;
/// Longer descriptions are cut: they are read by models that have other things to read.
const LONGEST: usize = 4_000;
/// More lines about fields than this are left out.
const MOST_LINES: usize = 80;

impl Signature {
    /// The whole function, as far as it can be read.
    pub(crate) fn definition(&self, name: &str) -> String {
        let mut text = format!("{}:\n", self.declaration(name));
        let mut body = clean(&self.description);
        let mut lines = Vec::new();
        for parameter in &self.parameters {
            let said = &parameter.description;
            if said.is_empty() && parameter.typed.fields.is_empty() {
                continue;
            }
            let colon = if said.is_empty() { "" } else { ": " };
            lines.push(format!("    {} ({}){colon}{said}", parameter.key, parameter.typed.name));
            push_field_lines(&parameter.typed, 2, &mut lines);
        }
        push_section(&mut body, "Args:", lines);
        let mut lines = Vec::new();
        push_field_lines(&self.returns, 1, &mut lines);
        push_section(&mut body, &format!("Returns {}:", self.returns.name), lines);
        let body = if body.is_empty() { "Says nothing about itself." } else { body.trim_end() };
        // Writing to a text cannot fail.
        let _ = writeln!(text, "    \"\"\"{}", body.replace('\n', "\n    ").replace("\n    \n", "\n\n"));
        text.push_str("    \"\"\"");
        text
    }
}

fn push_section(body: &mut String, title: &str, mut lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    if lines.len() > MOST_LINES {
        let more = lines.len() - MOST_LINES;
        lines.truncate(MOST_LINES);
        lines.push(format!("    ({more} more; inspect_tool shows the whole schema)"));
    }
    if !body.is_empty() {
        body.push_str("\n\n");
    }
    body.push_str(title);
    body.push('\n');
    body.push_str(&lines.join("\n"));
}

fn push_field_lines(typed: &PythonType, depth: usize, lines: &mut Vec<String>) {
    for Entry { key, typed, required, description } in &typed.fields {
        let mark = if *required { "" } else { "?" };
        let dash = if description.is_empty() { "" } else { "  # " };
        lines.push(format!("{}{key}{mark}: {}{dash}{description}", "    ".repeat(depth), typed.name));
        push_field_lines(typed, depth + 1, lines);
    }
}

/// A description as it may stand in a docstring: its lines, without what would end the docstring or move a cursor.
fn clean(description: &str) -> String {
    let cleaned = printable::clean(description);
    let mut text: String = cleaned.chars().take(LONGEST).collect();
    if cleaned.chars().count() > LONGEST {
        text.push('…');
    }
    text.replace("\"\"\"", "'''").trim().to_owned()
}
