//! Type names that are valid in every language and unique.

use std::collections::HashSet;

/// The type names that are taken.
#[derive(Debug)]
pub struct TypeNames {
    taken: HashSet<String>,
}

impl TypeNames {
    pub fn new(reserved: &[&str]) -> Self {
        Self { taken: reserved.iter().map(|name| (*name).to_owned()).collect() }
    }

    /// Assigns a unique name, such as `McpGitLogParams` for `mcp__git__log_params`.
    pub fn assign(&mut self, from: &str) -> String {
        let base = to_pascal_case(from);
        let mut name = base.clone();
        for number in 2.. {
            if self.taken.insert(name.clone()) {
                break;
            }
            name = format!("{base}{number}");
        }
        name
    }
}

fn to_pascal_case(text: &str) -> String {
    let mut name = String::new();
    for word in text.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.extend(letters);
    }
    if name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
        name.insert(0, 'T');
    }
    name
}

/// Makes a description safe for a comment or docstring: one line without anything that could end
/// either.
pub fn sanitize_description(text: &str) -> String {
    const LONGEST: usize = 400;
    let harmless = |letter: &char| !matches!(letter, '\\' | '"' | '\u{2028}' | '\u{2029}');
    let spaced = |letter: char| if letter.is_control() { ' ' } else { letter };
    let text: String = text.chars().filter(harmless).map(spaced).collect();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(LONGEST).collect::<String>().replace("*/", "* /")
}

#[cfg(test)]
mod tests {
    use super::{TypeNames, sanitize_description};

    #[test]
    fn names_are_valid_and_unique() {
        let mut names = TypeNames::new(&["Tools"]);
        let assigned = ["mcp__git__log_params", "mcp-git-log-params", "tools", "2d", "ä", ""]
            .map(|text| names.assign(text));
        assert_eq!(assigned, ["McpGitLogParams", "McpGitLogParams2", "Tools2", "T2d", "T", "T2"]);
    }

    #[test]
    fn a_description_cannot_leave_its_comment() {
        assert_eq!(sanitize_description("a */ b\n\"\"\" import os\\"), "a * / b import os");
    }
}
