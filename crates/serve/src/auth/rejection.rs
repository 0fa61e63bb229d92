//! Authentication errors, with a code for programs and a text for people. This is the only list of
//! reasons; the table in docs/concepts/access.md repeats it.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde_json::json;
use toolyard_hub::ErrorKind;

use crate::rest::refusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RejectionReason {
    Host,
    Origin,
    TokenMissing,
    TokenUnknown,
    TokenExpired,
    TokenRevoked,
    JwtMalformed,
    JwtUnsigned,
    JwtAlgorithm,
    JwtKeyUnknown,
    JwtSignature,
    JwtExpired,
    JwtNotYetValid,
    JwtIssuer,
    JwtAudience,
    JwtSubject,
    /// The issuer's keys could not be fetched, which the caller did not cause.
    JwtKeysUnavailable,
    /// Too many connections are open, either by this client or in total.
    Connections,
}

impl RejectionReason {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 18] = [
        Self::Host,
        Self::Origin,
        Self::TokenMissing,
        Self::TokenUnknown,
        Self::TokenExpired,
        Self::TokenRevoked,
        Self::JwtMalformed,
        Self::JwtUnsigned,
        Self::JwtAlgorithm,
        Self::JwtKeyUnknown,
        Self::JwtSignature,
        Self::JwtExpired,
        Self::JwtNotYetValid,
        Self::JwtIssuer,
        Self::JwtAudience,
        Self::JwtSubject,
        Self::JwtKeysUnavailable,
        Self::Connections,
    ];

    pub(crate) fn code(self) -> &'static str {
        self.code_and_text().0
    }

    pub(crate) fn text(self) -> &'static str {
        self.code_and_text().1
    }

    fn code_and_text(self) -> (&'static str, &'static str) {
        match self {
            Self::Host => {
                ("host_unknown", "the host name in the `Host` header is not in `hosts` in the configuration")
            }
            Self::Origin => {
                ("origin_unknown", "the origin of this web page is not in `origins` in the configuration")
            }
            Self::TokenMissing => ("token_missing", "a bearer token is required"),
            Self::TokenUnknown => ("token_unknown", "the bearer token is unknown"),
            Self::TokenExpired => ("token_expired", "the bearer token has expired"),
            Self::TokenRevoked => ("token_revoked", "the bearer token was revoked"),
            Self::JwtMalformed => ("jwt_malformed", "the bearer token is not a well-formed JWT"),
            Self::JwtUnsigned => ("jwt_unsigned", "the JWT is not signed"),
            Self::JwtAlgorithm => ("jwt_algorithm", "the signature algorithm of the JWT is not allowed"),
            Self::JwtKeyUnknown => ("jwt_key_unknown", "the JWT is signed with a key unknown to the issuer"),
            Self::JwtSignature => ("jwt_signature", "the signature of the JWT is invalid"),
            Self::JwtExpired => ("jwt_expired", "the JWT has expired"),
            Self::JwtNotYetValid => ("jwt_not_yet_valid", "the JWT is not valid yet"),
            Self::JwtIssuer => ("jwt_issuer", "the JWT is from a different issuer"),
            Self::JwtAudience => ("jwt_audience", "the JWT is for a different audience"),
            Self::JwtSubject => ("jwt_subject", "the JWT has no valid `sub` claim"),
            Self::JwtKeysUnavailable => {
                ("jwt_keys_unavailable", "the issuer's keys are currently unavailable")
            }
            Self::Connections => {
                ("too_many_connections", "too many open connections; only health checks are answered")
            }
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::JwtKeysUnavailable | Self::Connections => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNAUTHORIZED,
        }
    }
}

/// A rejected request.
#[derive(Debug)]
pub(crate) struct AuthRejection {
    pub(crate) reason: RejectionReason,
    /// URL of the metadata from which an MCP client learns how to get a token.
    pub(crate) metadata: Option<String>,
    pub(crate) format: ErrorFormat,
}

/// The protocol of an error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    Mcp,
    Rest,
}

impl ErrorFormat {
    /// Returns the format for a path: MCP for paths that end in `/mcp`, REST for all others.
    pub(crate) fn for_path(path: &str) -> Self {
        if path.ends_with("/mcp") { Self::Mcp } else { Self::Rest }
    }
}

impl IntoResponse for AuthRejection {
    fn into_response(self) -> Response<Body> {
        let status = self.reason.status();
        let (code, text) = (self.reason.code(), self.reason.text());
        let mut response = match self.format {
            ErrorFormat::Mcp => {
                let data = json!({"reason": code});
                let body =
                    json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": text, "data": data}});
                (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
            }
            ErrorFormat::Rest => {
                let kind = match status {
                    _ if self.reason == RejectionReason::Connections => ErrorKind::RateLimited,
                    StatusCode::FORBIDDEN => ErrorKind::Forbidden,
                    StatusCode::UNAUTHORIZED => ErrorKind::Unauthenticated,
                    _ => ErrorKind::CannotConnect,
                };
                refusal(kind, status, text, code)
            }
        };
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED
            && let Ok(challenge) = HeaderValue::from_str(&self.challenge())
        {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}

impl AuthRejection {
    fn challenge(&self) -> String {
        let mut parts = Vec::new();
        if self.reason != RejectionReason::TokenMissing {
            parts.push("error=\"invalid_token\"".to_owned());
            parts.push(format!("error_description=\"{}\"", self.reason.text()));
        }
        parts.extend(self.metadata.as_ref().map(|url| format!("resource_metadata=\"{url}\"")));
        if parts.is_empty() { "Bearer".to_owned() } else { format!("Bearer {}", parts.join(", ")) }
    }
}
