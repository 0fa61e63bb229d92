//! The handshake: finds out which era a server speaks and what it declares about itself.
//! `server/discover` comes first because some servers lock themselves to the legacy era at the
//! first `initialize`.

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

/// How long a server over stdio may take to respond to `server/discover` before the client sends
/// `initialize` as well.
const DISCOVER: Duration = Duration::from_secs(5);

/// What the client declares about itself.
#[derive(Debug, Clone)]
pub struct HandshakeSettings {
    pub info: RawJson,
    pub capabilities: RawJson,
    /// The era of the last successful handshake. The other era is not tried first again.
    pub known_era: Option<Era>,
    /// Whether to use only the old HTTP+SSE transport.
    pub sse_only: bool,
}

/// Performs the handshake over streams that are already open.
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

/// Sends `server/discover`. Returns `None` if the server does not know the method. A server that
/// does not respond may be a legacy server that ignores unknown methods, or one that starts slowly.
/// It then receives `initialize` as well, and its responses decide.
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
                // A modern server rejects `initialize` in its own time.
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

/// Performs the handshake with the server at a URL, over whichever transport it supports.
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
            // This may be a server from before streamable HTTP. If not, the first error is the
            // relevant one.
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

/// Returns whether an error is final, so that trying the other era is pointless.
fn is_final(failure: &WireError) -> bool {
    match failure {
        WireError::Unreachable(_)
        | WireError::Lost(_)
        | WireError::Unauthorized { .. }
        | WireError::Redirected { .. }
        | WireError::TooLarge(_) => true,
        // Only modern servers use these codes.
        WireError::Rpc(error) => {
            [code::UNSUPPORTED_VERSION, code::MISSING_CAPABILITY, code::HEADER_MISMATCH].contains(&error.code)
        }
        WireError::SessionGone | WireError::Status { .. } | WireError::Protocol(_) => false,
    }
}

/// Sends `server/discover` in the newest supported version, and once more in a version that the
/// server supports if it rejects the first.
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
        None => Err(WireError::Protocol("the server supports only older versions".to_owned())),
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
        // A server of both eras that lists only legacy versions expects to be used in those.
        return Err(WireError::Protocol(format!(
            "the server supports only {}",
            read.supported_versions.join(", ")
        )));
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
        WireError::Protocol(format!("the server chose the unknown version `{}`", read.protocol_version))
    })?;
    if let McpClient::StreamableHttp(post) = client {
        // The header was introduced in 2025-06-18. Older servers ignore it.
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
        .map_err(|error| WireError::Protocol(format!("invalid response to `{method}`: {error}")))
}

fn raw(value: &serde_json::Value) -> RawJson {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
