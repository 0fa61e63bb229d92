//! Who may make the tester connect to which address, and what its errors reveal. Everything runs on
//! loopback. Unit tests cover the rules for other addresses.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{AllowList, CallRequest, CallTarget, Permissions, Principal, SourceName, Yard};
use toolyard_tester::{Tester, TesterServer, TesterSettings, TesterSharing};
use toolyard_testkit::odd::{Kind, start_in_process};
use toolyard_testkit::web::{Web, What as Says};
use toolyard_upstream::{ServerSettings, TransportSettings, UpstreamContext, UrlKind, UrlSettings};

use super::tree::keeper;

/// A tester over HTTP, and the servers that the configuration names.
struct Stage {
    yard: Arc<Yard>,
    tester: Arc<Tester>,
}

impl Stage {
    fn new(servers: impl IntoIterator<Item = ServerSettings>) -> Self {
        let known =
            |settings: ServerSettings| (settings.name.to_string(), TesterServer::Ready(Box::new(settings)));
        let servers: BTreeMap<String, TesterServer> = servers.into_iter().map(known).collect();
        let common =
            UpstreamContext::new(keeper(), to_raw(&json!({"name": "test", "version": "1"}))).unwrap();
        let settings = TesterSettings::new(TesterSharing::Session);
        let tester = Tester::new(settings, common, Arc::new(ArcSwap::from_pointee(servers)));
        Self { yard: Yard::with_sources([Arc::clone(&tester) as _]), tester }
    }

    async fn uses(&self, who: &Principal, tool: &str, arguments: Value) -> Value {
        let what = CallTarget::Tool { name: tool.to_owned(), arguments: Some(to_raw(&arguments)) };
        let outcome = self.yard.call(CallRequest::new(what, who.clone())).await.unwrap();
        let result: Value = serde_json::from_str(outcome.body.get()).unwrap();
        result["structuredContent"].clone()
    }

    /// Connects and disconnects again. Returns the error, if any.
    async fn connects(&self, who: &Principal, url: &str) -> Result<(), Value> {
        let answer = self.uses(who, "connect_to_server", json!({"url": url})).await;
        if answer["success"] == true {
            self.uses(who, "disconnect", json!({})).await;
            return Ok(());
        }
        Err(answer["error"].clone())
    }

    async fn lacks(&self, who: &Principal, url: &str) -> String {
        let error = self.connects(who, url).await.expect_err(url);
        let message = error["message"].as_str().unwrap();
        let (_, missing) = message.split_once("needs the permission ").unwrap_or_else(|| panic!("{error:#}"));
        missing.trim_matches('`').to_owned()
    }
}

fn who(permissions: &[&str]) -> Principal {
    let held = permissions.iter().map(|&name| name.to_owned()).collect();
    Principal::new(format!("with {}", permissions.join(" ")), Permissions::Only(held))
}

fn at(name: &str, url: &str, permissions: &[&str]) -> ServerSettings {
    let transport = UrlSettings { url: url.to_owned(), headers: BTreeMap::new(), kind: UrlKind::Any };
    ServerSettings {
        permissions: permissions.iter().map(|&name| name.to_owned()).collect(),
        ..ServerSettings::new(SourceName::new(name), TransportSettings::Url(transport))
    }
}

fn port(url: &str) -> &str {
    url.rsplit_once(':').unwrap().1.split('/').next().unwrap()
}

#[tokio::test]
async fn connecting_by_address_needs_connect_and_for_an_inside_address_connect_inside() {
    let server = start_in_process(Kind::LegacyOnly).await.unwrap();
    let stage = Stage::new([]);
    let port = port(&server.url);
    for host in ["127.0.0.1", "localhost", "LOCALHOST.", "127.1", "2130706433", "[::ffff:127.0.0.1]", "0"] {
        let url = format!("http://{host}:{port}/mcp");
        assert_eq!(stage.lacks(&who(&[]), &url).await, "connect", "{url}");
        assert_eq!(stage.lacks(&who(&["observe", "manage", "spawn"]), &url).await, "connect", "{url}");
        assert_eq!(stage.lacks(&who(&["connect"]), &url).await, "connect-inside", "{url}");
    }
    assert_eq!(stage.connects(&who(&["connect", "connect-inside"]), &server.url).await, Ok(()));
    assert_eq!(stage.connects(&Principal::owner(), &server.url).await, Ok(()));
    stage.tester.stop().await;
}

