//! A ranked index over the tools of one catalog: BM25 over several weighted fields.
//!
//! No crate fits: `bm25` depends on the unmaintained `fxhash` and has no fields, `probly-search` is
//! unmaintained, and `tantivy` is a full database.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use toolyard_hub::json::Object;
use toolyard_hub::{Catalog, ToolEntry};

use super::tokenizer::tokenize;

/// The saturation of repeated words, at its usual value.
const K1: f32 = 1.2;
/// The penalty for long texts, at its usual value.
const B: f32 = 0.75;
/// The weight of a word that matches only by prefix.
const PREFIX_WEIGHT: f32 = 0.4;
/// The minimum length of a query word for prefix matching.
const SHORTEST_PREFIX: usize = 3;
/// Words that are too common to be useful in a query.
const STOP_WORDS: [&str; 16] =
    ["a", "an", "and", "all", "by", "for", "from", "how", "in", "is", "my", "of", "on", "the", "to", "with"];
/// The number of bytes of a text that are indexed.
const LONGEST: usize = 20_000;

#[derive(Debug)]
pub(crate) struct SearchIndex {
    tools: Vec<Entry>,
    /// The index of each tool that contains a word, with the weight of the word in it.
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
        for (index, tool) in catalog.tools().iter().enumerate() {
            let weights = term_weights(tool);
            let length = weights.values().sum();
            for (word, weight) in weights {
                vocabulary.entry(word).or_default().push((index, weight));
            }
            tools.push(Entry { tool: Arc::clone(tool), length });
        }
        let total: f32 = tools.iter().map(|entry| entry.length).sum();
        let average = if tools.is_empty() { 1.0 } else { (total / tools.len() as f32).max(1.0) };
        Self { tools, vocabulary, average }
    }

    /// Returns the tools that contain at least one word of the query, best match first.
    pub(crate) fn rank(&self, query: &str) -> Vec<&Arc<ToolEntry>> {
        let mut scores = vec![0.0_f32; self.tools.len()];
        let words = tokenize(query);
        let significant: Vec<&String> =
            words.iter().filter(|word| !STOP_WORDS.contains(&word.as_str())).collect();
        let words = if significant.is_empty() { words.iter().collect() } else { significant };
        for word in words {
            match self.vocabulary.get(word) {
                Some(postings) => self.add_scores(postings, 1.0, &mut scores),
                // No tool contains the whole word, but some may contain a word that starts with it.
                None if word.len() >= SHORTEST_PREFIX => {
                    let longer = self.vocabulary.range(word.clone()..);
                    for (_, postings) in longer.take_while(|(known, _)| known.starts_with(word)) {
                        self.add_scores(postings, PREFIX_WEIGHT, &mut scores);
                    }
                }
                None => {}
            }
        }
        let mut ranked: Vec<(f32, &Arc<ToolEntry>)> = self
            .tools
            .iter()
            .zip(scores)
            .filter(|(_, score)| *score > 0.0)
            .map(|(entry, score)| (score + exact_name_bonus(&entry.tool, query), &entry.tool))
            .collect();
        // The sort is stable: tools of the same score keep the order of the yard.
        ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
        ranked.into_iter().map(|(_, tool)| tool).collect()
    }

    fn add_scores(&self, postings: &[(usize, f32)], share: f32, scores: &mut [f32]) {
        let (total, containing) = (self.tools.len() as f32, postings.len() as f32);
        let rarity = (1.0 + (total - containing + 0.5) / (containing + 0.5)).ln();
        for (index, weight) in postings {
            let length = B * self.tools[*index].length / self.average;
            scores[*index] += share * rarity * weight * (K1 + 1.0) / (weight + K1 * (1.0 - B + length));
        }
    }
}

/// Ranks a tool first if the query is exactly its name.
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

/// Returns the weight of every word of a tool.
fn term_weights(tool: &ToolEntry) -> HashMap<String, f32> {
    let mut weights: HashMap<String, f32> = HashMap::new();
    let mut add = |text: &str, weight: f32| {
        let text = &text[..text.floor_char_boundary(LONGEST)];
        for word in tokenize(text) {
            *weights.entry(word).or_default() += weight;
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
    weights
}
