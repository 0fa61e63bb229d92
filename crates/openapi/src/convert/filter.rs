//! Which operations become tools.

use crate::document::{SpecNode, SpecObject};

use toolyard_hub::Glob;

use super::Filters;

/// Why an operation does not become a tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FilterDecision {
    Include,
    Exclude,
    /// An extension of the document hides it.
    Hidden(&'static str),
}

const HIDING: [(&str, bool); 4] =
    [("x-mcp", false), ("x-mcp-hidden", true), ("x-toolyard-hidden", true), ("x-mcp-ignore", true)];

pub(super) struct Candidate<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) id: Option<&'a str>,
    pub(super) tags: &'a [String],
    pub(super) operation: &'a SpecObject,
    pub(super) item: &'a SpecObject,
}

pub(super) fn decide(filters: &Filters, candidate: &Candidate<'_>) -> FilterDecision {
    for (key, hides) in HIDING {
        let value = candidate.operation.get(key).or_else(|| candidate.item.get(key));
        if value == Some(&SpecNode::Bool(hides)) {
            return FilterDecision::Hidden(key);
        }
    }
    let matches = |patterns: &[String], text: &str| {
        patterns.iter().any(|pattern| Glob::from(pattern.as_str()).matches(text))
    };
    let id = candidate.id.unwrap_or_default();
    let method = candidate.method.to_ascii_lowercase();
    let method_in =
        |patterns: &[String]| patterns.iter().any(|pattern| pattern.eq_ignore_ascii_case(&method));
    let tag_in = |patterns: &[String]| candidate.tags.iter().any(|tag| matches(patterns, tag));
    let included = (filters.include_tags.is_empty() || tag_in(&filters.include_tags))
        && (filters.include_methods.is_empty() || method_in(&filters.include_methods))
        && (filters.include_paths.is_empty() || matches(&filters.include_paths, candidate.path))
        && (filters.include_operations.is_empty() || matches(&filters.include_operations, id));
    let unwanted = tag_in(&filters.exclude_tags)
        || method_in(&filters.exclude_methods)
        || matches(&filters.exclude_paths, candidate.path)
        || matches(&filters.exclude_operations, id);
    if included && !unwanted { FilterDecision::Include } else { FilterDecision::Exclude }
}
