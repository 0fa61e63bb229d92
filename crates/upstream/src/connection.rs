//! An established connection: the wire client, the profile of the server, and the metadata added to
//! each request.

use std::collections::HashMap;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{ClientCapabilities, DefinitionBudget, LogLevel, Raw};
use toolyard_wire::{
    Era, McpClient, OutboundRequest, ServerProfile, WireError, mirror_method, mirror_name, mirror_params,
};

use crate::auth::Authorizer;
use crate::child::Child;
use crate::in_flight::InFlightCalls;
use crate::question::to_capabilities;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const INFO: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const TOKEN: &str = "progressToken";
/// Metadata that belongs to the connection with the caller. The connection to the server has its
/// own values.
const OURS: [&str; 5] = [TOKEN, VERSION, INFO, CAPABILITIES, LOG_LEVEL];

#[derive(Debug)]
pub(crate) struct LiveConnection {
    pub(crate) client: Arc<McpClient>,
    pub(crate) server: ServerProfile,
    pub(crate) calls: Arc<InFlightCalls>,
    /// The `clientInfo` sent to the server.
    pub(crate) client_info: Raw,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) child: Option<Child>,
    /// The budget for the definitions that the server lists.
    pub(crate) definitions: DefinitionBudget,
    /// Tasks that live as long as the connection.
    pub(crate) tasks: JoinSet<()>,
}

/// What a request carries besides its method and params.
#[derive(Debug, Default)]
pub(crate) struct RequestEnvelope<'a> {
    /// The `_meta` of the caller.
    pub(crate) meta: Option<&'a RawValue>,
    pub(crate) capabilities: ClientCapabilities,
    /// The number of the call, used as its progress token.
    pub(crate) tag: Option<u64>,
    /// The name or URI that is mirrored in a header.
    pub(crate) name: Option<&'a str>,
    /// The input schema of a tool that requires parameters to be mirrored in headers.
    pub(crate) schema: Option<&'a RawValue>,
    /// Headers of the caller that the configuration forwards.
    pub(crate) headers: HeaderMap,
}

impl LiveConnection {
    pub(crate) fn is_modern(&self) -> bool {
        self.server.version.era() == Era::Modern
    }

    /// Sends a request of the yard itself, not on behalf of a caller.
    pub(crate) async fn request(&self, method: &'static str, params: Object) -> Result<Raw, WireError> {
        self.authorizer.ensure_fresh().await;
        self.client.request(self.build_request(method, &params, RequestEnvelope::default())?).await
    }

    pub(crate) fn build_request(
        &self,
        method: &'static str,
        params: &Object,
        envelope: RequestEnvelope<'_>,
    ) -> Result<OutboundRequest, WireError> {
        let meta = Meta {
            others: envelope
                .meta
                .and_then(|meta| Object::parse_without(meta, &OURS).ok())
                .unwrap_or_default(),
            modern: self.is_modern().then(|| ModernMeta {
                version: self.server.version.as_str(),
                client_info: &self.client_info,
                capabilities: to_capabilities(&envelope.capabilities),
                log_level: envelope.capabilities.log_level,
            }),
            tag: envelope.tag,
        };
        let mut headers = envelope.headers;
        if self.is_modern() && matches!(*self.client, McpClient::StreamableHttp(_)) {
            mirror_method(&mut headers, method);
            if let Some(name) = envelope.name {
                mirror_name(&mut headers, name);
            }
            if let Some(schema) = envelope.schema {
                let nothing = to_raw(&serde_json::json!({}));
                let arguments = params.get("arguments").unwrap_or(&nothing);
                mirror_params(&mut headers, schema, arguments).map_err(WireError::Protocol)?;
            }
        }
        let params = to_raw(&ParamsWithMeta { params, meta });
        Ok(OutboundRequest { method, params, tag: envelope.tag.unwrap_or(0), headers })
    }

    /// Listens on the standing stream of a legacy HTTP server for the lifetime of the connection.
    /// The returned receiver completes once it is known whether the server offers the stream.
    pub(crate) fn spawn_listener(&mut self, name: &str) -> oneshot::Receiver<()> {
        let (opened, open) = oneshot::channel();
        if !self.is_modern() && matches!(*self.client, McpClient::StreamableHttp(_)) {
            let (client, name) = (Arc::clone(&self.client), name.to_owned());
            self.tasks.spawn(async move {
                if let McpClient::StreamableHttp(post) = &*client {
                    let reason = post.listen(opened).await;
                    tracing::debug!(server = name, %reason, "no standing stream");
                }
            });
        }
        open
    }

    /// Returns the last lines that the server process wrote to standard error.
    pub(crate) fn stderr(&self) -> Vec<String> {
        self.child.as_ref().map(Child::stderr_tail).unwrap_or_default()
    }
}

/// Params with `_meta`, serialized in one pass.
struct ParamsWithMeta<'a> {
    params: &'a Object,
    meta: Meta<'a>,
}

impl Serialize for ParamsWithMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.params.members() {
            map.serialize_entry(key, value)?;
        }
        if !self.meta.is_empty() {
            map.serialize_entry("_meta", &self.meta)?;
        }
        map.end()
    }
}

struct Meta<'a> {
    /// The members of the caller's `_meta`, without those in [`OURS`].
    others: Object,
    modern: Option<ModernMeta<'a>>,
    tag: Option<u64>,
}

/// The metadata that every modern request carries.
struct ModernMeta<'a> {
    version: &'static str,
    client_info: &'a RawValue,
    capabilities: Raw,
    log_level: Option<LogLevel>,
}

impl Meta<'_> {
    fn is_empty(&self) -> bool {
        self.others.is_empty() && self.modern.is_none() && self.tag.is_none()
    }
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.others.members() {
            map.serialize_entry(key, value)?;
        }
        if let Some(modern) = &self.modern {
            map.serialize_entry(VERSION, modern.version)?;
            map.serialize_entry(INFO, modern.client_info)?;
            map.serialize_entry(CAPABILITIES, &modern.capabilities)?;
            if let Some(level) = &modern.log_level {
                map.serialize_entry(LOG_LEVEL, level)?;
            }
        }
        if let Some(tag) = &self.tag {
            map.serialize_entry(TOKEN, tag)?;
        }
        map.end()
    }
}

/// Returns the headers of the caller that may be forwarded.
pub(crate) fn select_forwarded_headers(allowed: &[String], headers: &[(String, String)]) -> HeaderMap {
    let allowed = |name: &str| allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    let parsed = headers.iter().filter(|(name, _)| allowed(name)).filter_map(|(name, value)| {
        Some((HeaderName::try_from(name.as_str()).ok()?, HeaderValue::try_from(value.as_str()).ok()?))
    });
    parsed.collect()
}

/// The schemas of tools that require parameters to be mirrored in headers, by raw name.
pub(crate) type HeaderSchemas = HashMap<String, Raw>;
