//! What went wrong, in the nine words of the contract. The table from the yard's kinds of errors is here and nowhere
//! else.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{Error, Kind, Raw};

use crate::connection::Connection;

/// An error, the connection that it happened on, and what is told beside it.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) error: Error,
    pub(crate) connection: Option<Arc<Connection>>,
    /// More members of the answer.
    pub(crate) beside: Vec<(&'static str, Raw)>,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self { error, connection: None, beside: Vec::new() }
    }
}

impl Fault {
    pub(crate) fn on(connection: &Arc<Connection>, error: Error) -> Self {
        Self { error, connection: Some(Arc::clone(connection)), beside: Vec::new() }
    }

    /// The same with an error of another kind.
    pub(crate) fn with_kind(mut self, kind: Kind) -> Self {
        self.error = self.error.with_kind(kind);
        self
    }

    pub(crate) fn beside(mut self, key: &'static str, value: Raw) -> Self {
        self.beside.push((key, value));
        self
    }
}

/// The `error` member of an answer.
pub(crate) fn described(error: &Error) -> Raw {
    let details = error.details().cloned().unwrap_or_else(|| json!({}));
    let details = if details.is_object() { details } else { json!({"value": details}) };
    let mut told = json!({"type": type_of(error.kind()), "message": error.message(), "details": details});
    if let Some(suggestion) = error.suggestion() {
        told["suggestion"] = Value::from(suggestion);
    }
    to_raw(&told)
}

pub(crate) fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::NotConnected => "not_connected",
        Kind::CannotConnect => "connection_failed",
        Kind::UnknownTool => "tool_not_found",
        Kind::UnknownResource => "resource_not_found",
        Kind::UnknownPrompt => "prompt_not_found",
        Kind::InvalidArguments | Kind::TooLarge => "invalid_arguments",
        Kind::TimedOut => "timeout",
        Kind::ConnectionLost | Kind::Unauthenticated => "transport_error",
        Kind::ToolFailed
        | Kind::Forbidden
        | Kind::RateLimited
        | Kind::Cancelled
        | Kind::ClientCannot
        | Kind::Bug => "execution_error",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;
    use toolyard_hub::Kind;

    use super::type_of;

    #[test]
    fn the_types_are_those_of_the_contract_and_all_of_them() {
        let spec: Value =
            serde_json::from_str(include_str!("../../../tests/data/spec/tester-tools.json")).unwrap();
        let specified: BTreeSet<&str> =
            spec["errorTypes"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(Kind::ALL.into_iter().map(type_of).collect::<BTreeSet<_>>(), specified);
    }
}
