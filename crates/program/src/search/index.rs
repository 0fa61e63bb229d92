//! A ranked index over the tools of one catalog: BM25 over several fields, each with its own weight.
//!
//! Written here because the crates that do it are not kept: `bm25` rests on the abandoned `fxhash` and knows no fields,
//! `probly-search` has not moved for years, and `tantivy` is a database.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use toolyard_hub::json::Object;
use toolyard_hub::{Catalog, ToolEntry};

use super::tokenizer::tokenize;

/// How soon more of the same word stops to count, and how much long texts are held against a tool: the usual values.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// What a word counts that only begins like the one that was asked for.
const BEGINNING: f32 = 0.4;
/// Shorter words are not taken for beginnings of others.
const SHORTEST_BEGINNING: usize = 3;
/// Words that are in every question and say nothing.
const SMALL: [&str; 16] =
    ["a", "an", "and", "all", "by", "for", "from", "how", "in", "is", "my", "of", "on", "the", "to", "with"];
/// Longer texts are not read to their ends.
const LONGEST: usize = 20_000;

#[derive(Debug)]
pub(crate) struct SearchIndex {
    tools: Vec<Entry>,
    /// For every word the tools that have it, with how much it counts in them.
    vocabulary: BTreeMap<String, Vec<(usize, f32)>>,
    average: f32,
}

#[derive(Debug)]
struct Entry {
    tool: Arc<ToolEntry>,
    length: f32,
}

impl SearchIndex {
    pub(crate) fn build(catalog: &Catalog) -> Self {
        let mut vocabulary: BTreeMap<String, Vec<(usize, f32)>> = BTreeMap::new();
        let mut tools = Vec::with_capacity(catalog.tools().len());
        for (at, tool) in catalog.tools().iter().enumerate() {
            let counted = term_weights(tool);
            let length = counted.values().sum();
            for (word, weight) in counted {
                vocabulary.entry(word).or_default().push((at, weight));
            }
            tools.push(Entry { tool: Arc::clone(tool), length });
        }
        let total: f32 = tools.iter().map(|entry| entry.length).sum();
        let average = if tools.is_empty() { 1.0 } else { (total / tools.len() as f32).max(1.0) };
        Self { tools, vocabulary, average }
    }

    /// The tools that have at least one of these words, best first.
    pub(crate) fn rank(&self, query: &str) -> Vec<&Arc<ToolEntry>> {
        let mut scores = vec![0.0_f32; self.tools.len()];
        let asked = tokenize(query);
        let telling: Vec<&String> = asked.iter().filter(|word| !SMALL.contains(&word.as_str())).collect();
        let asked = if telling.is_empty() { asked.iter().collect() } else { telling };
        for word in asked {
            match self.vocabulary.get(word) {
                Some(places) => self.add_scores(places, 1.0, &mut scores),
                // Nobody has the whole word, but perhaps one that begins with it.
                None if word.len() >= SHORTEST_BEGINNING => {
                    let longer = self.vocabulary.range(word.clone()..);
                    for (_, places) in longer.take_while(|(known, _)| known.starts_with(word)) {
                        self.add_scores(places, BEGINNING, &mut scores);
                    }
                }
                None => {}
            }
        }
        let mut found: Vec<(f32, &Arc<ToolEntry>)> = self
            .tools
            .iter()
            .zip(scores)
            .filter(|(_, score)| *score > 0.0)
            .map(|(entry, score)| (score + exact_name_bonus(&entry.tool, query), &entry.tool))
            .collect();
        // Those of one score keep the order of the yard.
        found.sort_by(|one, other| other.0.total_cmp(&one.0));
        found.into_iter().map(|(_, tool)| tool).collect()
    }

    fn add_scores(&self, places: &[(usize, f32)], share: f32, scores: &mut [f32]) {
        let (all, having) = (self.tools.len() as f32, places.len() as f32);
        let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        for (at, weight) in places {
            let length = B * self.tools[*at].length / self.average;
            scores[*at] += share * rarity * weight * (K1 + 1.0) / (weight + K1 * (1.0 - B + length));
        }
    }
}

/// Whoever says the very name means it.
fn exact_name_bonus(tool: &ToolEntry, query: &str) -> f32 {
    let query = query.trim();
    if tool.full_name.as_str() == query {
        2_000.0
    } else if tool.raw_name == query {
        1_000.0
    } else {
        0.0
    }
}

/// How much every word counts in a tool.
fn term_weights(tool: &ToolEntry) -> HashMap<String, f32> {
    let mut counted: HashMap<String, f32> = HashMap::new();
    let mut add = |text: &str, weight: f32| {
        let text = &text[..text.floor_char_boundary(LONGEST)];
        for word in tokenize(text) {
            *counted.entry(word).or_default() += weight;
        }
    };
    add(&tool.raw_name, 4.0);
    if tool.title != tool.raw_name {
        add(&tool.title, 2.0);
    }
    add(tool.source.as_str(), 1.5);
    add(tool.description.as_deref().unwrap_or_default(), 1.0);
    let schema = Object::parse(&tool.input_schema).unwrap_or_default();
    let parameters = schema.get("properties").and_then(|keys| Object::parse(keys).ok()).unwrap_or_default();
    for (name, _) in parameters.members() {
        add(name, 1.0);
    }
    counted
}
