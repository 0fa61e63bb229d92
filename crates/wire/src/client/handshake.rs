//! Meeting a server: which era does it speak, and who is it? `server/discover` comes first, because some servers
//! lock themselves to the legacy era at the first `initialize`.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::http::{HttpClientSettings, StreamableHttpClient};
use super::sse::SseClient;
use super::{McpClient, OutboundRequest, ServerProfile, WireError};
use crate::RawJson;
use crate::header::mirror_method;
use crate::rpc_error::code;
use crate::version::{Era, Version};

/// How long a server over stdio may take to answer `server/discover` before it is also spoken to as a legacy one.
const DISCOVER: Duration = Duration::from_secs(5);

/// Who we are, and what our side can do.
#[derive(Debug, Clone)]
pub struct HandshakeSettings {
    pub info: RawJson,
    pub capabilities: RawJson,
    /// The era that worked the last time; the other one is not tried first again.
    pub known_era: Option<Era>,
    /// The old HTTP+SSE transport and nothing else.
    pub sse_only: bool,
}

/// Meets a server over streams that are already open.
pub async fn handshake_stdio(
    client: McpClient,
    me: &HandshakeSettings,
) -> Result<(McpClient, ServerProfile), WireError> {
    if me.known_era == Some(Era::Legacy) {
        let server = initialize(&client, me).await?;
        return Ok((client, server));
    }
    let server = match discover_or_initialize(&client, me).await? {
        Some(server) => server,
        None => initialize(&client, me).await?,
    };
    Ok((client, server))
}

/// Asks for `server/discover`; nothing if the server does not know it. One that says nothing may be a legacy server that
/// passes over what it does not know, or one that is slow to start: it is asked both ways then, and what it answers
/// decides.
async fn discover_or_initialize(
    client: &McpClient,
    me: &HandshakeSettings,
) -> Result<Option<ServerProfile>, WireError> {
    let discovering = discover(client, me);
    tokio::pin!(discovering);
    let discovered = match tokio::time::timeout(DISCOVER, &mut discovering).await {
        Ok(discovered) => discovered,
        Err(_) => {
            let initializing = initialize(client, me);
            tokio::pin!(initializing);
            tokio::select! {
                biased;
                // A server of the modern era refuses the other question in its own time.
                discovered = &mut discovering => match discovered {
                    Err(failure) if !is_final(&failure) => return initializing.await.map(Some),
                    discovered => discovered,
                },
                initialized = &mut initializing => match initialized {
                    Ok(server) => Ok(server),
                    Err(failure) => discovering.await.map_err(|_| failure),
                },
            }
        }
    };
    match discovered {
        Ok(server) => Ok(Some(server)),
        Err(failure) if is_final(&failure) => Err(failure),
        Err(_) => Ok(None),
    }
}

/// Meets a server at an address, over whichever transport it speaks.
pub async fn handshake_http(
    settings: HttpClientSettings,
    me: &HandshakeSettings,
) -> Result<(McpClient, ServerProfile), WireError> {
    if me.sse_only {
        return handshake_sse(settings, me).await;
    }
    let client = McpClient::StreamableHttp(StreamableHttpClient::new(settings.clone()));
    if me.known_era != Some(Era::Legacy) {
        match discover(&client, me).await {
            Ok(server) => {
                if let McpClient::StreamableHttp(post) = &client {
                    post.set_version(Some(server.version));
                }
                return Ok((client, server));
            }
            Err(failure) if is_final(&failure) => return Err(failure),
            Err(_) => {}
        }
    }
    match initialize(&client, me).await {
        Ok(server) => Ok((client, server)),
        Err(failure @ WireError::Status { status: 400 | 404 | 405 | 406, .. }) => {
            // Perhaps a server of before streamable HTTP; if not, the first failure is the telling one.
            handshake_sse(settings, me).await.map_err(|_| failure)
        }
        Err(failure) => Err(failure),
    }
}

async fn handshake_sse(
    settings: HttpClientSettings,
    me: &HandshakeSettings,
) -> Result<(McpClient, ServerProfile), WireError> {
    let client = McpClient::HttpSse(SseClient::open(settings).await?);
    let server = initialize(&client, me).await?;
    Ok((client, server))
}

/// Failures that trying the other era cannot mend.
fn is_final(failure: &WireError) -> bool {
    match failure {
        WireError::Unreachable(_)
        | WireError::Lost(_)
        | WireError::Unauthorized { .. }
        | WireError::Redirected { .. }
        | WireError::TooLarge(_) => true,
        // Only a modern server knows these codes.
        WireError::Rpc(error) => {
            [code::UNSUPPORTED_VERSION, code::MISSING_CAPABILITY, code::HEADER_MISMATCH].contains(&error.code)
        }
        WireError::SessionGone | WireError::Status { .. } | WireError::Protocol(_) => false,
    }
}

