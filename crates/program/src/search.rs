//! `search_tools`: finds tools by what they do, or lists all of them. The index is built once per
//! catalog.

mod index;
mod tokenizer;

use std::fmt::Write;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_hub::{Catalog, ErrorKind, HubError, ToolEntry};

use crate::shapes::sanitize_description;
use crate::signature::Signature;
use crate::visible_tools::VisibleTools;
pub(crate) use index::SearchIndex;

/// The default number of search results.
const DEFAULT_RESULTS: usize = 10;
/// The default number of tools in a page of the full list.
const DEFAULT_LISTED: usize = 50;
/// The maximum number of tools in a page.
pub(crate) const MOST: usize = 500;
/// The maximum length of a query, in bytes.
const LONGEST_QUERY: usize = 1_000;
/// The maximum length of a one-line summary, in characters.
const LINE: usize = 160;

/// The arguments of `search_tools`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct SearchArguments {
    /// Optional for programs.
    #[serde(default)]
    pub(crate) query: String,
    pub(crate) server: Option<String>,
    pub(crate) limit: Option<u64>,
    /// The full name of the last tool of the previous page.
    pub(crate) cursor: Option<String>,
}

/// A catalog and its index, which is built on first use.
type CurrentIndex = (Arc<Catalog>, Arc<OnceLock<Arc<SearchIndex>>>);

/// The index of the current catalog.
#[derive(Debug, Default)]
pub(crate) struct SearchIndexCache {
    current: Mutex<Option<CurrentIndex>>,
}

impl SearchIndexCache {
    /// Returns the index of a catalog. Builds it on a blocking thread if it does not exist yet.
    pub(crate) async fn get(&self, catalog: &Arc<Catalog>) -> Arc<SearchIndex> {
        let cell = {
            let mut current = self.current.lock();
            match &*current {
                Some((known, cell)) if Arc::ptr_eq(known, catalog) => Arc::clone(cell),
                _ => {
                    let cell = Arc::default();
                    *current = Some((Arc::clone(catalog), Arc::clone(&cell)));
                    cell
                }
            }
        };
        let build = |cell: &OnceLock<Arc<SearchIndex>>, catalog: &Catalog| {
            Arc::clone(cell.get_or_init(|| Arc::new(SearchIndex::build(catalog))))
        };
        if cell.get().is_none() {
            let (cell, catalog) = (Arc::clone(&cell), Arc::clone(catalog));
            // This fails only during shutdown.
            let _ = tokio::task::spawn_blocking(move || build(&cell, &catalog)).await;
        }
        build(&cell, catalog)
    }
}

/// One page of results.
#[derive(Debug)]
pub(crate) struct SearchPage {
    pub(crate) tools: Vec<Arc<ToolEntry>>,
    /// The number of matches on all pages.
    pub(crate) all: usize,
    /// The cursor of the next page, if there is one.
    pub(crate) next: Option<String>,
}

impl SearchArguments {
    pub(crate) fn is_list(&self) -> bool {
        self.query.trim().is_empty()
    }

    fn limit(&self) -> usize {
        let default = if self.is_list() { DEFAULT_LISTED } else { DEFAULT_RESULTS };
        self.limit.map_or(default, |limit| usize::try_from(limit).unwrap_or(MOST).clamp(1, MOST))
    }

    /// Searches the visible tools.
    pub(crate) fn find(
        &self,
        visible: &VisibleTools<'_>,
        index: &SearchIndex,
    ) -> Result<SearchPage, HubError> {
        if self.query.len() > LONGEST_QUERY {
            let size = self.query.len();
            let message = format!("the query of {size} bytes exceeds the limit of {LONGEST_QUERY} bytes");
            return Err(HubError::new(ErrorKind::InvalidArguments, message));
        }
        // Assistants send an empty string for an argument that they do not set.
        let server = self.server.as_deref().filter(|server| !server.is_empty());
        if let Some(server) = server
            && !visible.tools().any(|tool| tool.source.as_str() == server)
        {
            return Err(unknown_server_error(visible, server));
        }
        let matches = |tool: &&Arc<ToolEntry>| {
            visible.is_visible(tool) && server.is_none_or(|server| tool.source.as_str() == server)
        };
        let tools: Vec<&Arc<ToolEntry>> = if self.is_list() {
            visible.tools().filter(matches).collect()
        } else {
            index.rank(&self.query).into_iter().filter(matches).collect()
        };
        let start = match self.cursor.as_deref().filter(|cursor| !cursor.is_empty()) {
            None => 0,
            Some(last) => {
                let position = tools.iter().position(|tool| tool.full_name.as_str() == last);
                position.map(|index| index + 1).ok_or_else(|| {
                    HubError::new(
                        ErrorKind::InvalidArguments,
                        "the cursor is no longer valid because the tool list changed",
                    )
                    .with_suggestion("search again without a cursor")
                })?
            }
        };
        let page: Vec<Arc<ToolEntry>> =
            tools.iter().skip(start).take(self.limit()).map(|tool| Arc::clone(tool)).collect();
        let has_more = start + page.len() < tools.len();
        let next = page.last().filter(|_| has_more).map(|last| last.full_name.to_string());
        Ok(SearchPage { tools: page, all: tools.len(), next })
    }

