//! Why somebody is not let in, in words that a program and a person can read. This is the one list of reasons; the
//! table in docs/access.md repeats it.

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
    /// Not the caller's fault: the keys of the issuer could not be had.
    JwtKeysUnavailable,
    /// There are too many connections, of this client or at all.
    Connections,
}

impl RejectionReason {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 17] = [
        Self::Host,
        Self::Origin,
        Self::TokenMissing,
        Self::TokenUnknown,
        Self::TokenExpired,
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
            Self::Host => ("host_unknown", "this host name is not one of this server's"),
            Self::Origin => ("origin_unknown", "pages of this origin may not use this server"),
            Self::TokenMissing => ("token_missing", "a bearer token is needed"),
            Self::TokenUnknown => ("token_unknown", "this bearer token is not known"),
            Self::TokenExpired => ("token_expired", "this bearer token has expired"),
            Self::JwtMalformed => ("jwt_malformed", "this bearer token is no JWT that can be read"),
            Self::JwtUnsigned => ("jwt_unsigned", "this JWT is not signed"),
            Self::JwtAlgorithm => ("jwt_algorithm", "this JWT is signed in a way that is not allowed here"),
            Self::JwtKeyUnknown => {
                ("jwt_key_unknown", "this JWT is signed with a key that the issuer does not have")
            }
            Self::JwtSignature => ("jwt_signature", "the signature of this JWT is wrong"),
            Self::JwtExpired => ("jwt_expired", "this JWT has expired"),
            Self::JwtNotYetValid => ("jwt_not_yet_valid", "this JWT is not valid yet"),
            Self::JwtIssuer => ("jwt_issuer", "this JWT is from another issuer"),
            Self::JwtAudience => ("jwt_audience", "this JWT is for another audience"),
            Self::JwtSubject => ("jwt_subject", "this JWT does not say whom it is about"),
            Self::JwtKeysUnavailable => {
                ("jwt_keys_unavailable", "the keys of the issuer cannot be had just now")
            }
            Self::Connections => {
                ("too_many_connections", "too many connections are open; only health checks are answered")
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

/// Somebody who is not let in.
#[derive(Debug)]
pub(crate) struct AuthRejection {
    pub(crate) reason: RejectionReason,
    /// Where an MCP client reads how to get a token, if that can be said.
    pub(crate) metadata: Option<String>,
    pub(crate) format: ErrorFormat,
}

/// In which words the body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    Mcp,
    Rest,
}

impl ErrorFormat {
    /// Every address that ends in `/mcp` is one of MCP; everything else is for programs that speak REST.
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
        parts.extend(self.metadata.as_ref().map(|address| format!("resource_metadata=\"{address}\"")));
        if parts.is_empty() { "Bearer".to_owned() } else { format!("Bearer {}", parts.join(", ")) }
    }
}
