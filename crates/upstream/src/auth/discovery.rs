//! Discovery of the authorization server of a resource: first the challenge of the server, then the
//! well-known URLs. rmcp performs the search; this module decides what may be done with the result.

use reqwest::Url;
use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata, OAuthClientConfig};
use toolyard_hub::printable::clean_excerpt;

use super::AuthError;

/// An authorization server with its metadata.
pub(crate) struct AuthorizationServer {
    pub(crate) manager: AuthorizationManager,
    pub(crate) metadata: AuthorizationMetadata,
    pub(crate) source: DiscoverySource,
}

/// How the authorization server was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiscoverySource {
    /// From published metadata.
    Announced,
    /// No metadata is published, so the default endpoints of old servers are assumed.
    Guessed,
}

impl AuthorizationServer {
    /// Returns the issuer that credentials are bound to. The credentials of one authorization
    /// server are never sent to another.
    pub(crate) fn issuer(&self) -> String {
        self.metadata.issuer.clone().unwrap_or_else(|| self.metadata.token_endpoint.clone())
    }

    /// Returns the identifier of the resource. rmcp does not expose it, but includes it in the
    /// authorization URL.
    pub(crate) async fn resource_identifier(&mut self, address: &Url) -> String {
        let placeholder = OAuthClientConfig::new("placeholder", "http://127.0.0.1/");
        let url = match self.manager.configure_client(placeholder) {
            Ok(()) => self.manager.get_authorization_url(&[]).await.ok(),
            Err(_) => None,
        };
        let url = url.and_then(|url| Url::parse(&url).ok());
        let resource = url.as_ref().and_then(|url| url.query_pairs().find(|(name, _)| name == "resource"));
        resource.map_or_else(|| address.to_string(), |(_, resource)| resource.into_owned())
    }

    /// Returns whether a list in the metadata contains an entry.
    pub(crate) fn metadata_lists(&self, field: &str, name: &str) -> bool {
        let list = self.metadata.additional_fields.get(field).and_then(|list| list.as_array());
        list.is_some_and(|list| list.iter().any(|entry| entry.as_str() == Some(name)))
    }

    pub(crate) fn supports_client_metadata_documents(&self) -> bool {
        let field = self.metadata.additional_fields.get("client_id_metadata_document_supported");
        field.and_then(serde_json::Value::as_bool) == Some(true)
    }

    /// Returns whether a refresh token must be requested with the scope `offline_access`.
    pub(crate) fn offers_offline_access(&self) -> bool {
        let scopes = self.metadata.scopes_supported.as_deref().unwrap_or_default();
        scopes.iter().any(|scope| scope == "offline_access")
    }
}

/// Finds the authorization server of the resource.
pub(crate) async fn discover_authorization_server(
    resource: &Url,
    challenge: Option<&str>,
) -> Result<AuthorizationServer, AuthError> {
    // The process uses one cryptography provider. The first caller installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let failed = |error: rmcp::transport::auth::AuthError| AuthError::Discovery(summarize_error(&error));
    // Servers in a private network have their authorization server there too, so private addresses
    // are allowed. Loopback is allowed only if the resource itself is on loopback.
    let mut manager =
        AuthorizationManager::new_allowing_private_addresses(resource.as_str()).await.map_err(failed)?;
    let resolved = manager.resolve_metadata_from_challenge(challenge).await.map_err(failed)?;
    let source =
        if resolved.source.is_discovered() { DiscoverySource::Announced } else { DiscoverySource::Guessed };
    let metadata = resolved.metadata;
    let registration = metadata.registration_endpoint.as_ref();
    for endpoint in
        [&metadata.authorization_endpoint, &metadata.token_endpoint].into_iter().chain(registration)
    {
        check_endpoint_scheme(resource, endpoint)?;
    }
    manager.set_metadata(metadata.clone());
    Ok(AuthorizationServer { manager, metadata, source })
}

/// Checks the scheme of an endpoint. Secrets and users are sent there, so it must be HTTPS, or HTTP
/// if the resource itself uses HTTP.
fn check_endpoint_scheme(resource: &Url, endpoint: &str) -> Result<(), AuthError> {
    let scheme = Url::parse(endpoint).map(|url| url.scheme().to_owned()).unwrap_or_default();
    match (scheme.as_str(), resource.scheme()) {
        ("https", _) | ("http", "http") => Ok(()),
        _ => Err(AuthError::Discovery("its metadata contains an endpoint with an unsafe scheme".to_owned())),
    }
}

/// Returns the message of an rmcp error, shortened for display.
pub(crate) fn summarize_error(error: &rmcp::transport::auth::AuthError) -> String {
    clean_excerpt(&error.to_string(), 400)
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::check_endpoint_scheme;

    #[test]
    fn only_endpoints_with_a_safe_scheme_are_used() {
        let is_safe = |resource: &str, endpoint: &str| {
            check_endpoint_scheme(&Url::parse(resource).unwrap(), endpoint).is_ok()
        };
        assert!(is_safe("https://mcp.example/mcp", "https://auth.example/token"));
        assert!(is_safe("http://localhost:1/mcp", "http://localhost:2/token"));
        assert!(!is_safe("https://mcp.example/mcp", "http://auth.example/token"));
        assert!(!is_safe("https://mcp.example/mcp", "javascript:alert(1)"));
        assert!(!is_safe("http://localhost/mcp", "file:///etc/passwd"));
        assert!(!is_safe("http://localhost/mcp", "not an address"));
    }
}
