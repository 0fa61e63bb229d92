//! `search_tools`: finds tools by what they do, or lists all of them. The index is made once per catalog.

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

/// How many tools are told where nobody says.
const USUAL_FOUND: usize = 10;
const USUAL_LISTED: usize = 50;
/// More than this nobody reads.
pub(crate) const MOST: usize = 500;
/// A longer query is no query.
const LONGEST_QUERY: usize = 1_000;
/// How much of a description is one line.
const LINE: usize = 160;

/// What is looked for.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct SearchArguments {
    /// Programs may leave it out.
    #[serde(default)]
    pub(crate) query: String,
    pub(crate) server: Option<String>,
    pub(crate) limit: Option<u64>,
    /// The last tool of the page before.
    pub(crate) cursor: Option<String>,
}

/// A catalog and its index, which is made when it is first needed.
type CurrentIndex = (Arc<Catalog>, Arc<OnceLock<Arc<SearchIndex>>>);

/// The index of the catalog that is the current one.
#[derive(Debug, Default)]
pub(crate) struct SearchIndexCache {
    current: Mutex<Option<CurrentIndex>>,
}

impl SearchIndexCache {
    /// Makes it where nobody has yet, and not on a thread that others wait for.
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
        let make = |cell: &OnceLock<Arc<SearchIndex>>, catalog: &Catalog| {
            Arc::clone(cell.get_or_init(|| Arc::new(SearchIndex::build(catalog))))
        };
        if cell.get().is_none() {
            let (cell, catalog) = (Arc::clone(&cell), Arc::clone(catalog));
            // It fails only while the process ends.
            let _ = tokio::task::spawn_blocking(move || make(&cell, &catalog)).await;
        }
        make(&cell, catalog)
    }
}

/// What was found: the tools, and how many more there are.
#[derive(Debug)]
pub(crate) struct SearchPage {
    pub(crate) tools: Vec<Arc<ToolEntry>>,
    pub(crate) all: usize,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<String>,
}

impl SearchArguments {
    pub(crate) fn is_list(&self) -> bool {
        self.query.trim().is_empty()
    }

    fn limit(&self) -> usize {
        let usual = if self.is_list() { USUAL_LISTED } else { USUAL_FOUND };
        self.limit.map_or(usual, |limit| usize::try_from(limit).unwrap_or(MOST).clamp(1, MOST))
    }

    /// Finds them, for somebody who sees these.
    pub(crate) fn find(&self, seen: &VisibleTools<'_>, index: &SearchIndex) -> Result<SearchPage, HubError> {
        if self.query.len() > LONGEST_QUERY {
            let message = format!("a query of {} bytes; {LONGEST_QUERY} are allowed", self.query.len());
            return Err(HubError::new(ErrorKind::InvalidArguments, message));
        }
        // Assistants fill in what they leave open with nothing.
        let server = self.server.as_deref().filter(|server| !server.is_empty());
        if let Some(server) = server
            && !seen.tools().any(|tool| tool.source.as_str() == server)
        {
            return Err(unknown_server_error(seen, server));
        }
        let wanted = |tool: &&Arc<ToolEntry>| {
            seen.is_visible(tool) && server.is_none_or(|server| tool.source.as_str() == server)
        };
        let tools: Vec<&Arc<ToolEntry>> = if self.is_list() {
            seen.tools().filter(wanted).collect()
        } else {
            index.rank(&self.query).into_iter().filter(wanted).collect()
        };
        let from = match self.cursor.as_deref().filter(|cursor| !cursor.is_empty()) {
            None => 0,
            Some(last) => {
                let place = tools.iter().position(|tool| tool.full_name.as_str() == last);
                place.map(|at| at + 1).ok_or_else(|| {
                    HubError::new(ErrorKind::InvalidArguments, "this cursor is of a list that has changed")
                        .with_suggestion("ask again without a cursor")
                })?
            }
        };
        let page: Vec<Arc<ToolEntry>> =
            tools.iter().skip(from).take(self.limit()).map(|tool| Arc::clone(tool)).collect();
        let more = from + page.len() < tools.len();
        let next = page.last().filter(|_| more).map(|last| last.full_name.to_string());
        Ok(SearchPage { tools: page, all: tools.len(), next })
    }

