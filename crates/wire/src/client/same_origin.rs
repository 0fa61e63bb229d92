//! The HTTP client for servers. It guarantees two things that no caller can turn off: a request
//! never follows a redirect to another origin, and if a filter is set, no connection is made to an
//! address that the filter rejects.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode, header};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, RequestBuilder, Url};

use super::WireError;

/// The maximum number of same-origin redirects that a request follows.
const MOST_REDIRECTS: usize = 5;
/// The maximum number of characters of a redirect's path in an error.
const LONGEST_PATH: usize = 200;

/// Decides whether connections to an address are allowed. It is called for every connection, after
/// name resolution and before the connection is made. A name that resolves differently the second
/// time therefore cannot bypass it.
pub type AddressFilter = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// An HTTP client whose requests stay within their origin.
#[derive(Clone)]
pub struct SameOriginHttp {
    client: reqwest::Client,
    filter: Option<AddressFilter>,
}

impl SameOriginHttp {
    /// Builds the client. Replaces the redirect policy of `builder`.
    pub fn build(builder: ClientBuilder) -> Result<Self, reqwest::Error> {
        Ok(Self { client: builder.redirect(policy()).build()?, filter: None })
    }

    /// Builds the client for connections to addresses that `filter` accepts. It uses no proxy,
    /// because a proxy resolves names itself, out of reach of the filter.
    pub fn build_filtered(builder: ClientBuilder, filter: AddressFilter) -> Result<Self, reqwest::Error> {
        let names = FilteredResolver(Arc::clone(&filter));
        let client = builder.redirect(policy()).no_proxy().dns_resolver(names).build()?;
        Ok(Self { client, filter: Some(filter) })
    }

    /// Returns whether connections may bypass this client because it has no filter.
    pub(crate) fn is_unfiltered(&self) -> bool {
        self.filter.is_none()
    }

    /// Creates a request. Checks literal IP addresses against the filter here, because they never
    /// reach the resolver.
    pub(crate) fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, WireError> {
        match (&self.filter, literal(&url)) {
            (Some(filter), Some(address)) if !filter(address) => {
                Err(WireError::Unreachable(RefusedAddress.to_string()))
            }
            _ => Ok(self.client.request(method, url)),
        }
    }
}

impl fmt::Debug for SameOriginHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SameOriginHttp").field("filtered", &self.filter.is_some()).finish_non_exhaustive()
    }
}

