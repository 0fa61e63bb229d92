//! One connection that works: the client on the wire, who is behind it, and how a request to it is dressed.

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
/// These are about the conversation with our caller; the one with the server has its own.
const OURS: [&str; 5] = [TOKEN, VERSION, INFO, CAPABILITIES, LOG_LEVEL];

#[derive(Debug)]
pub(crate) struct LiveConnection {
    pub(crate) client: Arc<McpClient>,
    pub(crate) server: ServerProfile,
    pub(crate) calls: Arc<InFlightCalls>,
    /// Who we say we are.
    pub(crate) client_info: Raw,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) child: Option<Child>,
    /// Where the bytes of what it lists are reserved.
    pub(crate) definitions: DefinitionBudget,
    /// Tasks that live as long as the connection.
    pub(crate) tasks: JoinSet<()>,
}

/// What a request has beside its method and params.
#[derive(Debug, Default)]
pub(crate) struct RequestEnvelope<'a> {
    /// `_meta` as our own caller sent it.
    pub(crate) meta: Option<&'a RawValue>,
    pub(crate) abilities: ClientCapabilities,
    /// Our number of the call: it comes back with progress.
    pub(crate) tag: Option<u64>,
    /// The name or URI that is mirrored in a header.
    pub(crate) name: Option<&'a str>,
    /// The input schema of a tool that wants parameters mirrored.
    pub(crate) schema: Option<&'a RawValue>,
    /// Headers of our own caller that the configuration lets through.
    pub(crate) headers: HeaderMap,
}

impl LiveConnection {
    pub(crate) fn is_modern(&self) -> bool {
        self.server.version.era() == Era::Modern
    }

    /// Asks something of our own, not for any caller.
    pub(crate) async fn request(&self, method: &'static str, params: Object) -> Result<Raw, WireError> {
        self.authorizer.ensure_fresh().await;
        self.client.request(self.build_request(method, &params, RequestEnvelope::default())?).await
    }

    pub(crate) fn build_request(
        &self,
        method: &'static str,
        params: &Object,
        dress: RequestEnvelope<'_>,
    ) -> Result<OutboundRequest, WireError> {
        let meta = Meta {
            others: dress.meta.and_then(|meta| Object::parse_without(meta, &OURS).ok()).unwrap_or_default(),
            modern: self.is_modern().then(|| ModernMeta {
                version: self.server.version.as_str(),
                client_info: &self.client_info,
                capabilities: to_capabilities(&dress.abilities),
                log_level: dress.abilities.log_level,
            }),
            tag: dress.tag,
        };
        let mut headers = dress.headers;
        if self.is_modern() && matches!(*self.client, McpClient::StreamableHttp(_)) {
            mirror_method(&mut headers, method);
            if let Some(name) = dress.name {
                mirror_name(&mut headers, name);
            }
            if let Some(schema) = dress.schema {
                let nothing = to_raw(&serde_json::json!({}));
                let arguments = params.get("arguments").unwrap_or(&nothing);
                mirror_params(&mut headers, schema, arguments).map_err(WireError::Protocol)?;
            }
        }
        let params = to_raw(&ParamsWithMeta { params, meta });
        Ok(OutboundRequest { method, params, tag: dress.tag.unwrap_or(0), headers })
    }

    /// Hears what a legacy server over HTTP says unasked, for as long as the connection lives. What is given back
    /// completes when it is clear whether the server has a stream for that.
    pub(crate) fn spawn_listener(&mut self, name: &str) -> oneshot::Receiver<()> {
        let (opened, open) = oneshot::channel();
        if !self.is_modern() && matches!(*self.client, McpClient::StreamableHttp(_)) {
            let (client, name) = (Arc::clone(&self.client), name.to_owned());
            self.tasks.spawn(async move {
                if let McpClient::StreamableHttp(post) = &*client {
                    let why = post.listen(opened).await;
                    tracing::debug!(server = name, %why, "no standing stream");
                }
            });
        }
        open
    }

    /// The last lines that the server's process wrote to standard error.
    pub(crate) fn stderr(&self) -> Vec<String> {
        self.child.as_ref().map(Child::stderr_tail).unwrap_or_default()
    }
}

/// Params with `_meta`, written in one go.
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
    /// What our caller's `_meta` has beside what is about the conversation itself.
    others: Object,
    modern: Option<ModernMeta<'a>>,
    tag: Option<u64>,
}

/// What every modern request says.
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

/// The caller's headers that may be handed on, as headers.
pub(crate) fn select_forwarded_headers(allowed: &[String], given: &[(String, String)]) -> HeaderMap {
    let allowed = |name: &str| allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    let parsed = given.iter().filter(|(name, _)| allowed(name)).filter_map(|(name, value)| {
        Some((HeaderName::try_from(name.as_str()).ok()?, HeaderValue::try_from(value.as_str()).ok()?))
    });
    parsed.collect()
}

/// The schemas of tools that want parameters mirrored in headers, by raw name.
pub(crate) type HeaderSchemas = HashMap<String, Raw>;
