//! Authentication of outgoing requests: selects the first security alternative of an operation that
//! the configuration can satisfy, and adds its credentials to the request. Credentials are never
//! tool arguments. They never come from a caller unless the configuration forwards that header.

mod tokens;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use toolyard_hub::{ErrorKind, HubError};

use crate::operation::{
    ArgumentLocation, Operation, SecurityRequirement, SecurityScheme, SecuritySchemeKind,
};
use crate::request::OperationRequest;
use crate::settings::{ApiAuthSettings, ApiCredential, ClientCredentials, MissingAuth};
pub(crate) use tokens::{TokenCache, TokenFetchContext};

/// The credentials to add to one request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct AuthPlan<'a> {
    steps: Vec<AuthStep<'a>>,
}

#[derive(Debug, PartialEq)]
enum AuthStep<'a> {
    /// A header, a query parameter or a cookie.
    Key {
        place: ArgumentLocation,
        wire_name: &'a str,
        value: &'a str,
    },
    Basic {
        username: &'a str,
        password: &'a str,
    },
    /// `Authorization: SCHEME value`.
    Authorize {
        scheme: &'a str,
        value: &'a str,
    },
    Fetched {
        client: &'a ClientCredentials,
        token_url: &'a str,
        scopes: Vec<String>,
    },
}

/// Plans the first alternative that can be satisfied. `present` holds the headers that the request
/// already has; a scheme that uses one of them needs no credential.
pub(crate) fn plan_auth<'a>(
    operation: &'a Operation,
    schemes: &'a [SecurityScheme],
    settings: &'a ApiAuthSettings,
    present: &HeaderMap,
) -> Result<AuthPlan<'a>, HubError> {
    let asking = operation.security.iter().filter(|all| !all.is_empty());
    let mut lacking = None;
    for all in asking {
        match all.iter().map(|one| plan_step(one, schemes, settings, present)).collect::<Result<Vec<_>, _>>()
        {
            Ok(steps) => return Ok(AuthPlan { steps: steps.into_iter().flatten().collect() }),
            Err(lack) => {
                lacking.get_or_insert(lack);
            }
        }
    }
    let optional = operation.security.iter().any(Vec::is_empty);
    match lacking {
        Some(lack) if !optional && settings.missing == MissingAuth::Refuse => Err(lack.into_error(operation)),
        _ => Ok(AuthPlan::default()),
    }
}

/// The credential that an alternative lacks.
#[derive(Debug, PartialEq)]
struct MissingCredential {
    scheme: String,
    why: &'static str,
    /// Whether no configuration could satisfy the scheme.
    unsupported: bool,
}

impl MissingCredential {
    fn into_error(self, operation: &Operation) -> HubError {
        let Self { scheme, why, .. } = &self;
        let message = format!(
            "`{}` requires the security scheme `{scheme}`, {why} ({} {})",
            operation.name,
            operation.method.as_str(),
            operation.path
        );
        let error = HubError::new(ErrorKind::CannotConnect, message);
        if self.unsupported {
            return error.with_suggestion(
                "set missing_auth = \"send\" if the server authenticates the request in another way",
            );
        }
        error.with_suggestion(format!(
            "add auth.{scheme} to this server in the configuration, or set missing_auth = \"send\" to call it without credentials"
        ))
    }
}