/// Returns the IP address if the host of the URL is a literal one.
fn literal(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Follows only 307 and 308: the other statuses would turn a POST into a GET, which no MCP server
/// intends. A redirect that is not followed is returned as the response.
fn policy() -> Policy {
    Policy::custom(|attempt| {
        let previous = attempt.previous();
        let is_kept = matches!(attempt.status().as_u16(), 307 | 308) && previous.len() <= MOST_REDIRECTS;
        let stays = previous.first().is_some_and(|first| is_same_origin(first, attempt.url()));
        if is_kept && stays { attempt.follow() } else { attempt.stop() }
    })
}

/// Returns whether a redirect from one URL to another may carry headers and body.
fn is_same_origin(from: &Url, to: &Url) -> bool {
    // A user name in the target would replace the credentials for this server.
    from.origin() == to.origin() && to.username().is_empty() && to.password().is_none()
}

/// Returns whether a response redirects to a place where its request may be repeated.
pub(crate) fn is_followed(from: &Url, status: StatusCode, headers: &HeaderMap) -> bool {
    matches!(status.as_u16(), 307 | 308)
        && redirect_target(from, status, headers).is_some_and(|to| is_same_origin(from, &to))
}

/// Returns the error for a response that redirects to another origin.
pub(crate) fn cross_origin_error(from: &Url, status: StatusCode, headers: &HeaderMap) -> Option<WireError> {
    let to = redirect_target(from, status, headers)?;
    if from.origin() == to.origin() {
        return None;
    }
    // Without user and query, which may contain secrets.
    let path: String = to.path().chars().take(LONGEST_PATH).collect();
    let to = match to.has_host() {
        true => format!("{}{path}", to.origin().ascii_serialization()),
        false => format!("{}:", to.scheme()),
    };
    Some(WireError::Redirected { status: status.as_u16(), to })
}

fn redirect_target(from: &Url, status: StatusCode, headers: &HeaderMap) -> Option<Url> {
    let location = headers.get(header::LOCATION).filter(|_| status.is_redirection())?;
    from.join(location.to_str().ok()?).ok()
}

#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("connections to this address are not allowed")]
struct RefusedAddress;

/// Resolves names with the system resolver and drops the addresses that the filter rejects.
struct FilteredResolver(AddressFilter);

impl Resolve for FilteredResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let filter = Arc::clone(&self.0);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found.filter(|address| filter(address.ip())).collect();
            if allowed.is_empty() {
                return Err(Box::new(RefusedAddress) as Box<dyn std::error::Error + Send + Sync>);
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
    use parking_lot::Mutex;
    use reqwest::Url;

    use super::{SameOriginHttp, cross_origin_error, is_followed};
    use crate::client::WireError;

    fn redirect(status: u16, location: &str) -> (bool, Option<String>) {
        let from = Url::parse("https://a.example:8443/mcp").unwrap();
        let status = StatusCode::from_u16(status).unwrap();
        let headers = HeaderMap::from_iter([(header::LOCATION, HeaderValue::from_str(location).unwrap())]);
        let crossing = cross_origin_error(&from, status, &headers).map(|failure| match failure {
            WireError::Redirected { to, .. } => to,
            other => panic!("{other}"),
        });
        (is_followed(&from, status, &headers), crossing)
    }

    #[test]
    fn a_redirect_is_followed_within_its_origin_only() {
        for same in ["/other", "other?x=1", "https://a.example:8443/x", "https://A.EXAMPLE:8443/x"] {
            assert_eq!(redirect(307, same), (true, None), "{same}");
            assert_eq!(redirect(308, same), (true, None), "{same}");
            assert_eq!(redirect(302, same), (false, None), "{same}");
        }
        for (other, named) in [
            ("http://a.example:8443/x?key=secret#y", "http://a.example:8443/x"),
            ("https://a.example/x", "https://a.example/x"),
            ("https://user:secret@b.example:8443/x", "https://b.example:8443/x"),
            ("//b.example/x", "https://b.example/x"),
            ("https://a.example.:8443/x", "https://a.example.:8443/x"),
            ("data:secret", "data:"),
        ] {
            assert_eq!(redirect(308, other), (false, Some(named.to_owned())), "{other}");
        }
        // The same origin, but with different credentials.
        assert_eq!(redirect(308, "https://user@a.example:8443/x"), (false, None));
    }

    #[tokio::test]
    async fn a_filter_sees_resolved_names_and_addresses_in_numbers_before_anything_is_sent() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<IpAddr>>> = Arc::default();
        let checked = Arc::clone(&seen);
        let refuse_all = Arc::new(move |address| {
            checked.lock().push(address);
            false
        });
        let http = SameOriginHttp::build_filtered(reqwest::Client::builder(), refuse_all).unwrap();
        for host in ["localhost", "127.0.0.1", "[::1]", "2130706433", "0x7f.1"] {
            let url = Url::parse(&format!("http://{host}:{port}/mcp")).unwrap();
            let refused = match http.request(Method::POST, url) {
                Ok(request) => super::super::http::transport_error(&request.send().await.unwrap_err()),
                Err(failure) => failure,
            };
            let expected = "cannot be reached: connections to this address are not allowed";
            assert_eq!(refused.to_string(), expected, "{host}");
        }
        assert!(seen.lock().iter().all(IpAddr::is_loopback));
        assert!(seen.lock().len() >= 5);
        let connected = tokio::time::timeout(std::time::Duration::from_millis(50), listener.accept()).await;
        assert!(connected.is_err(), "a connection was made");
    }
}
