//! A document in a yard: loaded, called, changed, broken and fixed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use toolyard_hub::{
    CallRequest, CallTarget, CatalogView, DefinitionBudget, DefinitionLimits, ErrorKind, Permissions,
    Principal, Source, SourceName, SourceState, Yard, YardEvent, YardSettings,
};

use super::OpenApiSource;
use crate::document::DocumentLocation;
use crate::fake_server::{self, FakeReply, FakeServer, answer, json};
use crate::settings::DocumentSettings;

/// A folder that is deleted at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("toolyard-openapi-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A document with these operationIds, each a GET at its own path.
fn document(ids: &[&str]) -> String {
    let paths: Vec<String> = ids
        .iter()
        .map(|id| format!(r#""/{id}":{{"get":{{"operationId":"{id}","responses":{{}}}}}}"#))
        .collect();
    format!(r#"{{"openapi":"3.1.0","info":{{"title":"T","version":"1"}},"paths":{{{}}}}}"#, paths.join(","))
}

fn settings(location: DocumentLocation) -> DocumentSettings {
    DocumentSettings::new(SourceName::new("made"), location)
}

struct Stage {
    yard: Arc<Yard>,
    source: Arc<OpenApiSource>,
}

impl Stage {
    async fn of(settings: DocumentSettings) -> Self {
        Self::within(settings, DefinitionBudget::default()).await
    }

    async fn within(settings: DocumentSettings, definitions: DefinitionBudget) -> Self {
        let yard = Yard::new(YardSettings::default());
        let source = OpenApiSource::start(settings, fake_server::http_clients(), definitions);
        yard.add(Arc::clone(&source) as Arc<dyn Source>);
        yard.wait_for_startup(Duration::from_secs(10)).await;
        Self { yard, source }
    }

    fn tools(&self) -> Vec<String> {
        self.yard.catalog().tools().iter().map(|tool| tool.raw_name.clone()).collect()
    }

    async fn until(&self, what: &str, fits: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !fits(self) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(15), waiting)
            .await
            .unwrap_or_else(|_| panic!("{what}: {:?}", self.source.status()));
    }

    async fn call(&self, name: &str) -> Result<String, toolyard_hub::HubError> {
        let what = CallTarget::Tool { name: name.to_owned(), arguments: None };
        let outcome = self.yard.call(CallRequest::new(what, Principal::owner())).await?;
        Ok(outcome.body.get().to_owned())
    }
}

#[tokio::test]
async fn a_file_is_served_and_followed() {
    let fake = FakeServer::start(|_, seen| json(&format!(r#"{{"saw":"{}"}}"#, seen.line))).await;
    let folder = Folder::new();
    let path = folder.write("a.json", &document(&["one", "two"]));
    let stage =
        Stage::of(DocumentSettings { base_url: Some(fake.url()), ..settings(DocumentLocation::File(path)) })
            .await;
    assert_eq!(stage.tools(), ["one", "two"]);
    assert_eq!(stage.source.status().state, SourceState::Ready);
    assert_eq!(stage.source.status().transport, Some("openapi"));
    assert!(
        stage.call("mcp__made__one").await.unwrap().contains(r#""structuredContent":{"saw":"GET /one"}"#)
    );

    let mut changes = stage.yard.events().subscribe_changes();
    folder.write("a.json", &document(&["one", "three"]));
    stage.until("the new version", |stage| stage.tools() == ["one", "three"]).await;
    let tools_changed = async {
        while let Ok(event) = changes.recv().await {
            if matches!(&*event, YardEvent::CatalogChanged(change, _) if change.tools) {
                return;
            }
        }
    };
    timeout(Duration::from_secs(5), tools_changed).await.unwrap();
    assert_eq!(stage.call("mcp__made__two").await.unwrap_err().kind(), ErrorKind::UnknownTool);
    stage.source.stop().await;
}

#[tokio::test]
async fn a_broken_version_changes_nothing_but_the_warnings() {
    let folder = Folder::new();
    let path = folder.write("a.json", &document(&["one"]));
    let stage = Stage::of(settings(DocumentLocation::File(path))).await;
    folder.write("a.json", "{ this is not a document");
    stage
        .until("the warning", |stage| {
            stage
                .source
                .status()
                .warnings
                .iter()
                .any(|warning| warning.starts_with("serving the previous version"))
        })
        .await;
    assert_eq!(stage.tools(), ["one"]);
    assert_eq!(stage.source.status().state, SourceState::Ready);
    folder.write("a.json", &document(&["one", "two"]));
    stage.until("the fixed version", |stage| stage.tools() == ["one", "two"]).await;
    assert!(
        !stage
            .source
            .status()
            .warnings
            .iter()
            .any(|warning| warning.starts_with("serving the previous version"))
    );
}

#[tokio::test]
async fn a_file_that_is_not_there_yet_is_waited_for() {
    let folder = Folder::new();
    let stage = Stage::of(settings(DocumentLocation::File(folder.0.join("a.json")))).await;
    let status = stage.source.status();
    assert_eq!(status.state, SourceState::Retrying);
    assert!(status.reason.unwrap().contains("a.json"));
    folder.write("a.json", &document(&["one"]));
    stage.until("the file", |stage| stage.tools() == ["one"]).await;
}

#[tokio::test]
async fn a_change_of_a_file_that_the_document_names_is_one_of_the_document() {
    let folder = Folder::new();
    let main = r##"{"openapi":"3.1.0","info":{"title":"T","version":"1"},"paths":{"/a":{"get":{"operationId":"a",
        "parameters":[{"name":"q","in":"query","schema":{"$ref":"other.json#/S"}}],"responses":{}}}}}"##;
    folder.write("other.json", r#"{"S":{"type":"string"}}"#);
    let stage = Stage::of(settings(DocumentLocation::File(folder.write("a.json", main)))).await;
    let schema = |stage: &Stage| stage.yard.catalog().tools()[0].input_schema.get().to_owned();
    assert!(schema(&stage).contains(r#""S":{"type":"string"}"#), "{}", schema(&stage));
    folder.write("other.json", r#"{"S":{"type":"integer"}}"#);
    stage.until("the other type", |stage| schema(stage).contains(r#""S":{"type":"integer"}"#)).await;
}

#[tokio::test]
async fn a_document_at_an_address_is_asked_for_again_and_its_server_is_where_it_came_from() {
    let version = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&version);
    let fake = FakeServer::start(move |_, seen| {
        let version = now.load(Ordering::Relaxed);
        let etag = format!("\"v{version}\"");
        match seen.line.as_str() {
            "GET /api/openapi.json" if seen.header("if-none-match") == Some(&etag) => {
                answer("304 Not Modified", "", "")
            }
            "GET /api/openapi.json" => {
                let ids = ["one", "two", "three"];
                answer("200 OK", &format!("etag: {etag}\r\n"), document(&ids[..=version]))
            }
            _ => json(r#"{"ok":1}"#),
        }
    })
    .await;
    let location = DocumentLocation::Url(format!("{}/api/openapi.json", fake.url()));
    let stage =
        Stage::of(DocumentSettings { reload_every: Duration::from_millis(50), ..settings(location) }).await;
    assert_eq!(stage.tools(), ["one"]);
    // The document has no servers, so the base URL is the root of the document's own URL, even if
    // that is private.
    stage.call("mcp__made__one").await.unwrap();
    assert!(fake.request_lines().contains(&"GET /one".to_owned()));
    let asked = || fake.requests().iter().filter(|seen| seen.header("if-none-match").is_some()).count();
    stage.until("being asked whether it is the same", |_| asked() > 2).await;
    version.store(1, Ordering::Relaxed);
    stage.until("the new version", |stage| stage.tools() == ["one", "two"]).await;
}

#[tokio::test]
async fn an_address_that_fails_is_tried_again_and_says_why() {
    let good = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&good);
    let fake = FakeServer::start(move |_, _| match now.load(Ordering::Relaxed) {
        0 => answer("500 Oops", "", "s3cret"),
        1 => answer("200 OK", "", document(&["one"])),
        _ => FakeReply::Silence,
    })
    .await;
    let location = DocumentLocation::Url(format!("{}/openapi.json?key=s3cret", fake.url()));
    let slow = Duration::from_millis(500);
    let stage =
        Stage::of(DocumentSettings { start_time: slow, reload_every: slow, ..settings(location) }).await;
    let status = stage.source.status();
    assert_eq!((status.state, status.retry_at.is_some()), (SourceState::Retrying, true));
    assert_eq!(status.reason, Some(format!("{} returned HTTP 500", fake.url())));
    let refused = stage.call("mcp__made__one").await.unwrap_err();
    let why = format!("server `made` is retrying: {} returned HTTP 500", fake.url());
    assert_eq!((refused.kind(), refused.message()), (ErrorKind::CannotConnect, why.as_str()));
    good.store(1, Ordering::Relaxed);
    stage.until("being served", |stage| stage.tools() == ["one"]).await;
    good.store(2, Ordering::Relaxed);
    stage
        .until("the warning", |stage| {
            stage.source.status().warnings.iter().any(|warning| warning.contains("timed out after"))
        })
        .await;
    assert_eq!(stage.tools(), ["one"]);
}

#[tokio::test]
async fn a_call_in_flight_keeps_the_version_that_it_began_with() {
    let fake =
        FakeServer::start(|_, seen| if seen.line == "GET /one" { FakeReply::Silence } else { json("{}") })
            .await;
    let folder = Folder::new();
    let path = folder.write("a.json", &document(&["one"]));
    let base = DocumentSettings {
        base_url: Some(fake.url()),
        call_time: Duration::from_secs(3),
        ..settings(DocumentLocation::File(path))
    };
    let stage = Arc::new(Stage::of(base).await);
    let calling = tokio::spawn({
        let stage = Arc::clone(&stage);
        async move { stage.call("mcp__made__one").await }
    });
    stage.until("the call", |_| fake.request_lines() == ["GET /one"]).await;
    folder.write("a.json", &document(&["other"]));
    stage.until("the new version", |stage| stage.tools() == ["other"]).await;
    assert!(!calling.is_finished());
    assert_eq!(calling.await.unwrap().unwrap_err().kind(), ErrorKind::TimedOut);
}

#[tokio::test]
async fn tools_can_be_left_out_hidden_and_kept_for_those_who_may() {
    let folder = Folder::new();
    let path = folder.write("a.json", &document(&["get_a", "get_b", "drop_c"]));
    let stage = Stage::of(DocumentSettings {
        enabled_tools: Some(vec!["get_*".to_owned(), "drop_*".to_owned()]),
        disabled_tools: vec!["*_b".to_owned()],
        permissions: vec!["read".to_owned()],
        tool_permissions: [("drop_*".to_owned(), vec!["admin".to_owned()])].into(),
        ..settings(DocumentLocation::File(path))
    })
    .await;
    assert_eq!(stage.tools(), ["get_a", "drop_c"]);
    let reader = Principal::new("reader", Permissions::Only(["read".to_owned()].into()));
    let seen: Vec<String> =
        CatalogView::new(stage.yard.catalog(), reader).tools().map(|tool| tool.raw_name.clone()).collect();
    assert_eq!(seen, ["get_a"]);
}

#[tokio::test]
async fn what_a_person_should_know_is_among_the_warnings() {
    let folder = Folder::new();
    let text = r#"{"openapi":"3.0.3","info":{"title":"T","version":"1"},"servers":[{"url":"http://169.254.169.254/latest"}],
        "paths":{"/a":{"get":{"operationId":"a","responses":{}}}}}"#;
    let mut settings = settings(DocumentLocation::File(folder.write("a.json", text)));
    let token = crate::settings::ApiCredential::Token(toolyard_hub::Secret::new("t"));
    settings.auth.schemes.insert("unknown".to_owned(), token);
    let stage = Stage::of(settings).await;
    assert_eq!(
        stage.source.status().warnings,
        [
            "auth.unknown matches no security scheme of the document (available: none)",
            "some tools cannot be called: the document points to http://169.254.169.254, which is not a public address; if you trust this host, add it to `allow_hosts` of this server, set `base_url`, or pass `--base-url`",
        ]
    );
    assert_eq!(stage.call("mcp__made__a").await.unwrap_err().kind(), ErrorKind::CannotConnect);
}

#[tokio::test]
async fn a_document_that_is_switched_off_is_not_read() {
    let off =
        DocumentSettings { enabled: false, ..settings(DocumentLocation::File("/nowhere/a.json".into())) };
    let stage = Stage::of(off).await;
    assert_eq!((stage.source.status().state, stage.tools().len()), (SourceState::Disabled, 0));
    stage.source.stop().await;
}

#[tokio::test]
async fn a_document_with_more_tools_than_fit_is_not_served_and_a_smaller_one_is() {
    let budget = DefinitionBudget::new(DefinitionLimits { per_source: 1_000, total: 10_000 });
    let folder = Folder::new();
    let many: Vec<String> = (0..30).map(|number| format!("operation{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let path = folder.write("a.json", &document(&many));
    let stage = Stage::within(settings(DocumentLocation::File(path)), budget.clone()).await;
    let status = stage.source.status();
    assert_eq!((status.state, stage.tools().len(), budget.used()), (SourceState::Retrying, 0, 0));
    let reason = status.reason.unwrap();
    assert!(reason.starts_with("it exceeds the limit of 1000 bytes of definitions"), "{reason}");
    folder.write("a.json", &document(&["one"]));
    stage.until("the smaller version", |stage| stage.tools() == ["one"]).await;
    assert!((1..1_000).contains(&budget.used()), "{}", budget.used());
    stage.source.stop().await;
}