#[tokio::test]
async fn an_address_of_a_configured_server_needs_its_permissions_however_it_is_written() {
    let server = start_in_process(Kind::LegacyOnly).await.unwrap();
    let stage = Stage::new([at("vault", &server.url, &["admin"])]);
    let port = port(&server.url);
    let anywhere = who(&["connect", "connect-inside", "spawn"]);
    for host in [
        "127.0.0.1",
        "localhost",
        "a.localhost",
        "127.1",
        "127.9.9.9",
        "0x7f.1",
        "[::ffff:7f00:1]",
        "0.0.0.0",
        "[::1]",
    ] {
        for path in ["mcp", "mcp/", "other", "mcp?x=1", "./mcp", ""] {
            let url = format!("http://{host}:{port}/{path}");
            assert_eq!(stage.lacks(&anywhere, &url).await, "admin", "{url}");
        }
    }
    assert_eq!(stage.lacks(&anywhere, &format!("https://127.0.0.1:{port}/mcp")).await, "admin");
    // With the required permissions, it is treated like the configured server. Another path is
    // another address.
    let admin = who(&["admin"]);
    assert_eq!(stage.connects(&admin, "vault").await, Ok(()));
    assert_eq!(stage.connects(&admin, &server.url).await, Ok(()));
    assert_eq!(stage.lacks(&admin, &format!("http://127.0.0.1:{port}/other")).await, "connect");
    stage.tester.stop().await;
}

#[tokio::test]
async fn a_configured_server_that_a_principal_does_not_see_is_like_an_address_where_nothing_listens() {
    let server = start_in_process(Kind::LegacyOnly).await.unwrap();
    let stage = Stage::new([at("vault", &server.url, &[])]);
    let seen = AllowList { sources: Some(vec!["mcp-test-mcp".into()]), tools: None };
    let blind = who(&["connect", "connect-inside", "manage"]).with_allow_list(seen.clone());
    let closed = "http://127.0.0.1:1/mcp";
    let nothing = stage.connects(&blind, closed).await.unwrap_err();
    for url in [server.url.clone(), server.url.replace("127.0.0.1", "localhost"), format!("{}/x", server.url)]
    {
        let error = stage.connects(&blind, &url).await.unwrap_err();
        assert_eq!(error.to_string().replace(&url, closed), nothing.to_string());
    }
    // Its name is unknown too, so it is treated as a command line.
    assert_eq!(stage.lacks(&blind, "vault").await, "spawn");
    assert_eq!(stage.lacks(&who(&[]).with_allow_list(seen), &server.url).await, "connect");
    stage.tester.stop().await;
}

