//! The pages of the manual as tests see them: generated parts that must match the code, and code
//! blocks to check.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::fs;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod links;

/// Set this variable to write the generated parts instead of comparing them.
pub const WRITE_VARIABLE: &str = "TOOLYARD_WRITE_DOCS";

/// Separates the hand-written part of a reference page from the generated one.
const MARKER: &str = "<!-- generated -->\n";

/// A fenced code block of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeBlock {
    /// The word behind the opening fence, such as `toml`.
    pub language: String,
    /// The page and the line that the block starts at, for messages.
    pub location: String,
    pub text: String,
}

/// Returns the path of a file of the repository.
pub fn repository_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Whether generated files are to be written.
#[allow(clippy::disallowed_methods, reason = "the person who runs the test decides with a variable")]
pub fn is_writing() -> bool {
    std::env::var_os(WRITE_VARIABLE).is_some()
}

/// Compares a generated file of the repository with `generated`, or writes it.
///
/// # Panics
/// Panics if the file differs.
pub fn check_file(path: &str, generated: &str) {
    let file = repository_file(path);
    if is_writing() {
        fs::write(&file, generated).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    if committed != generated {
        let differs = |(left, right): &(&str, &str)| left != right;
        let line = committed.lines().zip(generated.lines()).position(|pair| differs(&pair));
        panic!(
            "{path} is out of date, from line {} on; run the test with {WRITE_VARIABLE}=1 to write it",
            line.map_or_else(|| committed.lines().count().min(generated.lines().count()), |line| line + 1)
        );
    }
}

/// Compares everything below the marker of a page in `docs/` with `generated`, or writes it.
///
/// # Panics
/// Panics if the page has no marker or differs.
pub fn check_generated(page: &str, generated: &str) {
    let path = format!("docs/{page}");
    let text = fs::read_to_string(repository_file(&path)).unwrap();
    let (hand_written, _) = text.split_once(MARKER).unwrap_or_else(|| panic!("{path} has no {MARKER}"));
    check_file(&path, &format!("{hand_written}{MARKER}\n{}\n", generated.trim()));
}

/// Returns every code block of the README and of the pages in `docs/`.
pub fn code_blocks() -> Vec<CodeBlock> {
    let mut pages = vec![repository_file("README.md")];
    collect_pages(&repository_file("docs"), &mut pages);
    pages.sort();
    pages.iter().flat_map(|page| blocks_of(page)).collect()
}

fn collect_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "node_modules" && name != ".vitepress" {
            collect_pages(&path, pages);
        } else if name.ends_with(".md") {
            pages.push(path);
        }
    }
}

fn blocks_of(page: &Path) -> Vec<CodeBlock> {
    let text = fs::read_to_string(page).unwrap();
    let name = page.file_name().unwrap().to_string_lossy();
    let mut blocks = Vec::new();
    let mut open: Option<CodeBlock> = None;
    for (index, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), open.as_mut()) {
            (Some(language), None) => {
                let location = format!("{name}:{}", index + 1);
                open = Some(CodeBlock { language: language.to_owned(), location, text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{}: a code block is not closed", page.display());
    blocks
}

/// Joins the lines of a Markdown table. Cells are Markdown, escaped as in [`prose`].
pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let escape = |cell: &str| prose(cell).replace('|', "\\|").replace('\n', " ");
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| escape(cell)).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// Escapes what VitePress would take for HTML or a Vue expression: `<` and `{{` outside of code.
pub fn prose(markdown: &str) -> String {
    let parts = markdown.split('`').enumerate().map(|(index, part)| {
        // Every second part stands between backticks.
        if index % 2 == 1 { part.to_owned() } else { part.replace('<', "&lt;").replace("{{", "&#123;&#123;") }
    });
    parts.collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::{prose, table};

    #[test]
    fn html_and_expressions_are_escaped_outside_of_code() {
        assert_eq!(prose("a <b> `<c> {{d}}` {{e}}"), "a &lt;b> `<c> {{d}}` &#123;&#123;e}}");
    }

    #[test]
    fn a_cell_stays_in_its_row() {
        let rows = [vec!["`a|b`".to_owned(), "two\nlines".to_owned()]];
        assert_eq!(table(&["x", "y"], rows), "| x | y |\n|---|---|\n| `a\\|b` | two lines |\n");
    }
}
