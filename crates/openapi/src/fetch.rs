//! Fetches documents and the files that they refer to from URLs. Every request, including
//! redirects, is checked: neither a document nor a redirect may lead to a non-public host that the
//! operator has not named.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, LOCATION};
use reqwest::{RequestBuilder, Response, Url};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::clients::{HttpClients, root_cause};
use crate::document::{DocumentLimits, FetchFn};
use crate::host_policy::{AllowedHosts, redact_url};

const MOST_REDIRECTS: usize = 5;
/// Time limit for fetching one URL.
const LONGEST: Duration = Duration::from_secs(60);
const DOCUMENTS: &str = "application/vnd.oai.openapi+json, application/json, application/yaml, */*;q=0.5";

/// Returns a function that fetches a document from its URL, and the files that it refers to, on a
/// thread that may block. The host of the document itself may have any address; other hosts must be
/// public.
pub fn document_fetcher(document: &str, http: HttpClients, runtime: Handle) -> Arc<FetchFn> {
    let named = Url::parse(document).ok().filter(|url| url.has_host());
    blocking_fetcher(AllowedHosts::new(named.as_ref(), &[]), http, runtime)
}

pub(crate) fn blocking_fetcher(named: AllowedHosts, http: HttpClients, runtime: Handle) -> Arc<FetchFn> {
    Arc::new(move |address: &str| {
        let url = Url::parse(address).map_err(|_| "invalid URL".to_owned())?;
        let bringing = async {
            let (url, answer) = get_following_redirects(&http, &named, url, |_, request| request).await?;
            if !answer.status().is_success() {
                return Err(format!("{} returned HTTP {}", redact_url(&url), answer.status().as_u16()));
            }
            read_body(answer).await
        };
        let brought = runtime.block_on(async { timeout(LONGEST, bringing).await });
        brought.unwrap_or_else(|_| Err(format!("timed out after {LONGEST:?}")))
    })
}

/// Sends a GET request and follows redirects. Returns the response and its final URL. `dressed` may
/// add headers to each request.
pub(crate) async fn get_following_redirects(
    http: &HttpClients,
    named: &AllowedHosts,
    url: Url,
    dressed: impl Fn(&Url, RequestBuilder) -> RequestBuilder,
) -> Result<(Url, Response), String> {
    let mut url = url;
    for _ in 0..=MOST_REDIRECTS {
        let reach = named.check_access(&url).map_err(|error| error.to_string())?;
        let request = http.client(reach).get(url.clone()).header(ACCEPT, DOCUMENTS);
        let answer = dressed(&url, request).send().await;
        let answer = answer.map_err(|error| format!("{}: {}", redact_url(&url), root_cause(&error)))?;
        let redirects = matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        match answer.headers().get(LOCATION).filter(|_| redirects) {
            Some(location) => {
                let target = location.to_str().ok().and_then(|location| url.join(location).ok());
                url = target.ok_or_else(|| format!("{} redirected to an invalid URL", redact_url(&url)))?;
            }
            None => return Ok((url, answer)),
        }
    }
    Err(format!("{} redirected more than {MOST_REDIRECTS} times", redact_url(&url)))
}

/// Reads a response body up to the size limit of a document.
pub(crate) async fn read_body(mut answer: Response) -> Result<Vec<u8>, String> {
    let most = DocumentLimits::default().bytes;
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| root_cause(&error))? {
        if bytes.len() + piece.len() > most {
            return Err(format!("the response exceeds the limit of {most} bytes"));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
