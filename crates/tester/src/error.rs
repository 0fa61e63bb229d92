//! Errors with the nine error types of the contract. The mapping from the yard's error kinds is
//! defined only here.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{ErrorKind, HubError, Raw};

use crate::connection::TesterConnection;

/// An error, the connection on which it occurred, and further members of the answer.
#[derive(Debug)]
pub(crate) struct TesterError {
    pub(crate) error: HubError,
    pub(crate) connection: Option<Arc<TesterConnection>>,
    /// Further members of the answer.
    pub(crate) extra_members: Vec<(&'static str, Raw)>,
}

impl From<HubError> for TesterError {
    fn from(error: HubError) -> Self {
        Self { error, connection: None, extra_members: Vec::new() }
    }
}

impl TesterError {
    pub(crate) fn on_connection(connection: &Arc<TesterConnection>, error: HubError) -> Self {
        Self { error, connection: Some(Arc::clone(connection)), extra_members: Vec::new() }
    }

    /// Replaces the kind of the error.
    pub(crate) fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.error = self.error.with_kind(kind);
        self
    }

    pub(crate) fn with_member(mut self, key: &'static str, value: Raw) -> Self {
        self.extra_members.push((key, value));
        self
    }
}

/// Returns the `error` member of an answer.
pub(crate) fn error_json(error: &HubError) -> Raw {
    let details = error.details().cloned().unwrap_or_else(|| json!({}));
    let details = if details.is_object() { details } else { json!({"value": details}) };
    let mut body = json!({"type": error_type(error.kind()), "message": error.message(), "details": details});
    if let Some(suggestion) = error.suggestion() {
        body["suggestion"] = Value::from(suggestion);
    }
    to_raw(&body)
}

pub(crate) fn error_type(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotConnected => "not_connected",
        ErrorKind::CannotConnect => "connection_failed",
        ErrorKind::UnknownTool => "tool_not_found",
        ErrorKind::UnknownResource => "resource_not_found",
        ErrorKind::UnknownPrompt => "prompt_not_found",
        ErrorKind::InvalidArguments | ErrorKind::TooLarge => "invalid_arguments",
        ErrorKind::TimedOut => "timeout",
        ErrorKind::ConnectionLost | ErrorKind::Unauthenticated => "transport_error",
        ErrorKind::ToolFailed
        | ErrorKind::Forbidden
        | ErrorKind::RateLimited
        | ErrorKind::Cancelled
        | ErrorKind::ClientCannot
        | ErrorKind::Bug => "execution_error",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;
    use toolyard_hub::ErrorKind;

    use super::error_type;

    #[test]
    fn the_types_are_those_of_the_contract_and_all_of_them() {
        let spec: Value =
            serde_json::from_str(include_str!("../../../tests/data/spec/tester-tools.json")).unwrap();
        let specified: BTreeSet<&str> =
            spec["errorTypes"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(ErrorKind::ALL.into_iter().map(error_type).collect::<BTreeSet<_>>(), specified);
    }
}
