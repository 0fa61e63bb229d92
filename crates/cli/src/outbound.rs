//! Addresses outside that the configuration names and the yard asks by itself. This is the room for it, because the
//! hub and the door know no network: they are handed functions.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use reqwest::redirect::Policy;
use toolyard_serve::JwksFetcher;
use toolyard_upstream::UpstreamContext;

mod hooks;

pub(crate) use hooks::{ConfiguredHooks, HookEvent, HookFailurePolicy, HookSettings};

/// What speaks to these addresses. Nobody is led elsewhere: what is sent is for the address that was named.
pub(crate) fn http_client(common: &UpstreamContext) -> anyhow::Result<reqwest::Client> {
    let client = reqwest::Client::builder().tls_backend_preconfigured(common.tls.clone());
    let client = client.redirect(Policy::none()).connect_timeout(Duration::from_secs(5));
    client.build().context("cannot set up HTTP")
}

/// How long an issuer may take to send its keys.
const KEYS_TIME: Duration = Duration::from_secs(10);
/// More than that is no set of keys.
const KEYS_SIZE: usize = 1024 * 1024;

/// Asks an address for the public keys of an issuer.
pub(crate) fn jwks_fetcher(http: &reqwest::Client, url: &str) -> JwksFetcher {
    let (http, url) = (http.clone(), url.to_owned());
    Arc::new(move || {
        let request = http.get(&url).header("accept", "application/json").timeout(KEYS_TIME);
        Box::pin(async move {
            let answer = request.send().await.map_err(|error| error.without_url().to_string())?;
            if !answer.status().is_success() {
                return Err(format!("it answered {}", answer.status()));
            }
            read(answer, KEYS_SIZE).await
        })
    })
}

/// The text of an answer, if it is no longer than this.
async fn read(mut answer: reqwest::Response, most: usize) -> Result<String, String> {
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| error.without_url().to_string())? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > most {
            return Err(format!("it answered more than {most} bytes"));
        }
    }
    String::from_utf8(bytes).map_err(|_| "it answered no text".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_hub::json::to_raw;
    use toolyard_testkit::web::Web;
    use toolyard_upstream::{SupervisorCommand, UpstreamContext};

    use super::{http_client, jwks_fetcher};

    #[tokio::test]
    async fn keys_are_not_fetched_from_where_their_address_redirects_to() {
        let elsewhere = Web::start(Web::answer("200 OK", "", r#"{"keys":[]}"#)).await;
        for status in ["302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
            let location = format!("location: {}\r\n", elsewhere.url());
            let moved = Web::start(Web::answer(status, &location, "")).await;
            let keeper = SupervisorCommand {
                program: "unused".into(),
                args: Vec::new(),
                environment: Default::default(),
            };
            let http = http_client(&UpstreamContext::new(keeper, to_raw(&json!({}))).unwrap()).unwrap();
            assert_eq!(jwks_fetcher(&http, &moved.url())().await, Err(format!("it answered {status}")));
            // The address itself would have been fine.
            assert_eq!(jwks_fetcher(&http, &elsewhere.url())().await, Ok(r#"{"keys":[]}"#.to_owned()));
        }
    }
}