    /// Renders a page as text: name, summary and signature of each match, or a list by server.
    pub(crate) fn render_text(&self, visible: &VisibleTools<'_>, page: &SearchPage) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let mut put = |line: std::fmt::Arguments<'_>| {
            let _ = text.write_fmt(line);
        };
        if page.tools.is_empty() {
            put(format_args!(
                "No matching tools. An empty query lists all {} tools by server.",
                visible.tools().count()
            ));
            return text;
        }
        if self.is_list() {
            let mut server = None;
            let plural = if page.all == 1 { "" } else { "s" };
            put(format_args!("{} tool{plural}; use inspect_tool for details.", page.all));
            for tool in &page.tools {
                if server != Some(&tool.source) {
                    put(format_args!("\n\n{}:", tool.source));
                    server = Some(&tool.source);
                }
                let line = summary(tool);
                let dash = if line.is_empty() { "" } else { " - " };
                put(format_args!("\n{}{dash}{line}", tool.full_name));
            }
        } else {
            put(format_args!("{} of {} matching tools, best match first.", page.tools.len(), page.all));
            for tool in &page.tools {
                let line = summary(tool);
                put(format_args!("\n\n{}", tool.full_name));
                if !line.is_empty() {
                    put(format_args!("\n  {line}"));
                }
                put(format_args!("\n  {}", Signature::from_tool(tool).declaration(visible.short_name(tool))));
            }
        }
        if let Some(next) = &page.next {
            put(format_args!("\n\nMore tools: search again with cursor \"{next}\"."));
        }
        text
    }

    /// Renders a page as data for programs.
    pub(crate) fn render_json(visible: &VisibleTools<'_>, page: &SearchPage) -> Value {
        let tools = page.tools.iter().map(|tool| {
            json!({
                "name": tool.full_name.as_str(),
                "server": tool.source.as_str(),
                "description": summary(tool),
                "signature": Signature::from_tool(tool).declaration(visible.short_name(tool)),
            })
        });
        tools.collect()
    }
}

/// Returns the tools of a catalog that match the words, best match first. Builds a new index for
/// each call.
pub fn rank_tools(catalog: &Catalog, words: &str) -> Vec<Arc<ToolEntry>> {
    let words = &words[..words.floor_char_boundary(LONGEST_QUERY)];
    SearchIndex::build(catalog).rank(words).into_iter().cloned().collect()
}

/// Returns the names of visible tools that are most similar to an unknown name.
pub(crate) fn similar_names(visible: &VisibleTools<'_>, index: &SearchIndex, name: &str) -> Vec<String> {
    const MOST_NAMES: usize = 5;
    let name = &name[..name.floor_char_boundary(LONGEST_QUERY)];
    let names = visible.tools().flat_map(|tool| [tool.full_name.as_str(), tool.raw_name.as_str()]);
    let nearest = toolyard_hub::nearest(name, names).and_then(|near| visible.tool(near));
    let words = name.strip_prefix("mcp__").unwrap_or(name);
    let ranked = index.rank(words).into_iter().filter(|tool| visible.is_visible(tool)).cloned();
    let mut similar: Vec<String> = Vec::new();
    for tool in nearest.into_iter().chain(ranked).take(MOST_NAMES) {
        let full = tool.full_name.to_string();
        if !similar.contains(&full) {
            similar.push(full);
        }
    }
    similar
}

fn unknown_server_error(visible: &VisibleTools<'_>, server: &str) -> HubError {
    let mut servers: Vec<&str> = visible.tools().map(|tool| tool.source.as_str()).collect();
    servers.dedup();
    let short: String = server.chars().take(100).collect();
    let error = HubError::new(ErrorKind::InvalidArguments, format!("no server `{short}` with tools"));
    match servers.len() {
        0 => error,
        1..=20 => error.with_suggestion(format!("use one of {}", servers.join(", "))),
        count => error.with_suggestion(format!("omit `server` to search all {count} servers")),
    }
}

/// Returns what a tool does, in one line.
fn summary(tool: &ToolEntry) -> String {
    let description = tool.description.as_deref().unwrap_or_default();
    let use_title = description.trim().is_empty() && tool.title != tool.raw_name;
    let text = if use_title { tool.title.as_str() } else { description };
    let first = text.trim().lines().next().unwrap_or_default();
    let line = sanitize_description(first);
    if line.chars().count() <= LINE {
        return line;
    }
    let cut: String = line.chars().take(LINE).collect();
    let end = cut.rfind(' ').unwrap_or(cut.len());
    format!("{}…", &cut[..end])
}

#[cfg(test)]
mod tests;
