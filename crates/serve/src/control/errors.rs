//! Errors of the control socket. The codes are those of the REST API.

use serde::Serialize;
use serde_json::{Value, json};
use toolyard_hub::json::Object;
use toolyard_hub::permission::missing_message;
use toolyard_hub::{ErrorKind, HistoryError, HubError, LoginError, ManageError, Raw};

use crate::rest::RestError;

/// An error as it is sent to the client.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ControlError {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Raw>,
}

impl ControlError {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::from(RestError::from_kind(kind, message))
    }

    /// Returns the error for an invalid request.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArguments, message)
    }

    /// Returns the error for an invalid member of a request.
    pub(super) fn invalid_at(member: &str, reason: &str) -> Self {
        Self::from(RestError::invalid_at(&format!("/{member}"), reason, Value::Null))
    }

    #[must_use]
    pub(super) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Returns the error for an unknown server.
    pub(super) fn unknown_server(name: &str, nearest: Option<&str>) -> Self {
        let error = Self { code: "NOT_FOUND", ..Self::invalid(format!("unknown server `{name}`")) };
        nearest.into_iter().fold(error, |error, near| error.suggest(format!("did you mean `{near}`?")))
    }

    /// Converts an error of the hub.
    pub(super) fn from_hub_error(error: &HubError, execution: &str) -> Self {
        Self::from(RestError::from_hub_error(error, execution))
    }
}

impl From<RestError> for ControlError {
    fn from(failure: RestError) -> Self {
        // On the control socket the suggestion is a separate member.
        let mut details =
            failure.details.as_deref().and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
        let suggestion = details.remove("suggestion").and_then(|raw| serde_json::from_str(raw.get()).ok());
        if let Some(wait) = failure.retry_after {
            let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            details.set("retryAfterMs", toolyard_hub::json::to_raw(&millis));
        }
        let details = (!details.is_empty()).then(|| details.to_raw());
        Self { code: failure.code, message: failure.message, suggestion, details }
    }
}

impl From<ManageError> for ControlError {
    fn from(error: ManageError) -> Self {
        match &error {
            ManageError::Unknown { name, nearest } => Self::unknown_server(name, nearest.as_deref()),
            ManageError::Forbidden(_) => Self::new(ErrorKind::Forbidden, error.to_string()),
            ManageError::Unmanaged => Self::invalid(error.to_string()),
            ManageError::Busy => Self::new(ErrorKind::RateLimited, error.to_string()),
            ManageError::Unreachable(_) => Self::new(ErrorKind::CannotConnect, error.to_string()),
        }
    }
}

impl From<LoginError> for ControlError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::Manage(error) => error.into(),
            LoginError::NothingToDo(_) => Self::invalid(error.to_string()),
            LoginError::Failed { message, suggestion } => {
                let error = Self::new(ErrorKind::CannotConnect, message);
                suggestion.into_iter().fold(error, |error, suggestion| error.suggest(suggestion))
            }
        }
    }
}

impl From<HistoryError> for ControlError {
    fn from(error: HistoryError) -> Self {
        tracing::error!(%error, "cannot read the call history");
        Self::new(ErrorKind::Bug, "the call history cannot be read")
    }
}

/// Returns the error for a missing permission.
pub(super) fn missing_permission(permission: &str) -> ControlError {
    let error = ControlError::new(ErrorKind::Forbidden, missing_message("this", permission));
    ControlError { details: Some(toolyard_hub::json::to_raw(&json!({"permission": permission}))), ..error }
}