fn plan_step<'a>(
    requirement: &'a SecurityRequirement,
    schemes: &'a [SecurityScheme],
    settings: &'a ApiAuthSettings,
    present: &HeaderMap,
) -> Result<Option<AuthStep<'a>>, MissingCredential> {
    let name = requirement.scheme.as_str();
    let lack = |why| MissingCredential { scheme: name.to_owned(), why, unsupported: false };
    let Some(scheme) = schemes.iter().find(|scheme| scheme.name == name) else {
        let lack = lack("which the document does not define");
        return Err(MissingCredential { unsupported: true, ..lack });
    };
    let credential = settings.schemes.get(name);
    let bearer = settings.bearer.as_ref();
    let token = match credential {
        Some(ApiCredential::Token(token)) => Some(token.reveal()),
        _ => None,
    };
    let client = match credential {
        Some(ApiCredential::Client(client)) => Some(client),
        _ => None,
    };
    let fetched = |token_url: Option<&'a str>| {
        let client = client?;
        let token_url = client.token_url.as_deref().or(token_url).filter(|url| !url.is_empty())?;
        let mut scopes: Vec<String> = requirement.scopes.iter().chain(&client.scopes).cloned().collect();
        scopes.sort();
        scopes.dedup();
        Some(AuthStep::Fetched { client, token_url, scopes })
    };
    let authorize = |scheme| {
        let value = token.or(bearer.filter(|_| credential.is_none()).map(|bearer| bearer.reveal()))?;
        Some(AuthStep::Authorize { scheme, value })
    };
    let (made, header, requires) = match &scheme.kind {
        SecuritySchemeKind::ApiKey { place, wire_name } => (
            token.map(|value| AuthStep::Key { place: *place, wire_name, value }),
            (*place == ArgumentLocation::Header).then_some(wire_name.as_str()),
            "which needs a `token`",
        ),
        SecuritySchemeKind::Basic => (
            match credential {
                Some(ApiCredential::Basic { username, password }) => {
                    Some(AuthStep::Basic { username: username.reveal(), password: password.reveal() })
                }
                _ => None,
            },
            Some("authorization"),
            "which needs a `username` and a `password`",
        ),
        SecuritySchemeKind::Bearer | SecuritySchemeKind::Token => (
            authorize("Bearer").or_else(|| fetched(None)),
            Some("authorization"),
            "which needs a `token`, or a `client_id`, a `client_secret` and a `token_url`",
        ),
        SecuritySchemeKind::Http { scheme } => {
            (authorize(scheme).filter(|_| token.is_some()), Some("authorization"), "which needs a `token`")
        }
        SecuritySchemeKind::ClientCredentials { token_url, .. } => (
            fetched(Some(token_url)).or_else(|| authorize("Bearer")),
            Some("authorization"),
            "which needs a `client_id` and a `client_secret`, or a `token`",
        ),
        SecuritySchemeKind::Other { .. } => (None, None, "which has an unsupported type"),
    };
    match made {
        Some(step) => Ok(Some(step)),
        // The configuration sets this header itself or forwards the caller's.
        None if header.is_some_and(|header| present.contains_key(header)) => Ok(None),
        None if credential.is_none() && !matches!(scheme.kind, SecuritySchemeKind::Other { .. }) => {
            Err(lack("for which no credentials are configured"))
        }
        None => {
            let unheard = matches!(scheme.kind, SecuritySchemeKind::Other { .. });
            Err(MissingCredential { unsupported: unheard, ..lack(requires) })
        }
    }
}

impl AuthPlan<'_> {
    /// Adds the planned credentials to the request. Returns the fetched tokens, so that the caller
    /// can drop them if the server rejects them.
    pub(crate) async fn apply(
        &self,
        order: &mut OperationRequest,
        tokens: &TokenCache,
        ask: &TokenFetchContext<'_>,
    ) -> Result<Vec<TokenVersion>, HubError> {
        let mut used = Vec::new();
        for step in &self.steps {
            match step {
                AuthStep::Key { place: ArgumentLocation::Query, wire_name, value } => {
                    order.add_to_query(wire_name, value)
                }
                // A cookie value is not percent-encoded: servers read it verbatim.
                AuthStep::Key { place: ArgumentLocation::Cookie, wire_name, value } => {
                    sensitive_header(value, wire_name)?;
                    order.cookies.push(format!("{wire_name}={value}"));
                }
                AuthStep::Key { wire_name, value, .. } => {
                    let name = HeaderName::from_bytes(wire_name.as_bytes())
                        .map_err(|_| unusable_credential(wire_name))?;
                    order.headers.insert(name, sensitive_header(value, wire_name)?);
                }
                AuthStep::Basic { username, password } => {
                    let pair = BASE64_STANDARD.encode(format!("{username}:{password}"));
                    authorize(order, "Basic", &pair)?;
                }
                AuthStep::Authorize { scheme, value } => authorize(order, scheme, value)?,
                AuthStep::Fetched { client, token_url, scopes } => {
                    let (token, fetched) = tokens.get(client, token_url, scopes, ask).await?;
                    authorize(order, "Bearer", token.reveal())?;
                    used.push(fetched);
                }
            }
        }
        Ok(used)
    }
}

/// Identifies the fetched token that a request was sent with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TokenVersion {
    key: tokens::TokenCacheKey,
    serial: u64,
}

fn authorize(order: &mut OperationRequest, scheme: &str, value: &str) -> Result<(), HubError> {
    order.headers.insert(AUTHORIZATION, sensitive_header(&format!("{scheme} {value}"), "Authorization")?);
    Ok(())
}

fn sensitive_header(value: &str, name: &str) -> Result<HeaderValue, HubError> {
    let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| unusable_credential(name))?;
    value.set_sensitive(true);
    Ok(value)
}

fn unusable_credential(name: &str) -> HubError {
    HubError::new(
        ErrorKind::CannotConnect,
        format!("the credential configured for `{name}` contains characters that are not valid in a header"),
    )
}

#[cfg(test)]
mod tests;