    /// What was found in words: name, one line and signature, or lists by server.
    pub(crate) fn render_text(&self, seen: &VisibleTools<'_>, found: &SearchPage) -> String {
        let mut text = String::new();
        // Writing to a text cannot fail.
        let mut put = |line: std::fmt::Arguments<'_>| {
            let _ = text.write_fmt(line);
        };
        if found.tools.is_empty() {
            put(format_args!(
                "No tool fits. An empty query lists all {} tools by server.",
                seen.tools().count()
            ));
            return text;
        }
        if self.is_list() {
            let mut server = None;
            let many = if found.all == 1 { "" } else { "s" };
            put(format_args!("{} tool{many}; inspect_tool tells more of each.", found.all));
            for tool in &found.tools {
                if server != Some(&tool.source) {
                    put(format_args!("\n\n{}:", tool.source));
                    server = Some(&tool.source);
                }
                let line = summary(tool);
                let dash = if line.is_empty() { "" } else { " - " };
                put(format_args!("\n{}{dash}{line}", tool.full_name));
            }
        } else {
            put(format_args!("{} of {} tools that fit, best first.", found.tools.len(), found.all));
            for tool in &found.tools {
                let line = summary(tool);
                put(format_args!("\n\n{}", tool.full_name));
                if !line.is_empty() {
                    put(format_args!("\n  {line}"));
                }
                put(format_args!("\n  {}", Signature::from_tool(tool).declaration(seen.short_name(tool))));
            }
        }
        if let Some(next) = &found.next {
            put(format_args!("\n\nThere are more: ask again with cursor \"{next}\"."));
        }
        text
    }

    /// The same as data, for programs.
    pub(crate) fn render_json(seen: &VisibleTools<'_>, found: &SearchPage) -> Value {
        let tools = found.tools.iter().map(|tool| {
            json!({
                "name": tool.full_name.as_str(),
                "server": tool.source.as_str(),
                "description": summary(tool),
                "signature": Signature::from_tool(tool).declaration(seen.short_name(tool)),
            })
        });
        tools.collect()
    }
}

/// The tools of a catalog that fit some words, best first, for whoever asks once.
pub fn rank_tools(catalog: &Catalog, words: &str) -> Vec<Arc<ToolEntry>> {
    let words = &words[..words.floor_char_boundary(LONGEST_QUERY)];
    SearchIndex::build(catalog).rank(words).into_iter().cloned().collect()
}

/// The names that are most like one that is not there.
pub(crate) fn similar_names(seen: &VisibleTools<'_>, index: &SearchIndex, name: &str) -> Vec<String> {
    const SAID: usize = 5;
    let name = &name[..name.floor_char_boundary(LONGEST_QUERY)];
    let names = seen.tools().flat_map(|tool| [tool.full_name.as_str(), tool.raw_name.as_str()]);
    let nearest = toolyard_hub::nearest(name, names).and_then(|near| seen.tool(near));
    let words = name.strip_prefix("mcp__").unwrap_or(name);
    let ranked = index.rank(words).into_iter().filter(|tool| seen.is_visible(tool)).cloned();
    let mut close: Vec<String> = Vec::new();
    for tool in nearest.into_iter().chain(ranked).take(SAID) {
        let full = tool.full_name.to_string();
        if !close.contains(&full) {
            close.push(full);
        }
    }
    close
}

fn unknown_server_error(seen: &VisibleTools<'_>, server: &str) -> HubError {
    let mut servers: Vec<&str> = seen.tools().map(|tool| tool.source.as_str()).collect();
    servers.dedup();
    let short: String = server.chars().take(100).collect();
    let error =
        HubError::new(ErrorKind::InvalidArguments, format!("there is no server {short} that offers tools"));
    match servers.len() {
        0 => error,
        1..=20 => error.with_suggestion(format!("there are {}", servers.join(", "))),
        many => error
            .with_suggestion(format!("there are {many} servers; a search without one looks at all of them")),
    }
}

/// What a tool does, in one line.
fn summary(tool: &ToolEntry) -> String {
    let said = tool.description.as_deref().unwrap_or_default();
    let said = if said.trim().is_empty() && tool.title != tool.raw_name { tool.title.as_str() } else { said };
    let first = said.trim().lines().next().unwrap_or_default();
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
