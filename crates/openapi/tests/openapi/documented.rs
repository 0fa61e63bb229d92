//! The claims of the documentation about tests are true.

use std::path::Path;

/// Rows of the table in `docs/reference/openapi.md` that names the test for each line of the checklist.
fn rows() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.md");
    let text = std::fs::read_to_string(page).unwrap();
    let (_, table) = text.split_once("| line | test |\n|---|---|\n").unwrap();
    table.lines().take_while(|line| line.starts_with('|')).map(str::to_owned).collect()
}

/// The text between backticks.
fn quoted(row: &str) -> impl Iterator<Item = &str> {
    row.split('`').skip(1).step_by(2)
}

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn every_line_of_the_checklist_names_a_test_that_is_there() {
    let room = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&room.join("src"), &mut files);
    sources(&room.join("tests"), &mut files);
    let mut missing = Vec::new();
    let mut named = 0;
    let rows = rows();
    assert_eq!(rows.len(), 10, "the checklist has ten lines");
    for row in &rows {
        let proof = row.rsplit_once(" | ").unwrap().1;
        let mut file = None;
        for word in quoted(proof) {
            if let Some(end) = word.strip_suffix(".rs") {
                file = Some(format!("/{end}.rs"));
                named += usize::from(files.iter().any(|(path, _)| path.ends_with(&format!("/{word}"))));
            } else if word.starts_with("tests/") {
                named += usize::from(room.join("../..").join(word).is_file());
            } else if word.matches('_').count() > 2 {
                let function = format!("#[test]\nfn {word}()");
                let is_there = |(path, text): &(String, String)| {
                    file.as_ref().is_none_or(|file| path.ends_with(file))
                        && text.replace("    ", "").contains(&function)
                };
                if !files.iter().any(is_there) {
                    missing.push(format!("{file:?} has no test {word}"));
                }
            }
        }
        if file.is_none() {
            missing.push(format!("no file is named in {row}"));
        }
    }
    assert_eq!(missing, Vec::<String>::new());
    assert!(named >= 12, "{named} files are there");
}
