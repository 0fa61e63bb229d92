//! Which hosts may be called. Documents are untrusted: a request to a private network or to this
//! machine is only sent if the operator has named that host.

use std::net::{IpAddr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use toolyard_hub::address::{is_localhost, is_public};
use url::Host;

/// The hosts that the operator has named. They may have any address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AllowedHosts {
    hosts: Vec<(String, Option<u16>)>,
}

/// How a host may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostAccess {
    /// The operator has named the host.
    Allowed,
    /// Only a document names the host: its resolved address must be public.
    PublicOnly,
}

/// Why a URL is not called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("{0} is not an http:// or https:// URL")]
    NoAddress(String),
    #[error("the document points to {0}, which is not a public address")]
    Private(String),
}

impl AllowedHosts {
    /// Allows the hosts of `urls`, and `hosts`, which are names or addresses with or without a
    /// port.
    pub(crate) fn new<'a>(urls: impl IntoIterator<Item = &'a Url>, hosts: &[String]) -> Self {
        let of_url = |url: &Url| url.host_str().map(|host| (normalize_host(host), None));
        let listed = hosts.iter().map(|host| parse_host_and_port(host));
        Self { hosts: urls.into_iter().filter_map(of_url).chain(listed).collect() }
    }

    /// Returns whether and how a URL may be called.
    pub(crate) fn check_access(&self, url: &Url) -> Result<HostAccess, AddressError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError::NoAddress(redact_url(url)));
        }
        let Some(host) = url.host() else { return Err(AddressError::NoAddress(redact_url(url))) };
        let name = normalize_host(&host.to_string());
        let port = url.port_or_known_default();
        let named = |(host, only): &(String, Option<u16>)| *host == name && (only.is_none() || *only == port);
        if self.hosts.iter().any(named) {
            return Ok(HostAccess::Allowed);
        }
        // IP addresses are never resolved, so they are checked here. The URL parser has already
        // normalized forms such as `0x7f.1` and `2130706433`.
        let address = match host {
            Host::Ipv4(address) => Some(IpAddr::V4(address)),
            Host::Ipv6(address) => Some(IpAddr::V6(address)),
            Host::Domain(_) => None,
        };
        if is_localhost(&name) || address.is_some_and(|address| !is_public(address)) {
            return Err(AddressError::Private(redact_url(url)));
        }
        Ok(HostAccess::PublicOnly)
    }
}

/// Returns only the scheme, host and port of a URL, because the rest may contain secrets.
pub(crate) fn redact_url(url: &Url) -> String {
    match url.host_str() {
        Some(host) => match url.port() {
            Some(port) => format!("{}://{host}:{port}", url.scheme()),
            None => format!("{}://{host}", url.scheme()),
        },
        None => format!("{}:", url.scheme()),
    }
}