#[tokio::test]
async fn errors_about_strangers_are_all_the_same_for_callers_that_may_not_spawn() {
    let stage = Stage::new([]);
    let answers = [
        Web::answer("500 Internal Server Error", "", "the body of a stranger"),
        Web::answer("401 Unauthorized", "www-authenticate: Bearer realm=\"stranger\"\r\n", ""),
        Web::answer("200 OK", "content-type: text/html\r\n", "<h1>stranger</h1>"),
        Web::answer("400 Bad Request", "", r#"{"error":{"code":-32000,"message":"stranger"}}"#),
        Web::answer("302 Found", "location: http://stranger.invalid/\r\n", ""),
        Says::Says("stranger".to_owned()),
    ];
    let mut strangers = Vec::new();
    for answer in answers {
        strangers.push(Web::start(answer).await);
    }
    let guest = who(&["connect", "connect-inside"]);
    let closed = "http://127.0.0.1:1/mcp";
    let nothing = stage.connects(&guest, closed).await.unwrap_err();
    assert_eq!(nothing["details"], json!({}));
    for stranger in &strangers {
        let error = stage.connects(&guest, &stranger.url()).await.unwrap_err();
        assert_eq!(error.to_string().replace(&stranger.url(), closed), nothing.to_string());
    }
    let trusted = who(&["connect", "connect-inside", "spawn"]);
    let error = stage.connects(&trusted, &strangers[0].url()).await.unwrap_err();
    let url = strangers[0].url();
    assert_eq!(
        error["details"],
        json!({"http_status": 500, "body": "the body of a stranger", "server_url": url})
    );
    assert!(
        stage.connects(&trusted, closed).await.unwrap_err()["message"].as_str().unwrap().contains("refused")
    );
    assert!(
        stage
            .connects(&Principal::owner(), &strangers[0].url())
            .await
            .unwrap_err()
            .to_string()
            .contains("body of a")
    );
    stage.tester.stop().await;
}

#[tokio::test]
async fn what_a_stranger_says_against_the_rules_is_counted_and_not_repeated() {
    let server = start_in_process(Kind::Noisy).await.unwrap();
    let stage = Stage::new([]);
    for (guest, sees) in [(who(&["connect", "connect-inside"]), false), (Principal::owner(), true)] {
        let connected = stage.uses(&guest, "connect_to_server", json!({"url": server.url})).await;
        assert_eq!(connected["success"], true, "{connected:#}");
        let listed = stage.uses(&guest, "list_tools", json!({})).await;
        let status = stage.uses(&guest, "get_connection_status", json!({})).await;
        assert!(status["statistics"]["protocol_violations"].as_u64().unwrap() > 0, "{status:#}");
        let text = format!("{} {} {}", connected["metadata"], listed["metadata"], status);
        assert!(text.contains("violated the protocol") || sees, "{text}");
        assert_eq!(text.contains("not a message"), sees, "{text}");
        stage.uses(&guest, "disconnect", json!({})).await;
    }
    stage.tester.stop().await;
}

#[tokio::test]
async fn errors_of_a_connected_stranger_are_hidden_as_well() {
    let server = start_in_process(Kind::ModernOnly).await.unwrap();
    let front = Web::start(Says::Server(server.url.split('/').nth(2).unwrap().to_owned())).await;
    let stage = Stage::new([]);
    for (guest, sees) in [(who(&["connect", "connect-inside"]), false), (Principal::owner(), true)] {
        front.switch(Says::Server(server.url.split('/').nth(2).unwrap().to_owned()));
        let answer = stage.uses(&guest, "connect_to_server", json!({"url": front.url()})).await;
        assert_eq!(answer["success"], true, "{answer:#}");
        front.switch(Web::answer("503 Service Unavailable", "", "the body of a stranger"));
        // The first call may use a connection that broke during the switch.
        stage.uses(&guest, "list_tools", json!({})).await;
        let answer = stage.uses(&guest, "list_tools", json!({})).await;
        assert_eq!(answer["success"], false, "{answer:#}");
        assert_eq!(answer["error"].to_string().contains("stranger"), sees, "{answer:#}");
        assert_eq!(answer["error"].to_string().contains("503"), sees, "{answer:#}");
        stage.uses(&guest, "disconnect", json!({})).await;
    }
    stage.tester.stop().await;
}

#[tokio::test]
async fn a_permission_that_was_taken_away_ends_the_use_of_an_open_connection() {
    let server = start_in_process(Kind::LegacyOnly).await.unwrap();
    let stage = Stage::new([]);
    let as_id = |held: &[&str]| {
        Principal::new("ann", Permissions::Only(held.iter().map(|&name| name.to_owned()).collect()))
    };
    let connected = stage
        .uses(&as_id(&["connect", "connect-inside"]), "connect_to_server", json!({"url": server.url}))
        .await;
    assert_eq!(connected["success"], true, "{connected:#}");
    let refused = stage.uses(&as_id(&["connect"]), "list_tools", json!({})).await;
    assert!(
        refused["error"]["message"].as_str().unwrap().ends_with("needs the permission `connect-inside`"),
        "{refused:#}"
    );
    assert_eq!(stage.uses(&as_id(&[]), "disconnect", json!({})).await["success"], true);
    stage.tester.stop().await;
}
