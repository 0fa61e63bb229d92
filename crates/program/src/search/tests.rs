//! What is found for which words.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_hub::{Principal, SourceName, Yard};

use super::{Index, Indexes, Wanted, close};
use crate::find::Seen;
use crate::fixture::{Fake, ada, yard};

fn described(name: &str, description: &str, parameters: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties}})
}

fn shop() -> Arc<Yard> {
    let mut secret = described("delete_everything", "Deletes all files.", &[]);
    secret["_meta"] = json!({"permissions": ["admin"]});
    yard(&[
        Fake::offering(
            "files",
            &[
                described("readFile", "Reads a file as text.", &["path"]),
                described("write_file", "Writes text to a file.", &["path", "text"]),
                secret,
            ],
        ),
        Fake::offering(
            "finance",
            &[
                described("query_financials", "Fetch income statements for a ticker.", &["ticker", "limit"]),
                described("quote", "The price of a share. It mentions a file once.", &["ticker"]),
            ],
        ),
        Fake::offering(
            "docs",
            &[json!({"name": "x1", "title": "Search documents", "inputSchema": {"type": "object"}})],
        ),
    ])
}

fn told(principal: &Principal, wanted: &Wanted) -> String {
    let yard = shop();
    let (catalog, own) = (yard.catalog(), SourceName::new("programs"));
    let seen = Seen { catalog: &catalog, principal, own: &own };
    match wanted.find(&seen, &Index::of(&catalog)) {
        Ok(found) => wanted.told(&seen, &found),
        Err(error) => error.sentence(),
    }
}

fn found(query: &str) -> Vec<String> {
    let text = told(&ada(), &Wanted { query: query.to_owned(), ..Wanted::default() });
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
fn nobody_finds_what_they_may_not_see() {
    assert_eq!(found("delete everything"), Vec::<String>::new());
    let owner = told(&Principal::owner(), &Wanted { query: "delete".to_owned(), ..Wanted::default() });
    assert!(owner.contains("mcp__files__delete_everything"), "{owner}");
}

#[test]
fn a_search_and_its_pages_in_words() {
    let search = Wanted { query: "text of files".to_owned(), limit: Some(1), ..Wanted::default() };
    let next = Wanted {
        query: "text of files".to_owned(),
        cursor: Some("mcp__files__write_file".to_owned()),
        ..Wanted::default()
    };
    let list = Wanted { limit: Some(3), ..Wanted::default() };
    let rest = Wanted {
        query: " ".to_owned(),
        cursor: Some("mcp__finance__query_financials".to_owned()),
        ..Wanted::default()
    };
    let server = Wanted { server: Some("docs".to_owned()), ..Wanted::default() };
    let nothing = Wanted { query: "zebra".to_owned(), ..Wanted::default() };
    let nobody = Wanted { server: Some("dosc".to_owned()), ..Wanted::default() };
    let gone = Wanted { cursor: Some("mcp__gone".to_owned()), ..Wanted::default() };
    let long = Wanted { query: "x".repeat(2_000), ..Wanted::default() };
    let all =
        [search, next, list, rest, server, nothing, nobody, gone, long].map(|wanted| told(&ada(), &wanted));
    insta::assert_snapshot!(all.join("\n----\n"));
}

#[test]
fn what_is_filled_in_with_nothing_is_not_said() {
    let nothing = Wanted { server: Some(String::new()), cursor: Some(String::new()), ..Wanted::default() };
    assert_eq!(told(&ada(), &nothing), told(&ada(), &Wanted::default()));
}

#[test]
fn names_that_are_not_there_have_close_ones() {
    let yard = shop();
    let (catalog, own, ada) = (yard.catalog(), SourceName::new("programs"), ada());
    let seen = Seen { catalog: &catalog, principal: &ada, own: &own };
    let index = Index::of(&catalog);
    assert_eq!(close(&seen, &index, "mcp__files__raedFile")[0], "mcp__files__readFile");
    assert_eq!(close(&seen, &index, "financials_query"), ["mcp__finance__query_financials"]);
    let hidden = close(&seen, &index, "mcp__files__delete_everythin");
    assert!(
        !hidden.is_empty() && !hidden.contains(&"mcp__files__delete_everything".to_owned()),
        "{hidden:?}"
    );
    assert_eq!(close(&seen, &index, &"é".repeat(100_000)), Vec::<String>::new());
}

#[tokio::test]
async fn the_index_is_made_once_for_a_catalog() {
    let yard = shop();
    let indexes = Indexes::default();
    let catalog = yard.catalog();
    let first = indexes.of(&catalog).await;
    assert!(Arc::ptr_eq(&first, &indexes.of(&catalog).await));
    yard.add(Fake::offering("more", &[described("new", "", &[])]));
    assert!(!Arc::ptr_eq(&first, &indexes.of(&yard.catalog()).await));
}
