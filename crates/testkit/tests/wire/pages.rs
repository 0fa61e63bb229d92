//! Paginated lists: every page, no duplicates, and cursors that only the server can create.

use serde_json::{Value, json};
use toolyard_testkit::harness::Client;

use super::start::{both_eras, everywhere, probe, probe_with};

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("prompts/list", "prompts"),
];

#[tokio::test]
async fn the_pages_of_a_list_make_the_whole_list() {
    for (over, version) in everywhere() {
        let mut whole = probe(over, version).await;
        let mut paged = probe_with(&["--page", "4"], over, version).await;
        for (method, key) in LISTS {
            let all = whole.ask(method, "{}").await.answer.result()[key].as_array().unwrap().clone();
            let pages = pages(&mut paged, method, key).await;
            assert!(pages.iter().rev().skip(1).all(|page| page.len() == 4), "{over:?} {version} {method}");
            assert_eq!(pages.concat(), all, "{over:?} {version} {method}");
        }
    }
}

async fn pages(client: &mut Client, method: &str, key: &str) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    let mut params = json!({});
    loop {
        let answer = client.ask(method, &params).await.answer;
        pages.push(answer.result()[key].as_array().unwrap().clone());
        match &answer.result()["nextCursor"] {
            Value::Null => return pages,
            cursor => params = json!({"cursor": cursor}),
        }
    }
}

#[tokio::test]
async fn a_cursor_that_is_none_is_refused() {
    for (over, version) in both_eras() {
        let mut client = probe_with(&["--page", "2"], over, version).await;
        let of_tools = client.ask("tools/list", "{}").await.answer.result()["nextCursor"].clone();
        for cursor in [json!(""), json!("x"), json!("dG9vbHM"), json!("é"), json!(7), json!({}), json!([])] {
            let refused = client.ask("tools/list", json!({"cursor": cursor})).await.answer;
            assert_eq!(refused.code(), -32602, "{over:?} {version} {cursor}");
        }
        let refused = client.ask("prompts/list", json!({"cursor": of_tools})).await.answer;
        assert_eq!(refused.code(), -32602, "{over:?} {version}: a cursor of another list");
        client.ask("tools/list", json!({"cursor": of_tools})).await.answer.result();
    }
}
