//! The transport of a server, in every spelling that is in use.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransportKind {
    /// A child process, over its standard input and output.
    Stdio,
    /// Streamable HTTP, with a fallback to HTTP+SSE.
    Http,
    /// The deprecated HTTP+SSE transport.
    Sse,
}

impl<'de> Deserialize<'de> for TransportKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TransportVisitor;
        impl Visitor<'_> for TransportVisitor {
            type Value = TransportKind;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("stdio, http or sse")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<TransportKind, E> {
                match text.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
                    "stdio" | "local" => Ok(TransportKind::Stdio),
                    "http" | "streamablehttp" | "remote" => Ok(TransportKind::Http),
                    "sse" => Ok(TransportKind::Sse),
                    _ => Err(E::unknown_variant(text, &["stdio", "http", "sse"])),
                }
            }
        }
        deserializer.deserialize_str(TransportVisitor)
    }
}

impl JsonSchema for TransportKind {
    fn schema_name() -> Cow<'static, str> {
        "Transport".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`stdio`: a child process. `http` (also `streamable-http`, `streamableHttp`): \
                Streamable HTTP. `sse`: the deprecated HTTP+SSE transport.",
            "enum": ["stdio", "http", "sse", "streamable-http", "streamableHttp"],
        })
    }
}
