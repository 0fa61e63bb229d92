//! Checks that every link in the manual and in the pages at the root of the repository leads to a
//! file, and within the manual to a heading.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::{collect_pages, repository_file};

/// The anchor that VitePress gives a heading.
fn slug(heading: &str) -> String {
    let is_special = |letter: char| {
        letter.is_whitespace() || (letter.is_ascii_punctuation()) || ['“', '”', '‘', '’'].contains(&letter)
    };
    let words: Vec<&str> = heading.split(is_special).filter(|word| !word.is_empty()).collect();
    let slug = words.join("-").to_lowercase();
    if slug.starts_with(|first: char| first.is_ascii_digit()) { format!("_{slug}") } else { slug }
}

/// The lines of a page outside of code blocks.
fn prose_lines(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let is_prose = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    };
    text.lines().filter(is_prose).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose_lines(text).into_iter().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let slug = slug(line.trim_start_matches('#'));
        let count = counts.entry(slug.clone()).or_default();
        *count += 1;
        if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
    };
    headings.map(anchor).collect()
}

/// The targets of the links and images of a page.
fn targets(text: &str) -> Vec<String> {
    let text = prose_lines(text).join("\n");
    // Code spans can contain what looks like a link.
    let without_code: String = text.split('`').step_by(2).collect::<Vec<_>>().join("code");
    let links = without_code.split("](").skip(1);
    let images = without_code.split("src=\"").skip(1);
    let links = links.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned());
    let images = images.filter_map(|rest| rest.split_once('"')).map(|(target, _)| target.to_owned());
    links.chain(images).collect()
}

/// Returns the links of a page that lead nowhere.
fn broken_links(page: &Path, text: &str) -> Vec<String> {
    let is_manual = page.starts_with(repository_file("docs"));
    let mut broken = Vec::new();
    for target in targets(text) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
        let path = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
        if !path.exists() {
            broken.push(format!("{}: {target}: no such file", page.display()));
        } else if is_manual && !anchor.is_empty() {
            let text = if file.is_empty() { text.to_owned() } else { fs::read_to_string(&path).unwrap() };
            if !anchors(&text).contains(anchor) {
                broken.push(format!("{}: {target}: no such heading", page.display()));
            }
        }
    }
    broken
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut pages: Vec<PathBuf> = fs::read_dir(repository_file(""))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    collect_pages(&repository_file("docs"), &mut pages);
    assert!(pages.len() > 20, "{pages:?}");
    let broken: Vec<String> =
        pages.iter().flat_map(|page| broken_links(page, &fs::read_to_string(page).unwrap())).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn broken_links_are_found() {
    let page = repository_file("docs/reference/cli.md");
    let text =
        "# A\n\n[a](#a) [b](#b) [c](rest.md#errors) [d](rest.md#mistakes) [e](none.md) `[f](none.md)`\n";
    let broken = broken_links(&page, text);
    let shown: Vec<&str> = broken.iter().map(|line| line.split_once(": ").unwrap().1).collect();
    let expected = ["#b: no such heading", "rest.md#mistakes: no such heading", "none.md: no such file"];
    assert_eq!(shown, expected);
    assert_eq!(slug(" `[[tokens]]` and mcp_tool"), "tokens-and-mcp-tool");
    assert_eq!(slug("401 unauthorized"), "_401-unauthorized");
}
