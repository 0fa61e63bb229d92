//! How a request proves who we are: which of the alternatives that an operation offers the configuration can meet, and
//! what is added to the request for it. Nothing of this is ever an argument of a tool, or comes from a caller unless
//! the configuration names the header.

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

/// What is done for one request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct AuthPlan<'a> {
    steps: Vec<AuthStep<'a>>,
}

#[derive(Debug, PartialEq)]
enum AuthStep<'a> {
    /// A header, a pair of the query or a cookie.
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

/// The first alternative that can be met. `present` are headers that are sent anyway: what they say need not be said
/// again.
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

/// What an alternative lacks.
#[derive(Debug, PartialEq)]
struct MissingCredential {
    scheme: String,
    why: &'static str,
    /// Nothing that could be configured would help.
    unsupported: bool,
}

impl MissingCredential {
    fn into_error(self, operation: &Operation) -> HubError {
        let Self { scheme, why, .. } = &self;
        let message = format!(
            "{} needs {scheme}, {why}: {} {}",
            operation.name,
            operation.method.as_str(),
            operation.path
        );
        let error = HubError::new(ErrorKind::CannotConnect, message);
        if self.unsupported {
            return error
                .with_suggestion("say missing_auth = \"send\" if the server knows us in another way");
        }
        error.with_suggestion(format!(
            "add auth.{scheme} to this server in the configuration, or say missing_auth = \"send\" if it needs none"
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
        let lack = lack("which the document does not describe");
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
    let (made, header, wanted) = match &scheme.kind {
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
        SecuritySchemeKind::Other { .. } => (None, None, "which is a kind that cannot be used here"),
    };
    match made {
        Some(step) => Ok(Some(step)),
        // The configuration sends that header itself, or lets the caller's through.
        None if header.is_some_and(|header| present.contains_key(header)) => Ok(None),
        None if credential.is_none() && !matches!(scheme.kind, SecuritySchemeKind::Other { .. }) => {
            Err(lack("for which nothing is configured"))
        }
        None => {
            let unheard = matches!(scheme.kind, SecuritySchemeKind::Other { .. });
            Err(MissingCredential { unsupported: unheard, ..lack(wanted) })
        }
    }
}

impl AuthPlan<'_> {
    /// Adds what the plan says, and gives back the tokens that were fetched for it: they may turn out to be stale.
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
                // A cookie is no address: whoever reads it takes it as it is.
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

/// A token that a request was sent with, by where it came from.
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
        format!("what is configured for the header {name} cannot be sent in one"),
    )
}

#[cfg(test)]
mod tests;
