//! Lists of tools: visibility, filters, pages, entity tags, and names in URLs.

use serde_json::{Value, json};
use toolyard_testkit::harness::Answer;

use super::workbench;

fn names(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = answer.json();
    body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn filters_narrow_the_list() {
    let server = workbench(&["--odd", "legacy-only"]).await;
    let list = async |query: &str| names(&server.get(&format!("/mcp/tools?{query}")).await);
    assert_eq!(list("server=legacy-only").await, ["mcp__legacy-only__echo", "mcp__legacy-only__requests"]);
    assert_eq!(list("category=analysis").await, ["advanced_tool"]);
    assert_eq!(list("tag=code&tag=quality").await, ["advanced_tool"]);
    assert_eq!(list("tag=code&tag=other").await, Vec::<String>::new());
    assert_eq!(list("q=QUALITY+patterns").await, ["analyze_code"]);
    assert_eq!(list("q=echo&server=legacy-only").await, ["mcp__legacy-only__echo"]);
    assert_eq!(list("q=%25").await, Vec::<String>::new());
    assert_eq!(list("server=unknown").await, Vec::<String>::new());
}

#[tokio::test]
async fn pages_make_up_the_whole_list() {
    let server = workbench(&[]).await;
    let all = names(&server.get("/mcp/tools").await);
    assert!(all.len() > 20);
    let mut paged = Vec::new();
    let mut path = "/mcp/tools?limit=7".to_owned();
    loop {
        let page = server.get(&path).await;
        paged.extend(names(&page));
        match page.json()["nextCursor"].as_str() {
            Some(cursor) => path = format!("/mcp/tools?limit=7&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(paged, all);
    let stale = server.get("/mcp/tools?cursor=after.unknown").await;
    assert_eq!(stale.refusal(), (409, "VALIDATION_ERROR".to_owned()));
    let long = format!("/mcp/tools?q={}", "e+".repeat(101));
    assert_eq!(server.get(&long).await.refusal(), (400, "VALIDATION_ERROR".to_owned()));
    for wrong in ["limit=0", "limit=1001", "limit=x", "limit=-1", "limit=1&limit=2", "cursor=x", "catgory=a"]
    {
        let answer = server.get(&format!("/mcp/tools?{wrong}")).await;
        assert_eq!(answer.refusal(), (400, "VALIDATION_ERROR".to_owned()), "{wrong}");
    }
}

#[tokio::test]
async fn a_list_that_the_client_has_is_not_sent_again() {
    let server = workbench(&[]).await;
    let first = server.get("/mcp/tools").await;
    let tag = first.header("etag").unwrap().to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    let again = async |path: &str, tags: &str| {
        server.request("GET", path, &[("if-none-match", tags)], b"").await.read_body().await
    };
    let known = again("/mcp/tools", &format!("\"other\", {tag}")).await;
    assert_eq!((known.status, known.text.as_str(), known.header("etag")), (304, "", Some(tag.as_str())));
    assert_eq!(again("/mcp/tools", "\"other\"").await.status, 200);
    assert_eq!(again("/mcp/tools?limit=1", &tag).await.status, 200);
    // Another list has another tag.
    server.execute("change_tools", json!({})).await;
    let grown = again("/mcp/tools", &tag).await;
    assert_eq!(grown.status, 200);
    assert_ne!(grown.header("etag"), Some(tag.as_str()));
}

#[tokio::test]
async fn everybody_sees_only_what_they_may_use() {
    let server = workbench(&["--token", "ada=all", "--token", "bob=none="]).await;
    let get = async |path: &str, secret: &str| {
        let token = format!("Bearer {secret}");
        server.request("GET", path, &[("authorization", &token)], b"").await.read_body().await
    };
    let (adas, bobs) = (get("/mcp/tools", "all").await, get("/mcp/tools", "none").await);
    let sensitive = "sensitive_tool".to_owned();
    assert!(names(&adas).contains(&sensitive) && !names(&bobs).contains(&sensitive));
    assert_ne!(adas.header("etag"), bobs.header("etag"));
    assert_eq!(
        get("/mcp/tools/sensitive_tool", "all").await.json()["permissions"],
        json!(["admin", "write"])
    );
    let refused = get("/mcp/tools/sensitive_tool", "none").await;
    assert_eq!(refused.refusal(), (403, "PERMISSION_ERROR".to_owned()));
    let document = get("/openapi.json", "none").await.text;
    assert!(document.contains("analyze_code") && !document.contains("sensitive_tool"));
}

#[tokio::test]
async fn a_tool_is_found_by_its_full_name_a_unique_bare_name_and_encoded() {
    let server = workbench(&["--odd", "legacy-only", "--odd", "clashing-names"]).await;
    server.get("/mcp/tools").await;
    let name = async |path: &str| server.get(&format!("/mcp/tools/{path}")).await.json()["name"].clone();
    assert_eq!(name("mcp__legacy-only__echo").await, "mcp__legacy-only__echo");
    assert_eq!(name("mcp%5F%5Flegacy-only__echo").await, "mcp__legacy-only__echo");
    assert_eq!(name("read.file").await, "mcp__clashing-names__read_file");
    assert_ne!(name("read%20file").await, Value::Null);
    assert_eq!(server.execute("read%20file", json!({})).await.json()["result"], "read file");
    // Three sources offer `echo`. The native one keeps its plain name as its full name.
    assert_eq!(name("echo").await, "echo");
    let several = server.get("/mcp/tools/requests").await;
    assert_eq!(several.refusal(), (404, "TOOL_NOT_FOUND".to_owned()));
    assert_eq!(
        several.json()["error"]["details"]["suggestion"],
        "use one of mcp__legacy-only__requests, mcp__clashing-names__requests"
    );
}

#[tokio::test]
async fn details_show_all_that_the_source_said() {
    let server = workbench(&[]).await;
    let answer = server.get("/mcp/tools/odd").await;
    // Numbers that exceed the range of a double, byte for byte.
    for fragment in ["18446744073709551616", r#""execution":{"taskSupport":"forbidden"}"#, r#""x-null":null"#]
    {
        assert!(answer.text.contains(fragment), "no {fragment} in {}", answer.text);
    }
    let body: Value = serde_json::from_str(&answer.text.replace("1e400", "1e300")).unwrap();
    assert_eq!((&body["rawName"], &body["displayName"]), (&json!("odd"), &json!("odd")));
    assert_eq!((&body["server"], &body["permissions"]), (&json!("probe"), &json!([])));
}
