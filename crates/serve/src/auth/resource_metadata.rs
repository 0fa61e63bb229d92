//! Protected resource metadata (RFC 9728), from which an MCP client learns which authorization
//! server issues tokens for this server.

use axum::body::Body;
use axum::http::{Response, header};
use axum::response::IntoResponse;
use serde_json::json;

use super::jwt::JwtIssuer;
use super::rejection::ErrorFormat;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Returns the URL of the metadata of the endpoint at this path.
pub(super) fn metadata_url(jwt: &JwtIssuer, host: &str, path: &str) -> String {
    let endpoint = if ErrorFormat::for_path(path) == ErrorFormat::Mcp { path } else { "" };
    format!("{}{WELL_KNOWN}{endpoint}", base(jwt, host))
}

/// Returns the metadata at this path: that of the whole server or that of one endpoint.
pub(super) fn metadata(jwt: &JwtIssuer, host: &str, path: &str) -> Option<Response<Body>> {
    let endpoint = path.strip_prefix(WELL_KNOWN)?;
    if !endpoint.is_empty() && ErrorFormat::for_path(endpoint) != ErrorFormat::Mcp {
        return None;
    }
    let mut body = json!({
        "resource": format!("{}{endpoint}", base(jwt, host)),
        "authorization_servers": [jwt.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "Toolyard",
    });
    let scopes = jwt.scopes();
    if !scopes.is_empty() {
        body["scopes_supported"] = json!(scopes);
    }
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "max-age=300")];
    Some((headers, body.to_string()).into_response())
}

fn base(jwt: &JwtIssuer, host: &str) -> String {
    match &jwt.resource {
        Some(address) => address.trim_end_matches('/').to_owned(),
        None => format!("http://{host}"),
    }
}
