//! When a request is sent again: redirects and `Retry-After`.

use std::time::{Duration, SystemTime};

use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderMap, Method, StatusCode};
use reqwest::{Response, Url};

use crate::host_policy::redact_url;

/// How to handle a redirect response.
#[derive(Debug, PartialEq)]
pub(super) enum Redirect {
    No,
    /// Repeat the same request at this URL.
    Same(Url),
    /// Send a GET request to this URL.
    AsGet(Url),
    /// The redirect is not followed, for this reason.
    Refused(String),
}

/// Whether a method is idempotent.
pub(super) fn is_idempotent(method: &Method) -> bool {
    matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE" | "QUERY")
}

pub(super) fn response_redirect(response: &Response, method: &Method, from: &Url) -> Redirect {
    classify_redirect(response.status(), response.headers(), method, from)
}

fn classify_redirect(status: StatusCode, headers: &HeaderMap, method: &Method, from: &Url) -> Redirect {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Redirect::No;
    }
    let Some(location) = headers.get(LOCATION) else { return Redirect::No };
    let target = location.to_str().ok().and_then(|location| from.join(location).ok());
    let Some(target) = target else { return refused("the server redirected to an invalid URL") };
    if target.origin() != from.origin() || !target.username().is_empty() {
        let to = redact_url(&target);
        return refused(&format!(
            "redirects to another origin are not followed; if you trust {to}, set it as `base_url` of this server"
        ));
    }
    let looks = matches!(*method, Method::GET | Method::HEAD);
    match status.as_u16() {
        307 | 308 => Redirect::Same(target),
        303 => Redirect::AsGet(target),
        _ if looks => Redirect::Same(target),
        _ => refused("this redirect is not followed because it would change the request method"),
    }
}

fn refused(why: &str) -> Redirect {
    Redirect::Refused(why.to_owned())
}

/// Returns how long the server asks to wait before a retry.
pub(super) fn retry_delay(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let asks = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    if !asks {
        return None;
    }
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = chrono::DateTime::parse_from_rfc2822(value).ok()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let at = Duration::from_secs(u64::try_from(at.timestamp()).ok()?);
    Some(at.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::header::{LOCATION, RETRY_AFTER};
    use http::{HeaderMap, HeaderValue, Method, StatusCode};
    use reqwest::Url;

    use super::{Redirect, classify_redirect, retry_delay};

    fn led(status: u16, method: &Method, to: &str) -> Redirect {
        let from = Url::parse("https://api.example.com/v1/a?x=1").unwrap();
        let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_str(to).unwrap())]);
        classify_redirect(StatusCode::from_u16(status).unwrap(), &headers, method, &from)
    }

    #[test]
    fn redirects_stay_at_home_and_keep_what_they_are() {
        let url = |text| Url::parse(text).unwrap();
        assert_eq!(led(302, &Method::GET, "/b"), Redirect::Same(url("https://api.example.com/b")));
        assert_eq!(led(308, &Method::POST, "b"), Redirect::Same(url("https://api.example.com/v1/b")));
        assert_eq!(
            led(307, &Method::PUT, "https://api.example.com:443/c"),
            Redirect::Same(url("https://api.example.com/c"))
        );
        assert_eq!(led(303, &Method::POST, "/d"), Redirect::AsGet(url("https://api.example.com/d")));
        assert!(matches!(led(301, &Method::POST, "/b"), Redirect::Refused(_)));
        for elsewhere in [
            "https://evil.example/",
            "http://api.example.com/",
            "https://api.example.com:8443/",
            "//evil.example",
            "https://api.example.com@evil.example/",
            "https://u@api.example.com/",
            "file:///etc/passwd",
            "http://[",
        ] {
            assert!(matches!(led(307, &Method::GET, elsewhere), Redirect::Refused(_)), "{elsewhere}");
        }
        assert_eq!(led(304, &Method::GET, "/b"), Redirect::No);
        assert_eq!(led(200, &Method::GET, "/b"), Redirect::No);
    }

    #[test]
    fn patience_is_read_in_both_of_its_forms() {
        let asked = |status, value: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_str(value).unwrap())]);
            retry_delay(status, &headers)
        };
        let busy = StatusCode::TOO_MANY_REQUESTS;
        assert_eq!(asked(busy, " 7 "), Some(Duration::from_secs(7)));
        assert_eq!(asked(StatusCode::SERVICE_UNAVAILABLE, "0"), Some(Duration::ZERO));
        assert_eq!(asked(StatusCode::OK, "7"), None);
        assert_eq!(asked(busy, "soon"), None);
        assert_eq!(asked(busy, "-1"), None);
        assert_eq!(asked(busy, "Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let far = asked(busy, "Tue, 31 Dec 2199 23:59:59 GMT").unwrap();
        assert!(far > Duration::from_secs(3_600 * 24 * 365));
        assert_eq!(retry_delay(busy, &HeaderMap::new()), None);
    }
}