/// A trailing dot does not change a host name.
fn normalize_host(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

fn parse_host_and_port(host: &str) -> (String, Option<u16>) {
    let host = host.trim();
    // Parsed like the host of a URL, so that every spelling of an address is normalized.
    match Url::parse(&format!("http://{host}/")) {
        Ok(url) => {
            let port = host.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
            let port = if host.ends_with(']') { None } else { port };
            (normalize_host(url.host_str().unwrap_or(host)), port)
        }
        // An IPv6 address without brackets.
        Err(_) => (normalize_host(&format!("[{host}]")), None),
    }
}

/// Resolves names with the system's resolver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Drops every address that is not public. It runs as part of the connection's own lookup, so a
/// name that resolves differently the second time (DNS rebinding) gains nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublicOnlyResolver<R>(pub(crate) R);

impl<R: Resolve> Resolve for PublicOnlyResolver<R> {
    fn resolve(&self, name: Name) -> Resolving {
        let looking_up = self.0.resolve(name);
        Box::pin(async move {
            let found: Vec<SocketAddr> = looking_up.await?.collect();
            if found.is_empty() {
                return Err("the host name does not resolve to any address".into());
            }
            let public: Vec<SocketAddr> =
                found.into_iter().filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(Box::new(PrivateAddressError) as Box<dyn std::error::Error + Send + Sync>);
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// A name resolves only to addresses that must not be called.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the host name does not resolve to a public address")]
pub(crate) struct PrivateAddressError;

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::{AddressError, AllowedHosts, HostAccess};

    fn reach(named: &AllowedHosts, url: &str) -> Result<HostAccess, AddressError> {
        named.check_access(&Url::parse(url).unwrap())
    }

    #[test]
    fn what_only_a_document_names_must_be_public() {
        let none = AllowedHosts::default();
        for private in [
            "http://localhost/x",
            "http://LOCALHOST.:8080",
            "http://a.localhost",
            "http://127.0.0.1",
            "http://127.1",
            "http://2130706433",
            "http://0x7f.0.0.1",
            "http://0177.0.0.1",
            "http://017700000001",
            "http://0",
            "http://10.1.2.3",
            "http://172.16.0.1",
            "http://172.31.255.255",
            "http://192.168.0.1",
            "http://169.254.169.254",
            "http://100.100.100.200",
            "http://198.18.0.1",
            "http://224.0.0.1",
            "http://255.255.255.255",
            "http://240.0.0.1",
            "http://192.0.0.192",
            "http://[::1]",
            "http://[::]",
            "http://[::ffff:127.0.0.1]",
            "http://[::ffff:a9fe:a9fe]",
            "http://[::127.0.0.1]",
            "http://[64:ff9b::10.0.0.1]",
            "http://[2002:7f00:1::]",
            "http://[fe80::1]",
            "http://[fc00::1]",
            "http://[fd00:ec2::254]",
            "http://[ff02::1]",
            "http://[fec0::1]",
            "http://[2001:db8::1]",
            "http://[2001::1]",
            "http://[100::1]",
            "http://192.88.99.1",
            "http://１２７.0.0.1",
        ] {
            assert!(matches!(reach(&none, private), Err(AddressError::Private(_))), "{private}");
        }
        for public in [
            "https://api.example.com",
            "http://8.8.8.8",
            "http://172.32.0.1",
            "http://[2606:4700::1]",
            "http://100.63.0.1",
            "http://[2002:808:808::]",
            "http://localhost.example.com",
            "http://metadata.google.internal",
        ] {
            assert_eq!(reach(&none, public), Ok(HostAccess::PublicOnly), "{public}");
        }
        for odd in ["file:///etc/passwd", "ftp://a", "data:a", "unix:/x"] {
            assert!(matches!(reach(&none, odd), Err(AddressError::NoAddress(_))), "{odd}");
        }
    }

    #[test]
    fn what_a_person_names_may_be_called() {
        let base = Url::parse("http://10.0.0.5:3000/v1").unwrap();
        let hosts =
            ["localhost:8000", "Intern.Example.", "::1", "127.0.0.1:81", "[fd00::1]"].map(str::to_owned);
        let named = AllowedHosts::new([&base], &hosts);
        for fine in [
            "http://10.0.0.5:9/",
            "http://localhost:8000",
            "http://intern.example:5",
            "http://[::1]:7",
            "http://0x7f.1:81",
            "http://[fd00::1]:9",
            "http://LOCALHOST.:8000",
        ] {
            assert_eq!(reach(&named, fine), Ok(HostAccess::Allowed), "{fine}");
        }
        for other in ["http://localhost:8001", "http://127.0.0.1", "http://10.0.0.6", "http://[fd00::2]"] {
            assert!(reach(&named, other).is_err(), "{other}");
        }
        // The default port is not written in the URL.
        let named = AllowedHosts::new([], &["localhost:80".to_owned()]);
        assert_eq!(reach(&named, "http://localhost/"), Ok(HostAccess::Allowed));
    }

    #[test]
    fn nothing_secret_of_an_address_is_shown() {
        let url = Url::parse("http://user:pass@10.0.0.1:99/path?key=secret").unwrap();
        assert_eq!(super::redact_url(&url), "http://10.0.0.1:99");
    }
}
