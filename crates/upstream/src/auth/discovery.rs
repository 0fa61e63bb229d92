//! Finding the authorization server of a resource: what the server says in its challenge, then the well-known
//! places. The search itself is rmcp's; what may be done with the result is decided here.

use reqwest::Url;
use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata, OAuthClientConfig};
use toolyard_hub::printable::clean_excerpt;

use super::AuthError;

/// An authorization server that we know how to speak to.
pub(crate) struct AuthorizationServer {
    pub(crate) manager: AuthorizationManager,
    pub(crate) metadata: AuthorizationMetadata,
    pub(crate) source: DiscoverySource,
}

/// Why this is taken for the authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiscoverySource {
    /// It says so itself.
    Announced,
    /// Nobody says anything, and these are the places where old servers have it.
    Guessed,
}

impl AuthorizationServer {
    /// What our credentials are bound to: those of one authorization server are never shown to another.
    pub(crate) fn issuer(&self) -> String {
        self.metadata.issuer.clone().unwrap_or_else(|| self.metadata.token_endpoint.clone())
    }

    /// The resource as it calls itself. The library keeps that to itself, but names it where it sends people.
    pub(crate) async fn resource_identifier(&mut self, address: &Url) -> String {
        let nobody = OAuthClientConfig::new("nobody", "http://127.0.0.1/");
        let sent = match self.manager.configure_client(nobody) {
            Ok(()) => self.manager.get_authorization_url(&[]).await.ok(),
            Err(_) => None,
        };
        let sent = sent.and_then(|sent| Url::parse(&sent).ok());
        let named = sent.as_ref().and_then(|sent| sent.query_pairs().find(|(name, _)| name == "resource"));
        named.map_or_else(|| address.to_string(), |(_, named)| named.into_owned())
    }

    /// Whether a list of its metadata names something.
    pub(crate) fn metadata_lists(&self, field: &str, name: &str) -> bool {
        let list = self.metadata.additional_fields.get(field).and_then(|list| list.as_array());
        list.is_some_and(|list| list.iter().any(|entry| entry.as_str() == Some(name)))
    }

    pub(crate) fn supports_client_metadata_documents(&self) -> bool {
        let field = self.metadata.additional_fields.get("client_id_metadata_document_supported");
        field.and_then(serde_json::Value::as_bool) == Some(true)
    }

    /// A refresh token has to be asked for where the server says that it can be.
    pub(crate) fn offers_offline_access(&self) -> bool {
        let scopes = self.metadata.scopes_supported.as_deref().unwrap_or_default();
        scopes.iter().any(|scope| scope == "offline_access")
    }
}

/// Finds the authorization server for the resource at this address.
pub(crate) async fn discover_authorization_server(
    resource: &Url,
    challenge: Option<&str>,
) -> Result<AuthorizationServer, AuthError> {
    // There is one provider of cryptography in this house; whoever comes first puts it in its place.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let failed = |error: rmcp::transport::auth::AuthError| AuthError::Discovery(summarize_error(&error));
    // Servers inside a company's network have theirs there too, so private addresses are fine; loopback is only
    // for a resource that is on loopback itself.
    let mut manager =
        AuthorizationManager::new_allowing_private_addresses(resource.as_str()).await.map_err(failed)?;
    let resolved = manager.resolve_metadata_from_challenge(challenge).await.map_err(failed)?;
    let because =
        if resolved.source.is_discovered() { DiscoverySource::Announced } else { DiscoverySource::Guessed };
    let metadata = resolved.metadata;
    let registration = metadata.registration_endpoint.as_ref();
    for endpoint in
        [&metadata.authorization_endpoint, &metadata.token_endpoint].into_iter().chain(registration)
    {
        check_endpoint_scheme(resource, endpoint)?;
    }
    manager.set_metadata(metadata.clone());
    Ok(AuthorizationServer { manager, metadata, source: because })
}

/// Secrets are sent to these addresses and people are sent there, so they must be of the web, and encrypted unless
/// the resource itself is not.
fn check_endpoint_scheme(resource: &Url, endpoint: &str) -> Result<(), AuthError> {
    let scheme = Url::parse(endpoint).map(|url| url.scheme().to_owned()).unwrap_or_default();
    match (scheme.as_str(), resource.scheme()) {
        ("https", _) | ("http", "http") => Ok(()),
        _ => {
            Err(AuthError::Discovery("its authorization server names an address that is not safe".to_owned()))
        }
    }
}

/// What rmcp says about a failure, short enough to show.
pub(crate) fn summarize_error(error: &rmcp::transport::auth::AuthError) -> String {
    clean_excerpt(&error.to_string(), 400)
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::check_endpoint_scheme;

    #[test]
    fn only_addresses_that_are_safe_are_used() {
        let fine = |resource: &str, endpoint: &str| {
            check_endpoint_scheme(&Url::parse(resource).unwrap(), endpoint).is_ok()
        };
        assert!(fine("https://mcp.example/mcp", "https://auth.example/token"));
        assert!(fine("http://localhost:1/mcp", "http://localhost:2/token"));
        assert!(!fine("https://mcp.example/mcp", "http://auth.example/token"));
        assert!(!fine("https://mcp.example/mcp", "javascript:alert(1)"));
        assert!(!fine("http://localhost/mcp", "file:///etc/passwd"));
        assert!(!fine("http://localhost/mcp", "not an address"));
    }
}
