//! Tests of `search_tools`: ranking, paging, errors and the index cache.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_hub::{Principal, SourceName, Yard};

use super::{SearchArguments, SearchIndex, SearchIndexCache, similar_names};
use crate::fixtures::{FakeSource, ada, yard};
use crate::visible_tools::VisibleTools;

fn described(name: &str, description: &str, parameters: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties}})
}

fn shop() -> Arc<Yard> {
    let mut secret = described("delete_everything", "Deletes all files.", &[]);
    secret["_meta"] = json!({"permissions": ["admin"]});
    yard(&[
        FakeSource::with_tools(
            "files",
            &[
                described("readFile", "Reads a file as text.", &["path"]),
                described("write_file", "Writes text to a file.", &["path", "text"]),
                secret,
            ],
        ),
        FakeSource::with_tools(
            "finance",
            &[
                described("query_financials", "Fetch income statements for a ticker.", &["ticker", "limit"]),
                described("quote", "The price of a share. It mentions a file once.", &["ticker"]),
            ],
        ),
        FakeSource::with_tools(
            "docs",
            &[json!({"name": "x1", "title": "Search documents", "inputSchema": {"type": "object"}})],
        ),
    ])
}

fn search(principal: &Principal, arguments: &SearchArguments) -> String {
    let yard = shop();
    let (catalog, own) = (yard.catalog(), SourceName::new("programs"));
    let visible = VisibleTools { catalog: &catalog, principal, own: &own };
    match arguments.find(&visible, &SearchIndex::build(&catalog)) {
        Ok(page) => arguments.render_text(&visible, &page),
        Err(error) => error.message_with_suggestion(),
    }
}

fn found(query: &str) -> Vec<String> {
    let text = search(&ada(), &SearchArguments { query: query.to_owned(), ..SearchArguments::default() });
    text.lines().filter(|line| line.starts_with("mcp__")).map(ToOwned::to_owned).collect()
}

#[test]
fn tools_are_found_by_names_titles_descriptions_and_parameters_best_first() {
    assert_eq!(
        found("read files"),
        ["mcp__files__readFile", "mcp__files__write_file", "mcp__finance__quote"]
    );
    assert_eq!(found("searching document"), ["mcp__docs__x1"]);
    assert_eq!(found("income"), ["mcp__finance__query_financials"]);
    assert_eq!(found("ticker"), ["mcp__finance__query_financials", "mcp__finance__quote"]);
    assert_eq!(found("financ"), ["mcp__finance__query_financials", "mcp__finance__quote"]);
    assert_eq!(found("mcp__finance__quote")[0], "mcp__finance__quote");
    assert_eq!(found("quote file")[0], "mcp__finance__quote");
}

#[test]
fn tools_without_permission_are_not_found() {
    assert_eq!(found("delete everything"), Vec::<String>::new());
    let owner = search(
        &Principal::owner(),
        &SearchArguments { query: "delete".to_owned(), ..SearchArguments::default() },
    );
    assert!(owner.contains("mcp__files__delete_everything"), "{owner}");
}

#[test]
fn a_search_and_its_pages_in_words() {
    let first =
        SearchArguments { query: "text of files".to_owned(), limit: Some(1), ..SearchArguments::default() };
    let next = SearchArguments {
        query: "text of files".to_owned(),
        cursor: Some("mcp__files__write_file".to_owned()),
        ..SearchArguments::default()
    };
    let list = SearchArguments { limit: Some(3), ..SearchArguments::default() };
    let rest = SearchArguments {
        query: " ".to_owned(),
        cursor: Some("mcp__finance__query_financials".to_owned()),
        ..SearchArguments::default()
    };
    let server = SearchArguments { server: Some("docs".to_owned()), ..SearchArguments::default() };
    let no_match = SearchArguments { query: "zebra".to_owned(), ..SearchArguments::default() };
    let unknown_server = SearchArguments { server: Some("dosc".to_owned()), ..SearchArguments::default() };
    let stale_cursor = SearchArguments { cursor: Some("mcp__gone".to_owned()), ..SearchArguments::default() };
    let long = SearchArguments { query: "x".repeat(2_000), ..SearchArguments::default() };
    let all = [first, next, list, rest, server, no_match, unknown_server, stale_cursor, long]
        .map(|arguments| search(&ada(), &arguments));
    insta::assert_snapshot!(all.join("\n----\n"));
}

#[test]
fn empty_arguments_count_as_missing() {
    let empty = SearchArguments {
        server: Some(String::new()),
        cursor: Some(String::new()),
        ..SearchArguments::default()
    };
    assert_eq!(search(&ada(), &empty), search(&ada(), &SearchArguments::default()));
}

#[test]
fn unknown_names_have_similar_names() {
    let yard = shop();
    let (catalog, own, ada) = (yard.catalog(), SourceName::new("programs"), ada());
    let visible = VisibleTools { catalog: &catalog, principal: &ada, own: &own };
    let index = SearchIndex::build(&catalog);
    assert_eq!(similar_names(&visible, &index, "mcp__files__raedFile")[0], "mcp__files__readFile");
    assert_eq!(similar_names(&visible, &index, "financials_query"), ["mcp__finance__query_financials"]);
    let hidden = similar_names(&visible, &index, "mcp__files__delete_everythin");
    assert!(
        !hidden.is_empty() && !hidden.contains(&"mcp__files__delete_everything".to_owned()),
        "{hidden:?}"
    );
    assert_eq!(similar_names(&visible, &index, &"é".repeat(100_000)), Vec::<String>::new());
}

#[tokio::test]
async fn the_index_is_built_once_per_catalog() {
    let yard = shop();
    let indexes = SearchIndexCache::default();
    let catalog = yard.catalog();
    let first = indexes.get(&catalog).await;
    assert!(Arc::ptr_eq(&first, &indexes.get(&catalog).await));
    yard.add(FakeSource::with_tools("more", &[described("new", "", &[])]));
    assert!(!Arc::ptr_eq(&first, &indexes.get(&yard.catalog()).await));
}
