//! Errors of the hub in the words of MCP: the one table of this front.

use serde_json::{Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{ErrorKind, HubError, SourceError};
use toolyard_wire::{Era, RawJson, RpcError, Version, code};

/// What was asked for. Only a tool's result can say that it failed; everything else needs a JSON-RPC error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorReporting {
    Tool,
    Other,
}

pub(super) fn error_result(
    error: &HubError,
    version: Version,
    asked: ErrorReporting,
) -> Result<RawJson, RpcError> {
    let modern = version.era() == Era::Modern;
    if let Some(origin) = error.source_error() {
        return Err(repeated(origin, modern));
    }
    let code = match error.kind() {
        ErrorKind::UnknownTool | ErrorKind::UnknownPrompt => code::INVALID_PARAMS,
        ErrorKind::UnknownResource if modern => code::INVALID_PARAMS,
        ErrorKind::UnknownResource => code::RESOURCE_NOT_FOUND,
        ErrorKind::InvalidArguments if version >= Version::V2025_11_25 => {
            return told(error, asked, code::INVALID_PARAMS);
        }
        ErrorKind::InvalidArguments => code::INVALID_PARAMS,
        // The door answers these with HTTP 401 and 413; here only stdio is left.
        ErrorKind::Unauthenticated | ErrorKind::TooLarge => code::INVALID_REQUEST,
        ErrorKind::Forbidden
        | ErrorKind::RateLimited
        | ErrorKind::TimedOut
        | ErrorKind::Cancelled
        | ErrorKind::NotConnected
        | ErrorKind::CannotConnect
        | ErrorKind::ConnectionLost
        | ErrorKind::ToolFailed => return told(error, asked, code::INTERNAL),
        ErrorKind::ClientCannot if modern => {
            let needed = error.details().cloned().unwrap_or_else(|| json!({}));
            let data = json!({"requiredCapabilities": needed});
            return Err(RpcError::new(code::MISSING_CAPABILITY, error.sentence()).with_data(data));
        }
        ErrorKind::ClientCannot => return told(error, asked, code::INVALID_REQUEST),
        ErrorKind::Bug => code::INTERNAL,
    };
    Err(rpc(code, error))
}

/// A caller that holds too much, or asks too often, for something that is no tool.
pub(super) fn quota_error(error: &HubError) -> RpcError {
    // The request is fine; the status stays that of an answer.
    let data = error
        .retry_after()
        .map(|wait| json!({"retryAfterMs": u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)}));
    let refused = RpcError::new(code::INTERNAL, error.sentence()).with_status(200);
    data.into_iter().fold(refused, RpcError::with_data)
}

/// A source's own error, in the codes of the client's era.
fn repeated(origin: &SourceError, modern: bool) -> RpcError {
    let code = match origin.code {
        code::RESOURCE_NOT_FOUND if modern => code::INVALID_PARAMS,
        other => other,
    };
    let error = RpcError::new(code, origin.message.clone());
    // Only this one says something about the request itself; the others are about what it led to.
    let error = if code == code::MISSING_CAPABILITY { error } else { error.with_status(200) };
    origin.data.iter().cloned().fold(error, RpcError::with_data)
}

/// As a result that says it failed, where there is one.
fn told(error: &HubError, asked: ErrorReporting, code: i64) -> Result<RawJson, RpcError> {
    match asked {
        ErrorReporting::Tool => Ok(to_raw(&json!({
            "content": [{"type": "text", "text": error.sentence()}],
            "isError": true,
        }))),
        ErrorReporting::Other => Err(rpc(code, error)),
    }
}

fn rpc(code: i64, error: &HubError) -> RpcError {
    let rpc = RpcError::new(code, error.sentence());
    match error.details() {
        Some(details) if *details != Value::Null => rpc.with_data(details.clone()),
        _ => rpc,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use toolyard_hub::{ErrorKind, HubError};
    use toolyard_wire::Version;

    use super::{ErrorReporting, error_result};

    #[test]
    fn every_kind_of_error_has_its_words() {
        let mut table = String::new();
        for kind in ErrorKind::ALL {
            for (version, asked) in [
                (Version::V2025_06_18, ErrorReporting::Tool),
                (Version::V2025_11_25, ErrorReporting::Tool),
                (Version::V2026_07_28, ErrorReporting::Tool),
                (Version::V2025_11_25, ErrorReporting::Other),
                (Version::V2026_07_28, ErrorReporting::Other),
            ] {
                let words = match error_result(&HubError::new(kind, "x"), version, asked) {
                    Ok(_) => "result with isError".to_owned(),
                    Err(error) => error.code.to_string(),
                };
                writeln!(table, "{:<26} {version} {asked:<5?} {words}", kind.as_str()).unwrap();
            }
        }
        insta::assert_snapshot!(table);
    }
}