/// Asks in our newest version, and once more in the one that the server names if that is not to its liking.
async fn discover(client: &McpClient, me: &HandshakeSettings) -> Result<ServerProfile, WireError> {
    let error = match discover_with_version(client, me, Version::V2026_07_28).await {
        Err(WireError::Rpc(error)) if error.code == code::UNSUPPORTED_VERSION => error,
        met => return met,
    };
    let supported = error.data.as_ref().and_then(|data| data.get("supported")?.as_array());
    let supported: Vec<Version> =
        supported.into_iter().flatten().filter_map(|version| Version::parse(version.as_str()?)).collect();
    match supported.iter().filter(|version| version.era() == Era::Modern).max() {
        Some(version) => discover_with_version(client, me, *version).await,
        None if supported.is_empty() => Err(WireError::Rpc(error)),
        None => Err(WireError::Protocol("it speaks only versions of before".to_owned())),
    }
}

async fn discover_with_version(
    client: &McpClient,
    me: &HandshakeSettings,
    version: Version,
) -> Result<ServerProfile, WireError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct DiscoverResult {
        supported_versions: Vec<String>,
        capabilities: RawJson,
        instructions: Option<String>,
        #[serde(rename = "_meta")]
        meta: Option<Meta>,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "io.modelcontextprotocol/serverInfo")]
        info: Option<RawJson>,
    }
    let params = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": version.as_str(),
        "io.modelcontextprotocol/clientInfo": me.info,
        "io.modelcontextprotocol/clientCapabilities": me.capabilities,
    }});
    let mut headers = HeaderMap::new();
    mirror_method(&mut headers, "server/discover");
    headers
        .insert(HeaderName::from_static("mcp-protocol-version"), HeaderValue::from_static(version.as_str()));
    let request = OutboundRequest { method: "server/discover", params: raw(&params), tag: 0, headers };
    let answer = client.request(request).await?;
    let read: DiscoverResult = parse_result("server/discover", &answer)?;
    let mutual = read.supported_versions.iter().filter_map(|version| Version::parse(version));
    let Some(version) = mutual.filter(|version| version.era() == Era::Modern).max() else {
        // A server of both eras that names only legacy versions wants to be spoken to in those.
        return Err(WireError::Protocol(format!("it speaks only {}", read.supported_versions.join(", "))));
    };
    Ok(ServerProfile {
        version,
        info: read.meta.and_then(|meta| meta.info),
        capabilities: read.capabilities,
        instructions: read.instructions,
    })
}

async fn initialize(client: &McpClient, me: &HandshakeSettings) -> Result<ServerProfile, WireError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InitializeResult {
        protocol_version: String,
        capabilities: Option<RawJson>,
        server_info: Option<RawJson>,
        instructions: Option<String>,
    }
    if let McpClient::StreamableHttp(post) = client {
        post.set_version(None);
    }
    let params = json!({
        "protocolVersion": Version::NEWEST_LEGACY.as_str(),
        "capabilities": me.capabilities,
        "clientInfo": me.info,
    });
    let request =
        OutboundRequest { method: "initialize", params: raw(&params), tag: 0, headers: HeaderMap::new() };
    let answer = client.request(request).await?;
    let read: InitializeResult = parse_result("initialize", &answer)?;
    let version = Version::parse(&read.protocol_version).filter(|version| version.era() == Era::Legacy);
    let version = version.ok_or_else(|| {
        WireError::Protocol(format!("it wants the unknown version {}", read.protocol_version))
    })?;
    if let McpClient::StreamableHttp(post) = client {
        // The header came with 2025-06-18; older servers take no harm from it.
        post.set_version(Some(version));
    }
    client.notify("notifications/initialized", &raw(&json!({}))).await?;
    Ok(ServerProfile {
        version,
        info: read.server_info,
        capabilities: read.capabilities.unwrap_or_else(|| raw(&json!({}))),
        instructions: read.instructions,
    })
}

fn parse_result<'a, T: Deserialize<'a>>(method: &str, answer: &'a RawValue) -> Result<T, WireError> {
    serde_json::from_str(answer.get())
        .map_err(|error| WireError::Protocol(format!("its answer to {method} makes no sense: {error}")))
}

fn raw(value: &serde_json::Value) -> RawJson {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
