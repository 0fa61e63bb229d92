//! Brings documents, and what they refer to, from addresses. Every step of the way is looked at: neither a document nor a
//! server that redirects may lead to where no person has pointed.

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
/// How long one address may take to send all that it has.
const LONGEST: Duration = Duration::from_secs(60);
const DOCUMENTS: &str = "application/vnd.oai.openapi+json, application/json, application/yaml, */*;q=0.5";

/// What brings a document that a person has named, if it is at an address, and what it refers to, to a thread that may
/// wait. The host of the document may be anywhere; others only where everybody could call them.
pub fn document_fetcher(document: &str, http: HttpClients, runtime: Handle) -> Arc<FetchFn> {
    let named = Url::parse(document).ok().filter(|url| url.has_host());
    blocking_fetcher(AllowedHosts::new(named.as_ref(), &[]), http, runtime)
}

pub(crate) fn blocking_fetcher(named: AllowedHosts, http: HttpClients, runtime: Handle) -> Arc<FetchFn> {
    Arc::new(move |address: &str| {
        let url = Url::parse(address).map_err(|_| "it is no address".to_owned())?;
        let bringing = async {
            let (url, answer) = get_following_redirects(&http, &named, url, |_, request| request).await?;
            if !answer.status().is_success() {
                return Err(format!("{} answered {}", redact_url(&url), answer.status().as_u16()));
            }
            read_body(answer).await
        };
        let brought = runtime.block_on(async { timeout(LONGEST, bringing).await });
        brought.unwrap_or_else(|_| Err(format!("it did not come within {LONGEST:?}")))
    })
}

/// Asks for a document, follows redirects, and gives back what answered, and where. `dressed` may add to each request.
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
                url = target.ok_or_else(|| format!("{} leads to no address", redact_url(&url)))?;
            }
            None => return Ok((url, answer)),
        }
    }
    Err(format!("{} led elsewhere more than {MOST_REDIRECTS} times", redact_url(&url)))
}

/// All of an answer, unless it is larger than any document may be.
pub(crate) async fn read_body(mut answer: Response) -> Result<Vec<u8>, String> {
    let most = DocumentLimits::default().bytes;
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| root_cause(&error))? {
        if bytes.len() + piece.len() > most {
            return Err(format!("it is larger than the {most} bytes that are allowed"));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
