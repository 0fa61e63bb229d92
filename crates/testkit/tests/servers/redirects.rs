//! A server that redirects to another origin gets nothing sent there: no body, no header of the configuration, none of
//! the caller's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolyard_hub::json::to_raw;
use toolyard_hub::{Secret, Source, SourceName, State};
use toolyard_testkit::harness::soon;
use toolyard_testkit::web::Web;
use toolyard_upstream::{Common, ServerSettings, TransportSettings, Upstream, UrlKind, UrlSettings};

use super::tree::keeper;

/// Something that listens and keeps what is sent to it.
async fn listener() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/elsewhere", listener.local_addr().unwrap());
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = vec![0; 65536];
            let length = stream.read(&mut bytes).await.unwrap_or_default();
            kept.lock().unwrap().push(String::from_utf8_lossy(&bytes[..length]).into_owned());
            let _ =
                stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
        }
    });
    (url, heard)
}

#[tokio::test]
async fn a_redirect_to_another_origin_carries_nothing_there_and_the_error_names_it() {
    for status in ["307 Temporary Redirect", "308 Permanent Redirect"] {
        for kind in [UrlKind::Any, UrlKind::OldSse] {
            let (elsewhere, heard) = listener().await;
            let server = Web::start(Web::answer(status, &format!("location: {elsewhere}\r\n"), "")).await;
            let headers = BTreeMap::from([
                ("x-api-key".to_owned(), Secret::new("s3cret")),
                ("authorization".to_owned(), Secret::new("Bearer s3cret")),
                ("cookie".to_owned(), Secret::new("session=s3cret")),
            ]);
            let transport = TransportSettings::Url(UrlSettings { url: server.url(), headers, kind });
            let settings = ServerSettings::new(SourceName::new("moved"), transport);
            let me = to_raw(&json!({"name": "test", "version": "1"}));
            let upstream = Upstream::start(settings, Common::new(keeper(), me).unwrap());
            let settled = async {
                while matches!(upstream.status().state, State::Starting) {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
            };
            soon("the server to be given up", settled).await;
            assert_eq!(*heard.lock().unwrap(), [""; 0], "{status} {kind:?}");
            let status = upstream.status();
            let told = format!("{status:?}");
            assert!(told.contains(&format!("redirects to {elsewhere}, which is another origin")), "{told}");
            assert!(!told.contains("s3cret"), "{told}");
            upstream.stop().await;
        }
    }
}
