//! Which tools fit some words best. One function, so that a better one can take its place.

use std::sync::Arc;

use toolyard_hub::Tool;

/// The best of these tools, at most so many. Every word must be found somewhere; a name counts more than a title, that
/// more than a description, that more than a schema, and a whole word more than a part of one.
pub(super) fn rank<'a>(tools: &'a [Arc<Tool>], words: &str, most: usize) -> Vec<&'a Arc<Tool>> {
    let wanted: Vec<String> = parts(words).collect();
    let mut scored: Vec<(u32, &Arc<Tool>)> =
        tools.iter().filter_map(|tool| Some((score(tool, &wanted)?, tool))).collect();
    // Stable, so that equals stay in the order of the catalog.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().take(most).map(|(_, tool)| tool).collect()
}

fn score(tool: &Tool, wanted: &[String]) -> Option<u32> {
    let fields = [
        (tool.raw_name.to_lowercase(), 8),
        (tool.title.to_lowercase(), 4),
        (tool.source.as_str().to_lowercase(), 3),
        (tool.description.as_deref().unwrap_or_default().to_lowercase(), 2),
        (tool.input_schema.get().to_lowercase(), 1),
    ];
    let mut sum = 0;
    for word in wanted {
        let best = fields.iter().map(|(text, weight)| match text.contains(word.as_str()) {
            true if parts(text).any(|part| part == *word) => weight * 2,
            true => *weight,
            false => 0,
        });
        let best = best.max().filter(|best| *best > 0)?;
        sum += best;
    }
    (sum > 0).then_some(sum)
}

/// The words of a text, as people type them: `readTextFile` and `read_text_file` have the same.
fn parts(text: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut lower = false;
    for letter in text.chars() {
        if letter.is_uppercase() && lower {
            spaced.push(' ');
        }
        lower = letter.is_lowercase();
        spaced.extend(letter.to_lowercase());
    }
    let words: Vec<String> = spaced
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.into_iter()
}
