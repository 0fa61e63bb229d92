//! Listen addresses: an IP address with a port, or a port alone, which binds to the loopback
//! address.

use std::borrow::Cow;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

const WORDS: &str = "an IP address with a port, such as \"127.0.0.1:8080\", or a port";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListenAddress(pub(super) SocketAddr);

/// Parses a listen address from the command line.
pub fn parse_listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').or_else(|| text.strip_prefix("localhost:")).unwrap_or(text);
    // `u16::from_str` would accept `+1`.
    let only_port =
        port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse::<u16>().ok()).flatten();
    match only_port {
        Some(port) => Ok(loopback_address(port)),
        None => text.parse().map_err(|_| format!("expected {WORDS}")),
    }
}

/// A port alone binds to the loopback address, so that a yard is exposed to a network only
/// explicitly.
fn loopback_address(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListenVisitor;
        impl Visitor<'_> for ListenVisitor {
            type Value = ListenAddress;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(WORDS)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ListenAddress, E> {
                parse_listen_address(text).map(ListenAddress).map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, port: u64) -> Result<ListenAddress, E> {
                let port = u16::try_from(port).map_err(|_| E::custom(format_args!("expected {WORDS}")))?;
                Ok(ListenAddress(loopback_address(port)))
            }

            fn visit_i64<E: Error>(self, port: i64) -> Result<ListenAddress, E> {
                self.visit_u64(u64::try_from(port).unwrap_or(u64::MAX))
            }
        }
        deserializer.deserialize_any(ListenVisitor)
    }
}

impl JsonSchema for ListenAddress {
    fn schema_name() -> Cow<'static, str> {
        "Listen".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An IP address with a port, or a port alone, which binds to 127.0.0.1.",
            "anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0, "maximum": 65535}],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::parse_listen_address;

    #[test]
    fn a_port_alone_is_one_of_this_machine() {
        for (text, address) in [
            ("8081", "127.0.0.1:8081"),
            (":8081", "127.0.0.1:8081"),
            ("localhost:8081", "127.0.0.1:8081"),
            ("0", "127.0.0.1:0"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(parse_listen_address(text), Ok(address.parse().unwrap()), "{text}");
        }
        for wrong in
            ["", ":", "65536", ":65536", "-1", "+1", "8080x", "here", "here:80", "127.0.0.1", "localhost"]
        {
            let refused =
                Err("expected an IP address with a port, such as \"127.0.0.1:8080\", or a port".to_owned());
            assert_eq!(parse_listen_address(wrong), refused, "{wrong}");
        }
    }
}
