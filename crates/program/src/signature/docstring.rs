//! The docstring of a tool, which `help` shows: signature, description, parameters and result.

use std::fmt::Write;

use toolyard_hub::printable;

use super::{Entry, PythonType, Signature};

/// The maximum depth of nested objects.
pub(super) const DEEPEST: usize = 4;
/// The maximum length of a description, in characters, to save context of the models that read it.
const LONGEST: usize = 4_000;
/// The maximum number of lines about fields.
const MOST_LINES: usize = 80;

impl Signature {
    /// Returns the declaration with its docstring.
    pub(crate) fn definition(&self, name: &str) -> String {
        let mut text = format!("{}:\n", self.declaration(name));
        let mut body = clean(&self.description);
        let mut lines = Vec::new();
        for parameter in &self.parameters {
            let description = &parameter.description;
            if description.is_empty() && parameter.typed.fields.is_empty() {
                continue;
            }
            let colon = if description.is_empty() { "" } else { ": " };
            lines.push(format!("    {} ({}){colon}{description}", parameter.key, parameter.typed.name));
            push_field_lines(&parameter.typed, 2, &mut lines);
        }
        push_section(&mut body, "Args:", lines);
        let mut lines = Vec::new();
        push_field_lines(&self.returns, 1, &mut lines);
        push_section(&mut body, &format!("Returns {}:", self.returns.name), lines);
        let body = if body.is_empty() { "No description." } else { body.trim_end() };
        // Writing to a string cannot fail.
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

/// Makes a description safe for a docstring: keeps its lines, and removes control characters and
/// anything that would end the docstring.
fn clean(description: &str) -> String {
    let cleaned = printable::clean(description);
    let mut text: String = cleaned.chars().take(LONGEST).collect();
    if cleaned.chars().count() > LONGEST {
        text.push('…');
    }
    text.replace("\"\"\"", "'''").trim().to_owned()
}
