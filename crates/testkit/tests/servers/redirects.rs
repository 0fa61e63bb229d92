//! A redirect to another origin is not followed: no body, no configured header and none of the
//! caller's headers are sent there.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolyard_hub::json::to_raw;
use toolyard_hub::{CallRequest, CallTarget, Principal, Secret, Source, SourceName, SourceState, Yard};
use toolyard_testkit::harness::within_timeout;
use toolyard_testkit::web::Web;
use toolyard_upstream::{ServerSettings, TransportSettings, Upstream, UpstreamContext, UrlKind, UrlSettings};

use super::raw_http::redirecting_calls;
use super::tree::keeper;

/// A listener that records what it receives.
async fn listener() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/elsewhere", listener.local_addr().unwrap());
    let received: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = vec![0; 65536];
            let length = stream.read(&mut bytes).await.unwrap_or_default();
            sink.lock().push(String::from_utf8_lossy(&bytes[..length]).into_owned());
            let _ =
                stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
        }
    });
    (url, received)
}

#[tokio::test]
async fn a_redirect_to_another_origin_carries_nothing_there_and_the_error_names_it() {
    for status in ["307 Temporary Redirect", "308 Permanent Redirect"] {
        for kind in [UrlKind::Any, UrlKind::LegacySse] {
            let (elsewhere, received) = listener().await;
            let server = Web::start(Web::answer(status, &format!("location: {elsewhere}\r\n"), "")).await;
            let headers = BTreeMap::from([
                ("x-api-key".to_owned(), Secret::new("s3cret")),
                ("authorization".to_owned(), Secret::new("Bearer s3cret")),
                ("cookie".to_owned(), Secret::new("session=s3cret")),
            ]);
            let transport = TransportSettings::Url(UrlSettings { url: server.url(), headers, kind });
            let settings = ServerSettings::new(SourceName::new("moved"), transport);
            let me = to_raw(&json!({"name": "test", "version": "1"}));
            let upstream = Upstream::start(settings, UpstreamContext::new(keeper(), me).unwrap());
            let settled = async {
                while matches!(upstream.status().state, SourceState::Starting) {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
            };
            within_timeout("the server to be given up", settled).await;
            assert_eq!(*received.lock(), [""; 0], "{status} {kind:?}");
            let status = upstream.status();
            let status_text = format!("{status:?}");
            assert!(
                status_text.contains(&format!("redirects to {elsewhere}, which is another origin")),
                "{status_text}"
            );
            assert!(!status_text.contains("s3cret"), "{status_text}");
            upstream.stop().await;
        }
    }
}

#[tokio::test]
async fn a_redirected_call_carries_neither_headers_of_the_caller_nor_the_session_to_another_origin() {
    for status in ["307 Temporary Redirect", "308 Permanent Redirect"] {
        let (elsewhere, received) = listener().await;
        let server = redirecting_calls(status, elsewhere.clone()).await;
        let url = UrlSettings { url: server.url.clone(), headers: [].into(), kind: UrlKind::Any };
        let settings = ServerSettings {
            forward_headers: vec!["X-Tenant".to_owned(), "Authorization".to_owned(), "Cookie".to_owned()],
            ..ServerSettings::new(SourceName::new("moved"), TransportSettings::Url(url))
        };
        let me = to_raw(&json!({"name": "test", "version": "1"}));
        let upstream = Upstream::start(settings, UpstreamContext::new(keeper(), me).unwrap());
        let yard = Yard::with_sources([Arc::clone(&upstream) as _]);
        within_timeout("the server", async {
            while upstream.status().state != SourceState::Ready {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        })
        .await;
        let given = [
            ("x-tenant", "s3cret-tenant"),
            ("authorization", "Bearer s3cret-token"),
            ("cookie", "s3cret-cookie"),
        ];
        let headers = given.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let what = CallTarget::Tool {
            name: "mcp__moved__small".to_owned(),
            arguments: Some(to_raw(&json!({"key": "s3cret"}))),
        };
        let request = CallRequest { headers, ..CallRequest::new(what, Principal::owner()) };
        let error = within_timeout("the call", yard.call(request)).await.unwrap_err();
        let received = received.lock().clone();
        let secrets = ["x-tenant", "authorization", "cookie", "mcp-session-id", "s3cret"];
        let arrived =
            |name: &&str| received.iter().any(|request| request.to_ascii_lowercase().contains(name));
        assert_eq!(secrets.into_iter().filter(arrived).collect::<Vec<_>>(), [""; 0], "{status}");
        assert_eq!(received, [""; 0], "{status}");
        assert!(error.message().contains(&format!("redirects to {elsewhere}")), "{}", error.message());
        // The server itself receives all of them.
        let calls = server.calls.lock().clone();
        for line in given.map(|(name, value)| format!("{name}: {}", value.to_ascii_lowercase())) {
            assert!(calls.iter().any(|head| head.contains(&line)), "{line}: {calls:?}");
        }
        assert!(calls.iter().all(|head| head.contains("mcp-session-id: s3ssion")), "{calls:?}");
        upstream.stop().await;
    }
}
