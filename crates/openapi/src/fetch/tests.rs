//! Which hosts documents and their references are fetched from.

use std::sync::Arc;

use serde_json::json;
use tokio::runtime::Handle;

use super::{blocking_fetcher, document_fetcher};
use crate::clients::HttpClients;
use crate::document::{DocumentLocation, FetchFn, LoadSettings, load};
use crate::fake_server::{FakeServer, StaticResolver, answer, http_clients, json, tls_config};
use crate::host_policy::AllowedHosts;

/// The result of fetching on a thread that may block.
async fn fetched(fetch: Arc<FetchFn>, address: &str) -> Result<String, String> {
    let address = address.to_owned();
    let brought = tokio::task::spawn_blocking(move || fetch(&address)).await.unwrap();
    brought.map(|bytes| String::from_utf8(bytes).unwrap())
}

const INSIDE: &str = "which is not a public address";

#[tokio::test]
async fn a_reference_to_an_inside_address_is_refused_and_the_rest_is_served() {
    let fake = FakeServer::start(|_, _| json(r#"{"S":{"type":"integer"}}"#)).await;
    let port = fake.port;
    let schema = |host: &str| json!({"$ref": format!("http://{host}:{port}/s.json#/S")});
    let hosts = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "a.localhost"];
    let parameters: Vec<_> = hosts
        .iter()
        .enumerate()
        .map(|(n, host)| json!({"name": format!("p{n}"), "in": "query", "schema": schema(host)}))
        .collect();
    let document = json!({"openapi": "3.1.0", "paths": {"/": {"get": {"parameters": parameters, "responses": {"204": {}}}}}});
    let location = DocumentLocation::Text { text: document.to_string(), folder: None };
    let settings = LoadSettings {
        fetch: Some(document_fetcher("document.json", http_clients(), Handle::current())),
        follow_network_references: true,
        ..LoadSettings::default()
    };
    let work = tokio::task::spawn_blocking(move || {
        crate::convert::convert(&load(&location, &settings).unwrap(), &Default::default())
    });
    let conversion = work.await.unwrap();
    let messages: Vec<&str> = conversion.diagnostics.iter().map(|found| found.message.as_str()).collect();
    assert_eq!((conversion.operations.len(), messages.len()), (1, 5), "{messages:?}");
    assert!(messages.iter().all(|message| message.contains(INSIDE)), "{messages:?}");
    assert_eq!(fake.request_lines(), [""; 0]);
}

#[tokio::test]
async fn the_host_that_a_person_has_named_may_be_inside_and_redirect_to_itself() {
    let fake = FakeServer::start(|_, seen| match seen.line.as_str() {
        "GET /a" => answer("302 Found", "location: b/c\r\n", ""),
        line => json(&format!("{:?}", line)),
    })
    .await;
    let document = format!("{}/a", fake.url());
    assert_eq!(
        fetched(document_fetcher(&document, http_clients(), Handle::current()), &document).await,
        Ok("\"GET /b/c\"".to_owned())
    );
}

#[tokio::test]
async fn a_redirect_to_an_inside_address_is_not_followed() {
    let inside = FakeServer::start(|_, _| json("{}")).await;
    let location = format!("location: {}/steal\r\n", inside.url());
    let fake = FakeServer::start(move |_, _| answer("302 Found", &location, "")).await;
    let named = AllowedHosts::new([], &[format!("127.0.0.1:{}", fake.port)]);
    let address = format!("{}/s.json", fake.url());
    let error =
        fetched(blocking_fetcher(named, http_clients(), Handle::current()), &address).await.unwrap_err();
    assert_eq!(error, format!("the document points to {}, {INSIDE}", inside.url()));
    assert_eq!((fake.request_lines().len(), inside.request_lines().len()), (1, 0));
    for location in ["file:///etc/passwd", "ftp://127.0.0.1/"] {
        let fake =
            FakeServer::start(move |_, _| answer("302 Found", &format!("location: {location}\r\n"), ""))
                .await;
        let document = fake.url();
        let error = fetched(document_fetcher(&document, http_clients(), Handle::current()), &document)
            .await
            .unwrap_err();
        assert!(error.ends_with("is not an http:// or https:// URL"), "{error}");
    }
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_fetched_from() {
    let fake = FakeServer::start(|_, _| json("{}")).await;
    let names = StaticResolver(vec![[127, 0, 0, 1].into(), [169, 254, 169, 254].into()]);
    let leading = HttpClients::with_resolver(names, &tls_config());
    let fetch = document_fetcher("document.json", leading.unwrap(), Handle::current());
    let error = fetched(fetch, &format!("http://schemas.example.com:{}/s", fake.port)).await.unwrap_err();
    assert!(error.ends_with("the host name does not resolve to a public address"), "{error}");
    assert_eq!(fake.request_lines(), [""; 0]);
}

#[tokio::test]
async fn going_round_in_circles_ends() {
    let fake = FakeServer::start(|_, _| answer("307 Temporary Redirect", "location: /a\r\n", "")).await;
    let document = fake.url();
    let error =
        fetched(document_fetcher(&document, http_clients(), Handle::current()), &document).await.unwrap_err();
    assert_eq!(error, format!("{document} redirected more than 5 times"));
    assert_eq!(fake.request_lines().len(), 6);
}
