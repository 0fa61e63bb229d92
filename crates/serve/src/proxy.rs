//! Trusted reverse proxies, and the client addresses that they forward.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::FORWARDED;

/// The networks of trusted proxies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Arc<[ProxyNetwork]>);

/// An address, or a network such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyNetwork {
    address: IpAddr,
    prefix: u8,
}

/// The text is neither an IP address nor a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an IP address or a network such as \"10.0.0.0/8\"")]
pub struct InvalidNetwork;

impl FromStr for ProxyNetwork {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork)?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            // `u8::from_str` would accept `+8`.
            Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => {
                prefix.parse().ok().filter(|prefix| *prefix <= bits).ok_or(InvalidNetwork)?
            }
            Some(_) => return Err(InvalidNetwork),
            None => bits,
        };
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for ProxyNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl ProxyNetwork {
    fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                u32::from(network) & mask == u32::from(address) & mask
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                u128::from(network) & mask == u128::from(address) & mask
            }
            _ => false,
        }
    }
}

impl FromIterator<ProxyNetwork> for TrustedProxies {
    fn from_iter<I: IntoIterator<Item = ProxyNetwork>>(networks: I) -> Self {
        Self(networks.into_iter().collect())
    }
}

impl TrustedProxies {
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(address))
    }

    /// Returns the client that a trusted proxy names: the rightmost address that is not itself a
    /// trusted proxy, because the client may have written everything to its left. `X-Forwarded-For`
    /// takes precedence over `Forwarded`.
    pub(crate) fn client(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let texts = |name: &str| {
            let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default());
            values.flat_map(|value| value.split(',')).map(str::trim).collect::<Vec<_>>()
        };
        let listed = match texts("x-forwarded-for") {
            list if list.is_empty() => texts(FORWARDED.as_str()).into_iter().map(forwarded_for).collect(),
            list => list.into_iter().map(address).collect::<Vec<_>>(),
        };
        for address in listed.into_iter().rev() {
            match address {
                Some(address) if self.contains(address) => {}
                // An unreadable element hides everything to its left.
                other => return other,
            }
        }
        None
    }
}

/// Parses the address in one element of `Forwarded`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let named = element.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim())
    })?;
    address(named.trim_matches('"'))
}

/// Parses an address with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let parsed = bare.parse::<IpAddr>().ok();
    let parsed = parsed.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    parsed.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName, HeaderValue};

    use super::{ProxyNetwork, TrustedProxies};

    fn trusted() -> TrustedProxies {
        ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"].iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn networks_are_read_and_hold_what_is_in_them() {
        let holds = |address: &str| trusted().contains(address.parse().unwrap());
        for inside in ["10.255.1.2", "192.0.2.7", "2001:db8:1::9", "::ffff:10.0.0.1"] {
            assert!(holds(inside), "{inside}");
        }
        for outside in ["11.0.0.1", "192.0.2.8", "2001:db9::1", "::1", "127.0.0.1"] {
            assert!(!holds(outside), "{outside}");
        }
        let everything: TrustedProxies = [("0.0.0.0/0").parse().unwrap()].into_iter().collect();
        assert!(everything.contains("8.8.8.8".parse().unwrap()));
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "host", "10.0.0.0/+8", "10.0.0.0/"] {
            assert!(wrong.parse::<ProxyNetwork>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_client_is_the_rightmost_address_that_is_not_a_trusted_proxy() {
        let client = |headers: &[(&'static str, &str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
            }
            trusted().client(&map).map(|address| address.to_string())
        };
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(client(&[("x-forwarded-for", "198.51.100.1, 203.0.113.9, 10.1.1.1")]), is("203.0.113.9"));
        assert_eq!(
            client(&[("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "203.0.113.9:4711")]),
            is("203.0.113.9")
        );
        assert_eq!(client(&[("x-forwarded-for", "198.51.100.1, unknown, 10.1.1.1")]), None);
        assert_eq!(client(&[("x-forwarded-for", "10.1.1.1")]), None);
        assert_eq!(client(&[]), None);
        let forwarded = r#"for=198.51.100.1, For="[2001:db9::17]:4711";proto=https, for=10.2.2.2"#;
        assert_eq!(client(&[("forwarded", forwarded)]), is("2001:db9::17"));
        // A client can send a header that its proxy does not know. The other header counts.
        assert_eq!(
            client(&[("forwarded", "for=198.51.100.1"), ("x-forwarded-for", "203.0.113.9")]),
            is("203.0.113.9")
        );
    }
}
