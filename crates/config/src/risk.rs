//! Warnings about settings that work but are risky: credentials that are forwarded to other
//! servers, and plain HTTP to another machine, where a network attacker can read or change the
//! traffic.

use std::net::IpAddr;

use reqwest::Url;

use super::keys::ServerKeys;
use super::limits::SettingProblem;
use super::server_section::ServerSection;

/// Whether a header of this name usually carries credentials.
pub fn carries_credentials(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    let words = ["authorization", "x-auth", "key", "token", "secret", "cookie", "password"];
    header != "idempotency-key" && words.iter().any(|word| header.contains(word))
}

/// Whether the URL uses plain HTTP to another machine.
fn is_exposed(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let name = host.trim_end_matches('.');
    let local = match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => name == "localhost" || name.ends_with(".localhost"),
    };
    url.scheme() == "http" && !local
}

/// Warns about signing keys that a network attacker could replace.
pub(super) fn check_jwks_url(url: &str) -> Option<SettingProblem> {
    let exposed = Url::parse(url).is_ok_and(|url| is_exposed(&url));
    exposed.then(|| {
        SettingProblem::warning(
            &["jwt", "jwks_url"],
            "uses plain HTTP: a network attacker who replaces the keys can sign tokens for this yard",
            "use https, or set `jwks_file`",
        )
    })
}

/// Warns about calls that a network attacker could read, and hook responses that could be changed.
pub(super) fn check_hook_url(url: &Url, place: &[&str]) -> Option<SettingProblem> {
    is_exposed(url).then(|| {
        SettingProblem::warning(
            place,
            "uses plain HTTP: a network attacker can read calls and change the response of the hook",
            "use https, or a loopback address",
        )
    })
}

/// Warns about client credentials that are forwarded to this server, and about credentials that are
/// sent to it over plain HTTP.
pub(super) fn check_server(keys: &ServerKeys, origin: &mut ServerSection<'_>) {
    for (index, header) in keys.forward_headers.iter().flatten().enumerate() {
        let place = ["forward_headers", &index.to_string()];
        if header.eq_ignore_ascii_case("authorization") {
            origin.warn(
                &place,
                "this server receives the tokens with which clients authenticate to this yard".to_owned(),
                "set separate credentials with `headers`, `bearer_token_env_var` or `oauth`",
            );
        } else if carries_credentials(header) {
            origin.warn(
                &place,
                format!("this server receives the clients' credentials in the header {header:?}"),
                "remove the header unless the server must act on behalf of its callers",
            );
        }
    }
    for (key, url) in [("url", &keys.url), ("base_url", &keys.base_url), ("openapi", &keys.openapi)] {
        let Some(url) = url.as_deref().and_then(|url| origin.references.expand(url).ok()) else { continue };
        let Ok(url) = Url::parse(&url) else { continue };
        let mut sent =
            keys.headers.iter().flatten().map(|(name, _)| name).chain(keys.header_variables.keys());
        let authorized = keys.bearer_token_env_var.is_some() || keys.oauth.is_some() || keys.auth.is_some();
        let named = url.password().is_some() || sent.any(|name| carries_credentials(name));
        if is_exposed(&url) && (authorized || named) {
            origin.warn(
                &[key],
                "credentials are sent over plain HTTP, where a network attacker can read them".to_owned(),
                "use https, or a loopback address",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::{carries_credentials, is_exposed};

    #[test]
    fn only_plain_http_to_another_machine_is_exposed() {
        for exposed in
            ["http://h/", "http://10.0.0.1/", "HTTP://[2001:db8::1]:9/", "http://localhost.example/"]
        {
            assert!(is_exposed(&Url::parse(exposed).unwrap()), "{exposed}");
        }
        for fine in [
            "https://h/",
            "http://localhost:9/",
            "http://a.localhost/",
            "http://LOCALHOST./",
            "http://127.8.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
        ] {
            assert!(!is_exposed(&Url::parse(fine).unwrap()), "{fine}");
        }
    }

    #[test]
    fn headers_that_carry_credentials_are_known_by_their_names() {
        let credentials =
            ["Authorization", "proxy-authorization", "Cookie", "X-API-Key", "x-auth", "X-Gitlab-Token"];
        assert!(credentials.into_iter().all(carries_credentials));
        assert!(
            !["X-Request-Id", "traceparent", "Idempotency-Key", "Accept"]
                .into_iter()
                .any(carries_credentials)
        );
    }
}
